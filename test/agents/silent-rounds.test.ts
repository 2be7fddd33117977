import { describe, expect, test } from "vitest";
import { Agent, type StopHook } from "../../src/index.ts";
import { messageText, type Architecture } from "../../src/kernel/index.ts";
import { scout } from "./scout.ts";

describe("sent on by a stop hook, an answer that says nothing", () => {
  const once: StopHook = {
    name: "once",
    shouldContinue: ({ continued }) => (continued === 0 ? "cite" : undefined),
  };

  test.each([[""], ["\n"]])("takes back none: %j", async (silence) => {
    const { agent, model } = scout(["a", silence, "b"], { stopHooks: [once] });
    const { sessionId, ...result } = await agent.invoke("Go");
    expect(result).toMatchObject({ status: "completed", output: "a", turns: 2 });
    await agent.invoke("And?", { sessionId });
    const heard = model.calls[2]?.messages.map(messageText) ?? [];
    expect(heard.filter((words) => words === "a")).toHaveLength(1);
  });

  test("takes back none that fits a schema", async () => {
    const { agent, model } = scout(['{"n":1}', ""], { stopHooks: [once], tools: [] });
    const output = { type: "object", properties: { n: { type: "number" } }, required: ["n"] } as const;
    expect((await agent.invoke("Go", { output })).output).toEqual({ n: 1 });
    expect(model.calls).toHaveLength(2);
  });

  test("alone is what was said", async () => {
    const { agent } = scout([" \n"]);
    expect(await agent.invoke("Go")).toMatchObject({ status: "completed", output: " \n" });
  });

  test("by an architecture that keeps no conversation, which begins each round anew, is not in the session", async () => {
    const begun: string[] = [];
    const brief: Architecture = {
      name: "brief",
      requiresModel: false,
      declaredWorkers: () => ({}),
      async *run(session, _deps, prompt) {
        begun.push(session.output);
        const before = session.messages.slice(0).map(messageText);
        if (prompt !== "cite") session.output = `heard ${before.join(", ")}`;
        yield* [];
      },
    };
    const agent = new Agent({ name: "brief", architecture: brief, stopHooks: [once] });
    const { output, sessionId } = await agent.invoke("Go");
    expect({ output, begun }).toEqual({ output: "heard ", begun: ["", ""] });
    const next = await agent.invoke("And?", { sessionId });
    expect(next.output).toBe("heard Go, heard , cite");
  });

  test("where a layer asks again, takes nothing of what the first conversation said", async () => {
    const { agent } = scout(["a", "b", ""], {
      stopHooks: [{ name: "a", shouldContinue: ({ output }) => (output === "a" ? "cite" : undefined) }],
      middleware: [
        {
          agent: async (_context, next) => {
            await next();
            await next();
          },
        },
      ],
    });
    expect(await agent.invoke("Go")).toMatchObject({ status: "completed", output: "", turns: 3 });
  });
});
