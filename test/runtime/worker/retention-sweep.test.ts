import { expect, test } from "vitest";
import { systemEventLoop } from "../../../src/runtime/process/system-sources.ts";
import { RetentionSweep } from "../../../src/runtime/worker/retention-sweep.ts";
import { FakeClock } from "../../../src/testing/index.ts";

function setUp(): { readonly retention: RetentionSweep; readonly sweeps: () => number } {
  let sweeps = 0;
  const collect = async (): Promise<void> => void sweeps++;
  const retention = new RetentionSweep({
    keepMs: 0,
    collect,
    clock: new FakeClock(),
    eventLoop: systemEventLoop,
    onError: () => undefined,
  });
  return { retention, sweeps: () => sweeps };
}

test("when many runs end in one turn of the event loop, their callers continue before the runs are deleted", async () => {
  const { retention, sweeps } = setUp();
  for (let count = 0; count < 50; count++) retention.note();
  for (let count = 0; count < 100; count++) await Promise.resolve();
  expect(sweeps()).toBe(0);
  await new Promise((resolve) => {
    process.nextTick(resolve);
  });
  expect(sweeps()).toBe(1);
  await retention.stop();
});

test("a single run that has ended is deleted at the end of the turn of the event loop", async () => {
  const { retention, sweeps } = setUp();
  retention.note();
  await new Promise((resolve) => {
    process.nextTick(resolve);
  });
  expect(sweeps()).toBe(0);
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
  expect(sweeps()).toBe(1);
  await retention.stop();
});
