import { expect, test } from "vitest";
import { Priority, type SubmitOptions } from "../../../src/kernel/index.ts";
import { RunStartQueue } from "../../../src/runtime/worker/run-start-queue.ts";
import { EventLoopTurn } from "../../../src/runtime/process/event-loop-turn.ts";
import { agent, setUp } from "../runtime-setup.ts";

/** Begins when it may, and then goes on for some microtasks. */
async function begin(beginnings: RunStartQueue, name: string, said: string[]): Promise<void> {
  const turn = beginnings.waitTurn();
  if (turn !== undefined) await turn;
  said.push(`${name} begins`);
  for (let count = 0; count < 20; count++) await Promise.resolve();
  said.push(`${name} waits`);
}

test("one begins when the one before it has nothing to do but to wait", async () => {
  const beginnings = new RunStartQueue(new EventLoopTurn(60_000));
  const said: string[] = [];
  await Promise.all(["a", "b", "c"].map((name) => begin(beginnings, name, said)));
  await begin(beginnings, "d", said);
  expect(said).toEqual(["a", "b", "c", "d"].flatMap((name) => [`${name} begins`, `${name} waits`]));
});

test("the first in a breath has nothing to wait for", () => {
  const beginnings = new RunStartQueue(new EventLoopTurn(60_000));
  expect(beginnings.waitTurn()).toBeUndefined();
  expect(beginnings.waitTurn()).toBeInstanceOf(Promise);
});

test("none begins in a turn of the event loop that has lasted long", async () => {
  const turn = new EventLoopTurn(0);
  expect(turn.isExhausted).toBe(false);
  const beginnings = new RunStartQueue(turn);
  const said: string[] = [];
  const begun = begin(beginnings, "a", said);
  for (let count = 0; count < 100; count++) await Promise.resolve();
  expect(said).toEqual([]);
  await begun;
  expect(said).toEqual(["a begins", "a waits"]);
});

test("where nothing has to be waited for, a run is over before the next is begun", async () => {
  const { runtime } = await setUp();
  const said: string[] = [];
  const quick = agent("quick", async (ctx) => {
    said.push(`${ctx.input as string} begins`);
    for (let count = 0; count < 5; count++) await ctx.step("one", async () => count);
    said.push(`${ctx.input as string} ends`);
    return null;
  });
  const names = Array.from({ length: 200 }, (_, index) => `${index}`);
  const runs = await Promise.all(names.map((name) => runtime.submit(quick, name)));
  await Promise.all(runs.map((run) => run.result()));
  expect(said).toEqual(names.flatMap((name) => [`${name} begins`, `${name} ends`]));
});

/** Runs of nothing but steps, and in which order they ended. */
async function inOrder(
  lows: SubmitOptions,
  urgent: SubmitOptions,
): Promise<{ readonly ended: readonly unknown[] }> {
  const { runtime } = await setUp();
  const ended: unknown[] = [];
  const quick = agent("quick", async (ctx) => {
    for (let count = 0; count < 3; count++) await ctx.step("one", async () => count);
    ended.push(ctx.input);
    return null;
  });
  const runs = Array.from({ length: 200 }, (_, index) => runtime.submit(quick, index, lows));
  const late = await runtime.submit(quick, "late", urgent);
  await Promise.all([late.result(), ...runs.map(async (run) => (await run).result())]);
  return { ended };
}

test("who comes late with a higher rank begins before those who wait", async () => {
  const { ended } = await inOrder({ priority: Priority.LOW }, { priority: Priority.CRITICAL });
  expect(ended).toHaveLength(201);
  expect(ended.indexOf("late")).toBeLessThan(20);
});

test("a tenant that comes late does not wait for all runs of another", async () => {
  const { ended } = await inOrder({ tenantId: "many" }, { tenantId: "few" });
  expect(ended.indexOf("late")).toBeLessThan(20);
});
