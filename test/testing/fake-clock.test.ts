import { expect, test } from "vitest";
import { FakeClock } from "../../src/testing/index.ts";

test("the fake clock fires timers in order, each at its own time, and only when the clock passes them", async () => {
  const clock = new FakeClock(1_000);
  const fired: [string, number][] = [];
  const note = (name: string) => () => void fired.push([name, clock.now()]);
  clock.schedule(1_300, note("late"));
  clock.schedule(1_100, note("early"));
  clock.schedule(5_000, note("never"))();
  await clock.advance(100);
  expect(fired).toEqual([["early", 1_100]]);
  await clock.advance(900);
  expect(fired).toEqual([
    ["early", 1_100],
    ["late", 1_300],
  ]);
  expect([clock.now(), clock.pending]).toEqual([2_000, 0]);
});

test("a timer of the fake clock that a timer sets fires in the same advance when it is due", async () => {
  const clock = new FakeClock(0);
  const fired: number[] = [];
  const tick = () => {
    fired.push(clock.now());
    if (fired.length < 3) clock.schedule(clock.now() + 10, tick);
  };
  clock.schedule(10, tick);
  await clock.advance(100);
  expect(fired).toEqual([10, 20, 30]);
});
