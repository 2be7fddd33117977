import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { Agent } from "../../src/assembly/agent.ts";
import { fallback, tool } from "../../src/capabilities/index.ts";
import type { JsonValue, RunResult } from "../../src/kernel/index.ts";
import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { stopReasonServer, type StopReasonServer, type Wire, type WireAnswer } from "./stop-reason-server.ts";

let server: StopReasonServer;
beforeAll(async () => {
  server = await stopReasonServer();
});
beforeEach(() => {
  server.script.length = 0;
  server.sent.length = 0;
});
afterAll(() => server.stop());

let executed: JsonValue[] = [];
const lookup = tool({
  name: "lookup",
  description: "Looks up a town",
  inputSchema: { type: "object", properties: { town: { type: "string" } } },
  execute: (input: JsonValue) => {
    executed.push(input);
    return "found";
  },
});

type Way = "generated" | "streamed";
const ways: readonly Way[] = ["generated", "streamed"];

async function run(wire: Wire, way: Way, script: readonly WireAnswer[]): Promise<RunResult<JsonValue>> {
  executed = [];
  server.script.push(...script);
  const runtime = await createRuntime({ unknownPrice: "ignore" });
  const agent = new Agent({ name: "clerk", model: server.models[wire], tools: [lookup] });
  const result = await (await runtime.submit(agent, "Go.", { streaming: way === "streamed" })).result();
  await runtime.close();
  return result;
}

interface Row {
  readonly wire: Wire;
  /** The provider's own reason. */
  readonly reason: string;
  readonly answer: WireAnswer;
  readonly expected: {
    readonly status: string;
    readonly finishReason: string;
    readonly error: string | null;
    readonly output: unknown;
  };
}

const done = { status: "completed", finishReason: "stop", error: null, output: "All." };
const cut = { status: "max_output", finishReason: "length", error: null, output: "Half an" };
const blocked = {
  status: "failed",
  finishReason: "content_blocked",
  error: "model_content_blocked",
  output: "Half an",
};
const refused = { ...blocked, output: "I cannot." };
const half = (reason: string): WireAnswer => ({ text: "Half an", reason });

const rows: readonly Row[] = [
  { wire: "openai", reason: "completed", answer: { text: "All." }, expected: done },
  { wire: "openai", reason: "max_output_tokens", answer: half("max_output_tokens"), expected: cut },
  { wire: "openai", reason: "content_filter", answer: half("content_filter"), expected: blocked },
  { wire: "openai", reason: "refusal", answer: { refusal: "I cannot." }, expected: refused },
  { wire: "openai chat", reason: "stop", answer: { text: "All." }, expected: done },
  { wire: "openai chat", reason: "length", answer: half("length"), expected: cut },
  { wire: "openai chat", reason: "content_filter", answer: half("content_filter"), expected: blocked },
  { wire: "openai chat", reason: "refusal", answer: { refusal: "I cannot." }, expected: refused },
  { wire: "anthropic", reason: "end_turn", answer: { text: "All." }, expected: done },
  {
    wire: "anthropic",
    reason: "stop_sequence",
    answer: { text: "All.", reason: "stop_sequence" },
    expected: done,
  },
  { wire: "anthropic", reason: "max_tokens", answer: half("max_tokens"), expected: cut },
  {
    wire: "anthropic",
    reason: "model_context_window_exceeded",
    answer: half("model_context_window_exceeded"),
    expected: cut,
  },
  { wire: "anthropic", reason: "refusal", answer: half("refusal"), expected: blocked },
  { wire: "google", reason: "STOP", answer: { text: "All." }, expected: done },
  { wire: "google", reason: "MAX_TOKENS", answer: half("MAX_TOKENS"), expected: cut },
  { wire: "google", reason: "SAFETY", answer: half("SAFETY"), expected: blocked },
  { wire: "google", reason: "RECITATION", answer: half("RECITATION"), expected: blocked },
  { wire: "google", reason: "PROHIBITED_CONTENT", answer: half("PROHIBITED_CONTENT"), expected: blocked },
  {
    wire: "google",
    reason: "blockReason",
    answer: { blockReason: "SAFETY" },
    expected: { ...blocked, output: null },
  },
  {
    wire: "google",
    reason: "LANGUAGE",
    answer: { text: "Hm.", reason: "LANGUAGE" },
    expected: { status: "completed", finishReason: "other", error: null, output: "Hm." },
  },
];

const cases = rows.flatMap((row) => ways.map((way) => ({ ...row, way })));

test.each(cases)(
  "a run on $wire whose answer ends with $reason is $expected.status with finishReason $expected.finishReason ($way)",
  async ({ wire, way, answer, expected }) => {
    const result = await run(wire, way, [answer]);
    const { status, finishReason, error, output } = result;
    expect({ status, finishReason, error: error?.code ?? null, output }).toEqual(expected);
    expect(server.sent, "no automatic continuation and no retry").toHaveLength(1);
    expect(result.usage).toMatchObject({ inputTokens: 10, outputTokens: 4 });
    expect(result.unreported.tokens).toBe(0);
  },
);

test.each(
  ["error", "network_error", "insufficient_system_resource"].flatMap((reason) =>
    ways.map((way) => ({ reason, way })),
  ),
)(
  "a model answer with the finish reason $reason and without an error object is a failed call ($way)",
  async ({ reason, way }) => {
    server.script.push(half(reason));
    const runtime = await createRuntime({ unknownPrice: "ignore", retry: false });
    const agent = new Agent({ name: "clerk", model: server.models["openai chat"] });
    const handle = await runtime.submit(agent, "Go.", { streaming: way === "streamed" });
    const { status, error } = await handle.result();
    await runtime.close();
    expect({ status, code: error?.code }).toEqual({ status: "failed", code: "model_server_error" });
    expect(error?.message).toContain(`the answer failed with the finish reason "${reason}"`);
  },
);

test.each(ways)("B3: a failed model answer is charged the usage that came with it (%s)", async (way) => {
  server.script.push(half("error"));
  await using runtime = await createRuntime({ unknownPrice: "ignore", retry: false });
  const agent = new Agent({ name: "clerk", model: server.models["openai chat"] });
  const handle = await runtime.submit(agent, "Go.", { streaming: way === "streamed" });
  expect((await handle.result()).status).toBe("failed");
  await vi.waitFor(async () =>
    expect(await handle.summary()).toMatchObject({
      usage: { inputTokens: 10, outputTokens: 4 },
      unreported: { tokens: 0 },
    }),
  );
});

const lengthReasons: readonly (readonly [Wire, string])[] = [
  ["openai", "max_output_tokens"],
  ["openai chat", "length"],
  ["anthropic", "max_tokens"],
  ["google", "MAX_TOKENS"],
];

describe.each(lengthReasons.flatMap(([wire, reason]) => ways.map((way) => ({ wire, reason, way }))))(
  "a tool call on $wire ($way)",
  ({ wire, reason, way }) => {
    test("a tool call is not executed if the model's reply was cut at the output limit, even if its arguments are complete", async () => {
      for (const call of ['{"town":"Tou', '{"town":"Tours"}']) {
        const result = await run(wire, way, [{ text: "Let me see.", call, reason }]);
        expect(result).toMatchObject({ status: "max_output", finishReason: "length", output: "Let me see." });
        expect(executed).toEqual([]);
      }
    });

    test("a tool call is executed if the model's reply is complete, and the finish reason is that of the final answer", async () => {
      const result = await run(wire, way, [{ call: '{"town":"Tours"}' }, { text: "Found." }]);
      expect(result).toMatchObject({ status: "completed", finishReason: "stop", output: "Found." });
      expect(executed).toEqual([{ town: "Tours" }]);
    });
  },
);

describe.each(ways)("a turn that Anthropic pauses (%s)", (way) => {
  test("a turn that Anthropic pauses continues with the paused message until the answer is complete", async () => {
    const result = await run("anthropic", way, [
      { text: "One, ", reason: "pause_turn" },
      { text: "two, ", reason: "pause_turn" },
      { text: "three." },
    ]);
    expect(result).toMatchObject({ status: "completed", finishReason: "stop", output: "One, two, three." });
    const { messages } = server.sent[2] as { messages: { role: string }[] };
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
    expect(JSON.stringify(messages)).toContain("two,");
  });

  test("a turn that Anthropic pauses continues at most five times", async () => {
    const paused = Array.from({ length: 9 }, () => ({ text: "On. ", reason: "pause_turn" }));
    const result = await run("anthropic", way, paused);
    expect(result).toMatchObject({ status: "max_turns", finishReason: "other", output: "On. ".repeat(6) });
    expect(result.interruptionReason).toBe("max_pauses");
    expect(server.sent).toHaveLength(6);
  });
});

describe.each(ways)("a malformed tool call of Google (%s)", (way) => {
  const malformed = { reason: "MALFORMED_FUNCTION_CALL" };

  test("a malformed tool call of Google is retried once, and both model calls are paid with the usage that they report", async () => {
    const result = await run("google", way, [malformed, { text: "All." }]);
    expect(result).toMatchObject({ status: "completed", finishReason: "stop", output: "All." });
    expect(result.usage).toMatchObject({ inputTokens: 20, outputTokens: 8 });
    expect(result.unreported.tokens).toBe(0);
    expect(result.turns).toBe(1);
  });

  test("a malformed tool call of Google fails the run with model_format_error if the retry is malformed too", async () => {
    const result = await run("google", way, [malformed, malformed, { text: "All." }]);
    expect(result).toMatchObject({ status: "failed", error: { code: "model_format_error" } });
    expect(server.sent).toHaveLength(2);
    expect(result.usage).toMatchObject({ inputTokens: 20, outputTokens: 8 });
  });
});

test("an answer that the provider withholds passes to the next model if `when` of fallback() accepts content_blocked", async () => {
  server.script.push({ reason: "refusal" }, { text: "Gladly." });
  const { anthropic, "openai chat": chat } = server.models;
  const model = fallback([anthropic, chat], { when: ({ kind }) => kind === "content_blocked" });
  const runtime = await createRuntime({ unknownPrice: "ignore" });
  const agent = new Agent({ name: "clerk", model });
  const result = await (await runtime.submit(agent, "Go.")).result();
  await runtime.close();
  expect(result).toMatchObject({ status: "completed", finishReason: "stop", output: "Gladly." });
  expect(result.usage).toMatchObject({ inputTokens: 20, outputTokens: 8 });
});
