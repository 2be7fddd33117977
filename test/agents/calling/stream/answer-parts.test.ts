import { describe, expect, it, test } from "vitest";
import { RunStream, followAnswer, type AnswerPart } from "../../../../src/agents/index.ts";
import { Agent, openRuntime, tool } from "../../../../src/entries/index.ts";
import type { RunHandle } from "../../../../src/kernel/index.ts";
import { scriptedModel } from "../../../../src/testing/index.ts";
import { architectureCases } from "../../architecture-cases/index.ts";
import { InProcessServices } from "../../architecture-cases/in-process-services.ts";

async function all<Value>(values: AsyncIterable<Value>): Promise<Value[]> {
  const found: Value[] = [];
  for await (const value of values) found.push(value);
  return found;
}

/** The text of a run as `stream.text()` yields it. */
async function textOf(run: RunHandle): Promise<string> {
  const start = async () => ({ run, result: () => run.result() });
  const stream = new RunStream({
    start,
    shape: (result) => result,
    cancelOnBreak: false,
    insideCall: (call) => call(),
    isInsideTask: () => false,
  });
  return (await all(stream.text())).join("");
}

function pieces(parts: readonly AnswerPart[]): string {
  return parts.map((part) => (part.type === "text" ? part.piece : "")).join("");
}

/** The chunks of a UI message stream. */
async function chunksOf(response: Response): Promise<readonly Record<string, unknown>[]> {
  const frames = (await response.text()).split("\n\n");
  expect(frames.slice(-2)).toEqual(["data: [DONE]", ""]);
  return frames
    .slice(0, -2)
    .map((frame) => JSON.parse(frame.slice("data: ".length)) as Record<string, unknown>);
}

describe("the parts of an answer", () => {
  test.for(Object.entries(architectureCases))(
    "the parts of an answer contain the text of stream.text(), with and without sub-agents: %s",
    async ([, { agent, input, reply }]) => {
      await using runtime = await openRuntime({ unknownPrice: "ignore" });
      const run = await runtime.submit(agent(new InProcessServices(reply)), input, { streaming: true });
      const text = await textOf(run);
      for (const subAgents of [false, true]) {
        const parts = await all(followAnswer(run, { subAgents }));
        expect(pieces(parts)).toBe(text);
        expect(parts.filter(({ type }) => type === "end")).toEqual([parts.at(-1)]);
        const { usage, turns } = await run.result();
        expect(parts.at(-1)).toMatchObject({ type: "end", status: "completed", usage, turns });
      }
    },
  );

  it("the parts of an answer restart a message after a broken attempt, and their text is that of stream.text()", async () => {
    const broken = { reasoning: "Hm.", deltas: ["Take the r"], cut: true };
    const guide = new Agent({
      name: "guide",
      model: scriptedModel([broken, { deltas: ["Take the ", "pass."] }]),
    });
    await using runtime = await openRuntime({ retry: { baseDelayMs: 1 }, unknownPrice: "ignore" });
    const stream = guide.stream("Which way?", { runtime });
    const run = await stream.run();
    const [parts, text] = await Promise.all([all(followAnswer(run)), all(stream.text())]);
    expect(parts.map(({ type }) => type)).toContain("message_reset");
    expect(pieces(parts)).toBe(text.join(""));
  });

  it("the parts of an answer have call ids that are unique in the store, also when a provider repeats an id", async () => {
    const look = tool({
      name: "look",
      description: "Looks.",
      inputSchema: { type: "object" },
      execute: (input) => JSON.stringify(input),
    });
    const call = (at: number) => ({ name: "look", callId: "same", input: { at } });
    const model = scriptedModel([{ toolCalls: [call(1), call(2)] }, { toolCalls: [call(3)] }, "Done."]);
    const agent = new Agent({ name: "scout", model, tools: [look] });
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    const run = await runtime.submit(agent, "Look");
    const parts = await all(followAnswer(run));
    const calls = parts.flatMap((part) => (part.type === "tool_call" ? [[part.callId, part.input]] : []));
    expect(calls).toEqual([
      [`${run.runId}/same`, { at: 1 }],
      [`${run.runId}/same~2`, { at: 2 }],
      [`${run.runId}/same~3`, { at: 3 }],
    ]);
    const results = parts.flatMap((part) => (part.type === "tool_result" ? [part.callId] : []));
    expect(results.toSorted()).toEqual(calls.map(([callId]) => callId));
  });
});

describe("stream.toResponse()", () => {
  it("stream.toResponse() answers with a UI message stream that ends with the usage", async () => {
    const guide = new Agent({ name: "guide", model: scriptedModel([{ deltas: ["Take ", "the pass."] }]) });
    const stream = guide.stream("Which way?");
    const response = stream.toResponse({ headers: { "x-own": "1" } });
    expect([response.status, response.headers.get("x-own")]).toEqual([200, "1"]);
    expect(response.headers.get("x-vercel-ai-ui-message-stream")).toBe("v1");
    const chunks = await chunksOf(response);
    expect([...new Set(chunks.map(({ type }) => type))]).toEqual([
      "start",
      "start-step",
      "text-start",
      "text-delta",
      "text-end",
      "finish-step",
      "finish",
    ]);
    expect(chunks.map(({ delta = "" }) => delta).join("")).toBe("Take the pass.");
    const { usage, runId } = await stream.result();
    expect(chunks[0]).toMatchObject({ messageId: runId });
    expect(chunks.at(-1)).toMatchObject({
      finishReason: "stop",
      messageMetadata: { status: "completed", usage: { inputTokens: usage.inputTokens } },
    });
  });

  it("stream.toResponse() leaves the run alone when the client leaves, and cancels it with cancelOnBreak", async () => {
    for (const [cancelOnBreak, status] of [
      [false, "completed"],
      [true, "cancelled"],
    ] as const) {
      const gate = Promise.withResolvers<string>();
      const wait = tool({
        name: "wait",
        description: "Waits.",
        inputSchema: { type: "object" },
        execute: () => gate.promise,
      });
      const model = scriptedModel([{ text: "I wait.", toolCalls: [{ name: "wait", input: {} }] }, "Done."]);
      const agent = new Agent({ name: "waiter", model, tools: [wait] });
      await using runtime = await openRuntime({ unknownPrice: "ignore" });
      const stream = agent.stream("Go", { runtime, cancelOnBreak });
      const reader = stream.toResponse().body?.getReader();
      await reader?.read();
      await reader?.read();
      await reader?.cancel();
      gate.resolve("over");
      expect((await stream.result()).status).toBe(status);
    }
  });

  it("stream.toResponse() sends the error of a run that cannot start or fails, without the text of unexpected errors", async () => {
    await using runtime = await openRuntime({ retry: { enabled: false }, unknownPrice: "ignore" });
    const failing = new Agent({
      name: "failing",
      model: scriptedModel([{ error: new TypeError("secret") }]),
    });
    const chunks = await chunksOf(failing.stream("Go", { runtime }).toResponse());
    expect(chunks.at(-1)).toMatchObject({ type: "error", errorText: expect.not.stringContaining("secret") });
    const refused = failing.stream("", { runtime }).toResponse();
    expect(await chunksOf(refused)).toMatchObject([
      { type: "error", errorText: expect.stringContaining("empty") },
    ]);
    expect(() => failing.stream("Go", { runtime }).toResponse({ header: {} } as never)).toThrow(/headers/u);
  });
});
