import { expect, test } from "vitest";
import { Priority, type SubmitOptions } from "../../../src/kernel/index.ts";
import { RunStartQueue } from "../../../src/runtime/worker/local-engine.ts";
import { EventLoopTurn } from "../../../src/runtime/process/event-loop-turn.ts";
import { systemEventLoop } from "../../../src/runtime/process/system-sources.ts";
import { agent, setUp } from "../runtime-setup.ts";

/** Starts when the queue allows it, and then continues for some microtasks. */
async function start(queue: RunStartQueue, name: string, log: string[]): Promise<void> {
  const turn = queue.waitTurn();
  if (turn !== undefined) await turn;
  log.push(`${name} starts`);
  for (let count = 0; count < 20; count++) await Promise.resolve();
  log.push(`${name} blocks`);
}

test("a worker starts a run when the run before it is blocked", async () => {
  const queue = new RunStartQueue(systemEventLoop, new EventLoopTurn(systemEventLoop, 60_000));
  const log: string[] = [];
  await Promise.all(["a", "b", "c"].map((name) => start(queue, name, log)));
  await start(queue, "d", log);
  expect(log).toEqual(["a", "b", "c", "d"].flatMap((name) => [`${name} starts`, `${name} blocks`]));
});

test("waitTurn() of the start queue returns undefined for the first run of a tick and a promise for the second run", () => {
  const queue = new RunStartQueue(systemEventLoop, new EventLoopTurn(systemEventLoop, 60_000));
  expect(queue.waitTurn()).toBeUndefined();
  expect(queue.waitTurn()).toBeInstanceOf(Promise);
});

test("a worker starts no run in a turn of the event loop whose time is used up", async () => {
  const turn = new EventLoopTurn(systemEventLoop, 0);
  expect(turn.isExhausted).toBe(false);
  const queue = new RunStartQueue(systemEventLoop, turn);
  const log: string[] = [];
  const started = start(queue, "a", log);
  for (let count = 0; count < 100; count++) await Promise.resolve();
  expect(log).toEqual([]);
  await started;
  expect(log).toEqual(["a starts", "a blocks"]);
});

test("a run that never waits for I/O ends before the worker starts the next run", async () => {
  const { runtime } = await setUp();
  const log: string[] = [];
  const quick = agent("quick", async (ctx) => {
    log.push(`${ctx.input as string} starts`);
    for (let count = 0; count < 5; count++) await ctx.step("one", async () => count);
    log.push(`${ctx.input as string} ends`);
    return null;
  });
  const names = Array.from({ length: 200 }, (_, index) => `${index}`);
  const runs = await Promise.all(names.map((name) => runtime.submit(quick, name)));
  await Promise.all(runs.map((run) => run.result()));
  expect(log).toEqual(names.flatMap((name) => [`${name} starts`, `${name} ends`]));
});

/** Submits 200 runs and then a late one, and returns the inputs in the order in which the runs ended. */
async function endOrder(
  earlyOptions: SubmitOptions,
  lateOptions: SubmitOptions,
): Promise<{ readonly ended: readonly unknown[] }> {
  const { runtime } = await setUp();
  const ended: unknown[] = [];
  const quick = agent("quick", async (ctx) => {
    for (let count = 0; count < 3; count++) await ctx.step("one", async () => count);
    ended.push(ctx.input);
    return null;
  });
  const runs = Array.from({ length: 200 }, (_, index) => runtime.submit(quick, index, earlyOptions));
  const late = await runtime.submit(quick, "late", lateOptions);
  await Promise.all([late.result(), ...runs.map(async (run) => (await run).result())]);
  return { ended };
}

test("a worker starts a late run of higher priority before earlier runs that wait", async () => {
  const { ended } = await endOrder({ priority: Priority.LOW }, { priority: Priority.CRITICAL });
  expect(ended).toHaveLength(201);
  expect(ended.indexOf("late")).toBeLessThan(20);
});

test("a worker starts a late run of another tenant without waiting for all runs of the first tenant", async () => {
  const { ended } = await endOrder({ tenantId: "many" }, { tenantId: "few" });
  expect(ended.indexOf("late")).toBeLessThan(20);
});
