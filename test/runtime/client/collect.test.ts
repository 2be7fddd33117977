import { expect, it } from "vitest";
import { agent, setUp, settle } from "../runtime-setup.ts";

const clerk = agent("clerk", async (ctx) =>
  ctx.input === "wait" ? ctx.waitForSignal("go").then(() => "done") : "done",
);

it("collect() deletes runs that ended before the given time and keeps runs that have not ended", async () => {
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

it("a runtime with keepEndedRunsMs deletes a run when that time has passed since its end", async () => {
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

it("a runtime with keepEndedRunsMs: 0 deletes a run once its caller has the result and its reader has stopped", async () => {
  const { runtime, clock } = await setUp({ keepEndedRunsMs: 0 });
  const readRun = await runtime.submit(clerk, "answer");
  const reader = readRun.events()[Symbol.asyncIterator]();
  await reader.next();
  expect((await readRun.result()).output).toBe("done");
  const run = await runtime.submit(clerk, "answer");
  expect((await run.result()).output).toBe("done");
  await clock.advance(101);
  await settle();
  expect(await runtime.find(run.runId)).toBeUndefined();
  expect(await runtime.find(readRun.runId)).toBeDefined();
  await reader.return?.();
  await clock.advance(100);
  await settle();
  expect(await runtime.find(readRun.runId)).toBeUndefined();
  await runtime.close();
});

it("createRuntime refuses a negative keepEndedRunsMs", async () => {
  await expect(setUp({ keepEndedRunsMs: -1 })).rejects.toMatchObject({ code: "invalid_argument" });
});
