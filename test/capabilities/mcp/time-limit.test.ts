import { expect, it } from "vitest";
import { delay, TimeLimit, unlessAborted } from "../../../src/capabilities/mcp/time-limit.ts";
import { FakeClock } from "../../../src/testing/index.ts";

it("TimeLimit expires without activity, restarts with each renewal and pauses while a person is asked", async () => {
  const clock = new FakeClock();
  let over = 0;
  const limit = new TimeLimit(clock, 100, () => over++);
  await clock.advance(90);
  limit.renew();
  await clock.advance(90);
  const person = Promise.withResolvers<string>();
  const held = limit.heldDuring(person.promise);
  limit.renew();
  await clock.advance(10_000);
  expect(over).toBe(0);
  person.resolve("yes");
  expect(await held).toBe("yes");
  await clock.advance(101);
  expect(over).toBe(1);
});

it("TimeLimit leaves no timer behind, even if it ends while it is paused", async () => {
  const clock = new FakeClock();
  const limit = new TimeLimit(clock, 100, () => undefined);
  const person = Promise.withResolvers<void>();
  const held = limit.heldDuring(person.promise);
  limit.end();
  person.resolve();
  await held;
  const stopped = new AbortController();
  const resting = delay(clock, 100, stopped.signal);
  stopped.abort(new Error("enough"));
  await expect(resting).rejects.toThrow("enough");
  expect(clock.pending).toBe(0);
});

it("unlessAborted() ends the wait of one caller without ending the work for other callers", async () => {
  const work = Promise.withResolvers<number>();
  const impatient = new AbortController();
  const one = unlessAborted(work.promise, impatient.signal);
  const other = unlessAborted(work.promise, undefined);
  impatient.abort(new Error("no time"));
  await expect(one).rejects.toThrow("no time");
  work.resolve(1);
  expect(await other).toBe(1);
});

it("TimeLimit continues with the time that was left after a pause, and ends at its total if it is not renewed", async () => {
  const clock = new FakeClock();
  let over = 0;
  const limit = new TimeLimit(clock, 100, () => over++);
  await clock.advance(60);
  const person = Promise.withResolvers<void>();
  const held = limit.heldDuring(person.promise);
  await clock.advance(10_000);
  expect([over, limit.left]).toEqual([0, 40]);
  person.resolve();
  await held;
  await clock.advance(39);
  expect([over, limit.left]).toEqual([0, 1]);
  await clock.advance(1);
  expect(over).toBe(1);
});
