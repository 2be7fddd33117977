import { expect, test } from "vitest";
import { RetentionSweep } from "../../../src/runtime/worker/retention-sweep.ts";
import { FakeClock } from "../../../src/testing/index.ts";

function setUp(): { readonly ended: RetentionSweep; readonly sweeps: () => number } {
  let sweeps = 0;
  const collect = async (): Promise<void> => void sweeps++;
  const ended = new RetentionSweep({
    option: "keepEndedRunsMs",
    keepMs: 0,
    collect,
    clock: new FakeClock(),
    onError: () => undefined,
  });
  return { ended, sweeps: () => sweeps };
}

test("where many end in a turn of the event loop, those who waited for them go on before any is swept", async () => {
  const { ended, sweeps } = setUp();
  for (let count = 0; count < 50; count++) ended.note();
  for (let count = 0; count < 100; count++) await Promise.resolve();
  expect(sweeps()).toBe(0);
  await new Promise((resolve) => {
    process.nextTick(resolve);
  });
  expect(sweeps()).toBe(1);
  await ended.stop();
});

test("a few go with the turn of the event loop", async () => {
  const { ended, sweeps } = setUp();
  ended.note();
  await new Promise((resolve) => {
    process.nextTick(resolve);
  });
  expect(sweeps()).toBe(0);
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
  expect(sweeps()).toBe(1);
  await ended.stop();
});
