import { describe, expect, test } from "vitest";
import { Agent, type StopHook } from "../../../src/entries/index.ts";
import { messageText, type Architecture } from "../../../src/kernel/index.ts";
import { scout } from "../scout.ts";

describe("an empty answer after a stop hook continued the run", () => {
  const once: StopHook = {
    name: "once",
    shouldContinue: ({ continued }) => (continued === 0 ? "cite" : undefined),
  };

  test.each([[""], ["\n"]])(
    "the empty answer %j after a stop hook does not replace the earlier answer",
    async (silence) => {
      const { agent, model } = scout(["a", silence, "b"], { stopHooks: [once] });
      const { sessionId, ...result } = await agent.invoke("Go");
      expect(result).toMatchObject({ status: "completed", output: "a", turns: 2 });
      await agent.invoke("And?", { sessionId });
      const heard = model.calls[2]?.messages.map(messageText) ?? [];
      expect(heard.filter((words) => words === "a")).toHaveLength(1);
    },
  );

  test("an empty answer after a stop hook does not replace an earlier structured output", async () => {
    const { agent, model } = scout(['{"n":1}', ""], { stopHooks: [once], tools: [] });
    const output = { type: "object", properties: { n: { type: "number" } }, required: ["n"] } as const;
    expect((await agent.invoke("Go", { output })).output).toEqual({ n: 1 });
    expect(model.calls).toHaveLength(2);
  });

  test("a blank answer of a model is the output of the run if no earlier answer exists", async () => {
    const { agent } = scout([" \n"]);
    expect(await agent.invoke("Go")).toMatchObject({ status: "completed", output: " \n" });
  });

  test("an architecture that adds no messages starts each round with an empty output, and a round without output is not stored", async () => {
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

  test("an empty answer of a repeated invocation does not fall back to an answer of the first invocation", async () => {
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
