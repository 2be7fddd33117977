import { expect, it } from "vitest";
import { agent, setUp, settle } from "../runtime-setup.ts";

const clerk = agent("clerk", async (ctx) =>
  ctx.input === "wait" ? ctx.waitForSignal("go").then(() => "done") : "done",
);

it("collects runs that ended before a time, and leaves those that have not", async () => {
  const { runtime, clock } = await setUp();
  const run = await runtime.submit(clerk, "answer");
  await run.result();
  const waiting = await runtime.submit(clerk, "wait");
  await settle();
  expect(await runtime.collect({ endedBefore: clock.now() })).toBe(0);
  await clock.advance(1);
  expect(await runtime.collect({ endedBefore: clock.now() })).toBe(1);
  expect(await runtime.find(run.runId)).toBeUndefined();
  expect(await runtime.find(waiting.runId)).toBeDefined();
});

it("collects by itself what ended longer ago than it is to be kept", async () => {
  const { runtime, clock } = await setUp({ keepEndedRunsMs: 5_000 });
  const run = await runtime.submit(clerk, "answer");
  await run.result();
  await clock.advance(5_000);
  await settle();
  expect(await runtime.find(run.runId)).toBeDefined();
  await clock.advance(5_000);
  await settle();
  expect(await runtime.find(run.runId)).toBeUndefined();
  await runtime.close();
});

it("keeps none where it is to keep none: who waits for the result has it, and a reader is left to read", async () => {
  const { runtime, clock } = await setUp({ keepEndedRunsMs: 0 });
  const read = await runtime.submit(clerk, "answer");
  const reader = read.events()[Symbol.asyncIterator]();
  await reader.next();
  expect((await read.result()).output).toBe("done");
  const run = await runtime.submit(clerk, "answer");
  expect((await run.result()).output).toBe("done");
  await clock.advance(101);
  await settle();
  expect(await runtime.find(run.runId)).toBeUndefined();
  expect(await runtime.find(read.runId)).toBeDefined();
  await reader.return?.();
  await clock.advance(100);
  await settle();
  expect(await runtime.find(read.runId)).toBeUndefined();
  await runtime.close();
});

it("refuses to keep for a time that is none", async () => {
  await expect(setUp({ keepEndedRunsMs: -1 })).rejects.toMatchObject({ code: "invalid_argument" });
});
