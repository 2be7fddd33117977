import { expect, test } from "vitest";
import {
  Agent,
  memoryStore,
  openRuntime,
  sessionCompaction,
  sha256,
  summarization,
  summarizeIn,
  summarizeWith,
  tool,
} from "../../../../src/entries/index.ts";
import {
  assistantMessage,
  messageText,
  Transcript,
  userMessage,
  type ModelRequest,
  type SessionEntry,
} from "../../../../src/kernel/index.ts";
import { scriptedModel } from "../../../../src/testing/index.ts";
import { agent, gate, setUp, settle } from "../../../runtime/runtime-setup.ts";
import { findRun } from "../../../runtime/find-run.ts";

const isSummaryCall = ({ messages }: ModelRequest): boolean =>
  messages.some((message) => messageText(message).includes("<conversation>"));

const look = tool({
  name: "look",
  description: "Looks",
  inputSchema: { type: "object", properties: {} },
  execute: () => "y".repeat(4_000),
});
const asks = { toolCalls: [{ name: "look", input: {} }] };

test("a summary is a model call of the run: it is charged to the run's budget, and the stored session stays complete", async () => {
  const model = scriptedModel([asks, asks, "Looked once.", asks, "Looked twice.", "Done."]);
  const store = memoryStore({ hash: sha256 });
  const runtime = await openRuntime({ store, unknownPrice: "ignore" });
  const porter = new Agent({
    name: "porter",
    model,
    tools: [look],
    compaction: {
      strategy: (summarize) => summarization({ summarize, maxTokens: 2_000, keepRecentTokens: 1_100 }),
    },
  });
  const run = await runtime.submit(porter, "Look three times.");
  const result = await run.result();
  expect(result).toMatchObject({ status: "completed", output: "Done.", turns: 6 });
  expect(model.calls.map(isSummaryCall)).toEqual([false, false, true, false, true, false]);
  const told: unknown[] = [];
  for await (const { type, data } of store.events.read(run.runId))
    if (type === "architecture_event") told.push(data);
  expect(told).toMatchObject([
    { name: "agent.messages_snipped", data: { messagesBefore: 5, messagesAfter: 4 } },
    { name: "agent.messages_snipped", data: { messagesBefore: 6, messagesAfter: 4 } },
  ]);
  // The second summary updates the first and receives only messages that are new since then.
  const second = messageText(model.calls[4]?.messages.at(-1) ?? userMessage(""));
  expect(second).toContain("<previous-summary>\nLooked once.\n</previous-summary>");
  expect(second.match(/\[result of look\]/g)).toHaveLength(1);
  const entries = await store.sessions.read(result.sessionId);
  const roles = entries.map(({ entry }) => (entry.type === "message" ? entry.message.role : entry.type));
  expect(roles).toEqual(["user", "assistant", "tool", "assistant", "tool", "assistant", "tool", "assistant"]);
  await runtime.close();
});

test("J1: a run that another process resumes pays for no compaction summary twice and sees the same window", async () => {
  const { runtime, store, open, clock } = await setUp({ suspendAfterMs: 100 });
  const model = scriptedModel(["Summary.", "First.", "Second."]);
  const talk = Transcript.of([userMessage("x".repeat(8_000)), assistantMessage("ok"), userMessage("now")]);
  const shown: string[][] = [];
  const worker = () =>
    agent(
      "worker",
      async (ctx) => {
        const strategy = summarization({
          summarize: summarizeIn(ctx),
          maxTokens: 500,
          keepRecentTokens: 100,
        });
        const window = Transcript.of(await strategy.compact(talk.slice()));
        shown.push([...window].map(messageText));
        await ctx.llm({ transcript: window });
        await ctx.waitForSignal("go");
        await ctx.llm({ transcript: window.append(userMessage("more")) });
      },
      { models: { main: model } },
    );
  let run = await runtime.submit(worker(), null);
  await settle();
  await clock.advance(1_000);
  await runtime.close();
  await store.leases.dismiss("worker-1");
  const next = await open();
  next.register(worker());
  run = await findRun(next, run);
  await run.signal("go");
  await clock.advance(1_000);
  expect(await run.result()).toMatchObject({ status: "completed", turns: 3 });
  expect(model.calls.filter(isSummaryCall)).toHaveLength(1);
  expect(shown.length).toBeGreaterThan(1);
  expect(new Set(shown.map((texts) => texts.join("|"))).size).toBe(1);
});

test("J2: the two compaction summaries of a split turn are made concurrently, as branches of the task", async () => {
  const { runtime } = await setUp();
  const bothOpen = gate();
  let open = 0;
  const answer = ({ messages }: ModelRequest): string =>
    messageText(messages.at(-1) ?? userMessage("")).includes("still in progress") ? "Beginning." : "Before.";
  const model = scriptedModel([answer, answer]);
  const generate = model.generate.bind(model);
  model.generate = async (...args) => {
    if (++open === 2) bothOpen.resolve();
    await bothOpen.promise;
    return generate(...args);
  };
  const message = (index: number, text: string): SessionEntry => ({
    type: "message",
    id: `e${index}`,
    parentId: null,
    at: 0,
    runId: null,
    taskId: null,
    message: index % 2 === 0 ? userMessage(text) : assistantMessage(text),
  });
  const path = ["a", "b", "c", "d".repeat(900)].map((text, index) => message(index, text));
  const worker = agent(
    "worker",
    async (ctx) =>
      (await sessionCompaction({ summarize: summarizeIn(ctx), keepRecentTokens: 10 }).compact({
        path,
      })) as never,
    { models: { main: model } },
  );
  const { output } = await (await runtime.submit(worker, null)).result();
  expect(output).toEqual({
    summary: "Before.\n\n---\n\nThe turn under way began like this:\n\nBeginning.",
    firstKeptEntryId: "e3",
  });
});

test("a compaction summary that was cut at the output limit is discarded, and a later attempt can succeed", async () => {
  const history = [userMessage("x".repeat(8_000)), userMessage("now")];
  const cut = scriptedModel([{ text: "So far the us", stopReason: "length" }, "All of it."]);
  const strategy = summarization({ summarize: summarizeWith(cut), maxTokens: 500, keepRecentTokens: 100 });
  expect(await strategy.compact(history)).toBe(history);
  expect((await strategy.compact(history)).map(messageText)).toEqual([
    expect.stringContaining("<summary>\nAll of it.\n</summary>"),
    "now",
  ]);
});
