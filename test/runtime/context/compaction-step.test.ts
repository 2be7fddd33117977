import { describe, expect, it } from "vitest";
import {
  assistantMessage,
  findUnpaired,
  messageText,
  toolMessage,
  Transcript,
  userMessage,
  type ChatMessage,
  type CompactionStep,
  type JsonValue,
} from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { agent, setUp, settle } from "../runtime-setup.ts";

const call = (callId: string): ChatMessage =>
  assistantMessage([{ type: "tool_call", callId, toolName: "look", input: {} }]);
const result = (callId: string): ChatMessage =>
  toolMessage([
    { type: "tool_result", callId, toolName: "look", output: { type: "text", text: "seen" }, isError: false },
  ]);
const long = [
  userMessage("a"),
  assistantMessage("b"),
  userMessage("c"),
  call("1"),
  result("1"),
  assistantMessage("d"),
];

const shown = (transcript: Iterable<ChatMessage>): string[] =>
  [...transcript].map((each) => messageText(each));

describe("J4, S3: ctx.compact()", () => {
  it("ctx.compact() compacts once, pays once for its summary, and starts a digest chain that a replay repeats", async () => {
    const { runtime, clock, events, store } = await setUp({ suspendAfterMs: 100 });
    const model = scriptedModel(["it was about a and b", "and on"]);
    let compactions = 0;
    const seen: string[][] = [];
    const worker = agent(
      "worker",
      async (ctx) => {
        const compact: CompactionStep["compact"] = async (messages, inside) => {
          compactions++;
          const { message } = await inside.llm({ transcript: Transcript.of(messages.slice(0, 2)) });
          return [userMessage(messageText(message)), ...messages.slice(2)];
        };
        const { transcript, entryId, tokens } = await ctx.compact({
          transcript: Transcript.of(long),
          contextTokens: 1_000,
          compact,
        });
        seen.push(shown(transcript));
        await ctx.waitForSignal("go");
        await ctx.llm({ transcript: transcript.append(userMessage("go on")) });
        return [entryId, tokens < 1_000];
      },
      { models: { main: model } },
    );
    const run = await runtime.submit(worker, null);
    await settle();
    await clock.advance(101);
    await run.signal("go");
    const { output } = await run.result();
    expect(output).toEqual([`${run.runId}/t0/0`, true]);
    expect(seen).toEqual([seen[0], seen[0]]);
    expect(seen[0]).toEqual(["it was about a and b", "c", "", "", "d"]);
    expect({ compactions, calls: model.calls.length }).toEqual({ compactions: 1, calls: 2 });
    const told = (await events(run.runId)).filter(({ type }) => type.startsWith("session_"));
    expect(told.map(({ type }) => type)).toEqual(["session_before_compact", "session_compact"]);
    // Kept messages are not stored again.
    const records: string[] = [];
    for await (const { steps = [] } of store.journal.read(run.runId))
      for (const { kind, outcome } of steps) if (kind === "compaction") records.push(JSON.stringify(outcome));
    expect(records).toHaveLength(1);
    expect(records[0]).not.toContain("seen");
  });

  it("ctx.compact() returns the transcript unchanged when there is nothing to compact", async () => {
    const { runtime, events } = await setUp();
    const worker = agent("worker", async (ctx) => {
      const transcript = Transcript.of(long);
      const compacted = await ctx.compact({ transcript, contextTokens: 7, compact: async (all) => [...all] });
      return [compacted.transcript === transcript, compacted.entryId, compacted.tokens];
    });
    const run = await runtime.submit(worker, null);
    expect((await run.result()).output).toEqual([true, null, 7]);
    expect((await events(run.runId)).map(({ type }) => type)).not.toContain("session_compact");
  });

  it.each<[string, readonly number[]]>([
    ["call 1 of message 1 has no result", [2, 3, 5]],
    ["the result of 1 in message 0 has no call", [4, 5]],
  ])("J4, S3: ctx.compact() refuses a window in which %s", async (problem, kept) => {
    const { runtime } = await setUp();
    const worker = agent("worker", async (ctx): Promise<JsonValue> => {
      const compact: CompactionStep["compact"] = async (all) => kept.flatMap((at) => all[at] ?? []);
      await ctx.compact({ transcript: Transcript.of(long), contextTokens: 7, compact });
      return null;
    });
    const { error: failure } = await (await runtime.submit(worker, null)).result();
    expect(failure).toMatchObject({ code: "invalid_argument", message: expect.stringContaining(problem) });
  });
});

it("S1: callPairs() treats the calls of the last message as open", () => {
  expect(findUnpaired([...long, call("2")])).toBeUndefined();
  expect(findUnpaired([call("2"), userMessage("never mind")])).toBe("call 2 of message 0 has no result");
});
