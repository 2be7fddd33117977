import { expect, test } from "vitest";
import { IdleFlusher } from "../../../src/runtime/process/idle-flusher.ts";
import { systemEventLoop } from "../../../src/runtime/process/system-sources.ts";

/** Lets one turn of the event loop end. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

class CountingLog {
  writes = 0;

  writeIdle(): void {
    this.writes++;
  }
}

test("IdleFlusher writes a log once, after one full turn of the event loop", async () => {
  const flusher = new IdleFlusher(systemEventLoop);
  const log = new CountingLog();
  flusher.add(log);
  await nextTurn();
  expect(log.writes).toBe(0);
  await nextTurn();
  await nextTurn();
  expect(log.writes).toBe(1);
});

test("IdleFlusher does not write a log whose wait was cancelled", async () => {
  const flusher = new IdleFlusher(systemEventLoop);
  const written = new CountingLog();
  const other = new CountingLog();
  flusher.add(written).cancel();
  flusher.add(other);
  await nextTurn();
  await nextTurn();
  await nextTurn();
  expect([written.writes, other.writes]).toEqual([0, 1]);
});

test("IdleFlusher writes a log that is added again after its wait was cancelled", async () => {
  const flusher = new IdleFlusher(systemEventLoop);
  const log = new CountingLog();
  flusher.add(log).cancel();
  await nextTurn();
  flusher.add(log);
  await nextTurn();
  expect(log.writes).toBe(0);
  await nextTurn();
  await nextTurn();
  expect(log.writes).toBe(1);
});

test("a log that is added again to IdleFlusher keeps its place within a turn of the event loop, and loses it later", async () => {
  const flusher = new IdleFlusher(systemEventLoop);
  const log = new CountingLog();
  const first = flusher.add(log);
  first.cancel();
  expect(flusher.add(log, first)).toBe(first);
  first.cancel();
  await nextTurn();
  const second = flusher.add(log, first);
  expect(second).not.toBe(first);
  expect([first.isPending, second.isPending]).toEqual([false, true]);
  await nextTurn();
  expect(log.writes).toBe(0);
  await nextTurn();
  expect([log.writes, second.isPending]).toEqual([1, false]);
});
