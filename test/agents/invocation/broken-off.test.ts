import { expect, test } from "vitest";
import { Agent, openRuntime } from "../../../src/entries/index.ts";
import { messageText, type Guardrail, type Model, type ModelStreamPart } from "../../../src/kernel/index.ts";
import { FakeClock, scriptedModel, type ScriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { look, looks } from "../scout.ts";

/**
 * Answers from a script. A text that starts with "half" is streamed and then hangs until the call is
 * aborted.
 */
class Hesitant implements Model {
  readonly provider = "scripted";
  readonly modelId = "script";
  readonly script: ScriptedModel;
  readonly begun = Promise.withResolvers<void>();

  constructor(script: readonly ScriptStep[]) {
    this.script = scriptedModel(script);
  }

  generate(...args: Parameters<Model["generate"]>): ReturnType<Model["generate"]> {
    return this.script.generate(...args);
  }

  async *stream(...[request, options]: Parameters<Model["stream"]>): AsyncIterable<ModelStreamPart> {
    for await (const part of this.script.stream(request, options)) {
      yield part;
      if (part.type !== "text_delta" || !part.text.startsWith("half")) continue;
      const { signal } = options ?? {};
      await new Promise((_resolve, reject) => {
        signal?.addEventListener("abort", () => reject(new Error("aborted")), { once: true });
        this.begun.resolve();
      });
    }
  }
}

async function stopped(
  script: readonly ScriptStep[],
  how: "cancel" | "deadline",
  guardrails: readonly Guardrail[] = [],
) {
  const clock = new FakeClock();
  const runtime = await openRuntime({ clock });
  const model = new Hesitant(script);
  const agent = new Agent({ name: "scout", model, tools: [look], guardrails });
  const stream = agent.stream("Go", {
    runtime,
    sessionId: "talk",
    ...(how === "deadline" && { timeoutMs: 1_000 }),
  });
  const run = await stream.run();
  await model.begun.promise;
  await (how === "deadline" ? clock.advance(1_500) : run.cancel("enough"));
  const result = await stream.result();
  let ended: unknown;
  for await (const event of run.events()) if (event.type === "agent_end") ended = event.data;
  return { result, ended, model, agent, runtime };
}

test.each([
  ["cancel", "cancelled"],
  ["deadline", "deadline_exceeded"],
] as const)(
  "S1: the streamed part of an interrupted answer is the output and is stored in the session: %s",
  async (how, status) => {
    const { result, ended, model, agent, runtime } = await stopped(["half an answer", "whole"], how);
    expect(result).toMatchObject({ status, output: "half an answer" });
    expect(ended).toMatchObject({ status, output: "half an answer" });
    expect(JSON.stringify(result.error)).not.toContain("half");
    await agent.invoke("And?", { runtime, sessionId: "talk" });
    expect(model.script.calls[1]?.messages.map(messageText)).toEqual([
      "Go",
      `half an answer [interrupted: ${status}]`,
      "And?",
    ]);
    await runtime.close();
  },
);

test("S1: the streamed part of an interrupted answer is kept after tool calls too", async () => {
  const { result, model, agent, runtime } = await stopped([looks, "half an answer", "whole"], "cancel");
  expect(result.output).toBe("half an answer");
  await agent.invoke("And?", { runtime, sessionId: "talk" });
  const roles = model.script.calls[2]?.messages.map(({ role }) => role);
  expect(roles).toEqual(["user", "assistant", "tool", "assistant", "user"]);
  await runtime.close();
});

test("an interrupted answer that no output guardrail has checked is not returned", async () => {
  const allow = async () => ({ decision: "allow" }) as const;
  const { result, runtime } = await stopped(["half an answer"], "cancel", [
    { name: "careful", onOutput: allow },
  ]);
  expect(result).toMatchObject({ status: "cancelled", output: "" });
  await runtime.close();
});
