import { describe, expect, it } from "vitest";
import {
  HistoryRetention,
  userMessage,
  type HostedAgent,
  type JsonValue,
  type RunRecord,
  type SubmitOptions,
} from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { FakeClock } from "../../../src/testing/index.ts";
import { findRun } from "../find-run.ts";
import { agent, setUp, settle } from "../runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

removeStoresAfterEach();

const clerk = agent("clerk", async (ctx) => ctx.now());

/** An agent whose input is a list of texts, like the parts of a message. */
const reader: HostedAgent = agent("reader", async () => null, {
  messageOf: (input) =>
    userMessage((input as readonly string[]).map((text) => ({ type: "text", text }) as const)),
});

async function recordOf(
  hosted: HostedAgent,
  input: JsonValue,
  options: SubmitOptions = {},
): Promise<RunRecord | undefined> {
  const { runtime, store } = await setUp();
  const run = await runtime.submit(hosted, input, options);
  const record = await store.journal.find(run.runId);
  await runtime.close();
  return record;
}

const titles: readonly (readonly [
  what: string,
  hosted: HostedAgent,
  input: JsonValue,
  title: string | null,
])[] = [
  ["a short text", clerk, "Compare the bindings", "Compare the bindings"],
  ["lines and tabs", clerk, "\n  Compare\r\n\tthe   bindings \n", "Compare the bindings"],
  ["80 code points of an emoji", clerk, "\u{1F600}".repeat(200), "\u{1F600}".repeat(80)],
  ["a text of 1 MB", clerk, "x".repeat(1_000_000), "x".repeat(80)],
  ["1 MB of blanks before the text", clerk, `${" ".repeat(1_000_000)}end`, "end"],
  ["terminal control sequences", clerk, "\u001B[31mred\u0007", "[31mred"],
  ["half of a surrogate pair", clerk, "a\uD800b", "a\uFFFDb"],
  ["nothing but blanks", clerk, " \n\t ", null],
  ["no text", clerk, { city: "Rome" }, null],
  ["the text parts of a message", reader, ["Compare", "the bindings"], "Compare the bindings"],
];

for (const [what, hosted, input, title] of titles)
  it(`the title of a run is one line of at most 80 code points for ${what}`, async () => {
    expect((await recordOf(hosted, input))?.title).toBe(title);
  });

it("a run whose text is not retained has no title, and its metadata is empty after its end", async () => {
  for (const retention of [HistoryRetention.NONE, HistoryRetention.RUN])
    expect((await recordOf(clerk, "secret", { retention }))?.title).toBe(null);
  const { runtime, store } = await setUp();
  const options = { metadata: { ticket: "secret" }, retention: HistoryRetention.NONE };
  const run = await runtime.submit(clerk, "secret", options);
  await run.result();
  expect((await store.journal.find(run.runId))?.metadata).toEqual({});
});

it("a run that inbox messages start takes its title from the first message", async () => {
  const { runtime } = await setUp();
  const receiver = agent("receiver", async () => null);
  const sender = agent("sender", async (ctx) => ctx.send(receiver.id, "Please file this"));
  runtime.register(receiver);
  await (await runtime.submit(sender, null)).result();
  await settle();
  const { runs } = await runtime.list({ agentId: receiver.id });
  expect(runs.map(({ title, kind }) => [title, kind])).toEqual([["Please file this", "invocation"]]);
});

describe("what submit() refuses", () => {
  const refused: readonly (readonly [what: string, options: object, message: RegExp])[] = [
    ["NaN as startAt", { startAt: Number.NaN }, /invalid startAt NaN of a run of clerk: expected a time/u],
    ["a fraction as startAt", { startAt: 1.5 }, /invalid startAt 1\.5/u],
    ["a negative startAt", { startAt: -1 }, /invalid startAt -1/u],
    ["Infinity as startAt", { startAt: Infinity }, /invalid startAt Infinity/u],
    ["a text as startAt", { startAt: "tomorrow" }, /invalid startAt "tomorrow"/u],
    ["null as startAt", { startAt: null }, /invalid startAt null/u],
    [
      "an array as metadata",
      { metadata: [] },
      /invalid metadata of a run of clerk: expected an object, not an array/u,
    ],
    ["a text as metadata", { metadata: "x" }, /invalid metadata .* not "x"/u],
    ["null as metadata", { metadata: null }, /invalid metadata .* not null/u],
    ["metadata that is not JSON", { metadata: { at: Number.NaN } }, /metadata of a run of clerk/u],
    ["metadata with a function", { metadata: { at: () => 1 } }, /metadata of a run of clerk/u],
    [
      "metadata that is too large",
      { metadata: { text: "x".repeat(17 << 20) } },
      /metadata of a run of clerk/u,
    ],
  ];
  for (const [what, options, message] of refused)
    it(`submit() refuses ${what}, and creates no run`, async () => {
      const { runtime } = await setUp();
      await expect(runtime.submit(clerk, "go", options as SubmitOptions)).rejects.toThrow(message);
      expect((await runtime.list()).runs).toEqual([]);
    });
});

for (const [storeName, prepare] of twoStores)
  describe(`runs with a later start on the ${storeName} store`, () => {
    it("L9: a run starts at its startAt, and its deadline counts from there", async () => {
      const openStore = await prepare();
      const clock = new FakeClock();
      await using runtime = await createRuntime({ store: await openStore(), clock, pollMs: 60_000 });
      const startAt = clock.now() + 10_000;
      const late = agent("late", async (ctx) => {
        const now = await ctx.now();
        await ctx.sleep(900);
        return now;
      });
      const run = await runtime.submit(late, "go", { startAt, budget: { deadlineMs: 1_000 } });
      const [pending] = (await runtime.list()).runs;
      expect(pending).toMatchObject({ status: "pending", waitsFor: ["time"], startAt });
      await clock.advance(9_999);
      expect((await runtime.list()).runs[0]?.status).toBe("pending");
      await clock.advance(1);
      await settle();
      await clock.advance(900);
      expect(await run.result()).toMatchObject({ status: "completed", output: startAt });
    });

    it("L9: another process starts a scheduled run after the process that submitted it has ended", async () => {
      const openStore = await prepare();
      const clock = new FakeClock();
      const first = await createRuntime({ store: await openStore(), clock });
      const submitted = await first.submit(clerk, "go", { startAt: clock.now() + 60_000 });
      await first.close();
      await using second = await createRuntime({ store: await openStore(), clock });
      second.register(clerk);
      await clock.advance(59_999);
      expect((await second.list()).runs).toMatchObject([{ status: "pending", waitsFor: ["time"] }]);
      await clock.advance(1);
      await settle();
      const run = await findRun(second, submitted);
      expect((await run.result()).status).toBe("completed");
    });

    it("L9: a scheduled run can be cancelled before its start and never runs code", async () => {
      const openStore = await prepare();
      const clock = new FakeClock();
      let calls = 0;
      const counted = agent("counted", async () => ++calls);
      await using runtime = await createRuntime({ store: await openStore(), clock });
      const run = await runtime.submit(counted, "go", { startAt: clock.now() + 60_000 });
      await run.cancel("not needed");
      expect((await run.result()).status).toBe("cancelled");
      await clock.advance(60_000);
      expect(calls).toBe(0);
    });

    it("L9: a signal to a scheduled run is kept, and does not start the run early", async () => {
      const openStore = await prepare();
      const clock = new FakeClock();
      const listener = agent("listener", async (ctx) => [
        await ctx.now(),
        (await ctx.waitForSignal("go")) ?? null,
      ]);
      await using runtime = await createRuntime({ store: await openStore(), clock, suspendAfterMs: 1_000 });
      const startAt = clock.now() + 60_000;
      const run = await runtime.submit(listener, "go", { startAt });
      await run.signal("go", "early");
      await settle();
      await clock.advance(30_000);
      await settle();
      expect((await runtime.list()).runs).toMatchObject([{ status: "pending", waitsFor: ["time"] }]);
      await clock.advance(30_000);
      await settle();
      expect((await run.result()).output).toEqual([startAt, "early"]);
    });

    it("S5: a scheduled run does not take the input of another submission as steering", async () => {
      const openStore = await prepare();
      const clock = new FakeClock();
      await using runtime = await createRuntime({ store: await openStore(), clock });
      const options = { sessionId: "ses_talk", userId: "ann" };
      await runtime.submit(clerk, "later", { ...options, startAt: clock.now() + 60_000 });
      await expect(runtime.submit(clerk, "now", options)).rejects.toMatchObject({
        code: "agent_busy",
        message: expect.stringContaining("pending, waiting for its start time"),
      });
    });
  });
