import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { memoryStore, openRuntime, sha256, type RuntimeOptions } from "../../src/runtime/index.ts";

test.for<RuntimeOptions>([
  { keepEndedRunsMs: -1 },
  { keepEndedRunsMs: Number.NaN },
  { concurrency: 0 },
  { concurrency: Number.NaN },
  { pollMs: 0 },
  { suspendAfterMs: -1 },
  { closeGraceMs: Number.NaN },
  { warnAt: 2 },
])("%o is refused, and the store that was opened for it is closed", async (options) => {
  const folder = await mkdtemp(join(tmpdir(), "reeve-open-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const store = `sqlite:${join(folder, "store.db")}` as const;
  const [name] = Object.keys(options);
  await expect(openRuntime({ store, ...options })).rejects.toMatchObject({
    code: "invalid_argument",
    message: expect.stringContaining(`${name} is `),
  });
  // SQLite's log goes with the last connection.
  expect((await readdir(folder)).filter((each) => each.endsWith("-wal"))).toEqual([]);
});

test("a store that was handed in stays open, and no signal is listened for, when a runtime cannot be opened", async () => {
  const store = memoryStore({ hash: sha256 });
  let closed = false;
  let listeners = 0;
  const handed = {
    ...store,
    close: async () => {
      closed = true;
    },
    onChange: () => {
      listeners++;
      return () => {
        listeners--;
      };
    },
    leases: { ...store.leases, enlist: () => Promise.reject(new Error("full")) },
  } as never;
  await expect(openRuntime({ store: handed, closeOn: ["SIGUSR2"] })).rejects.toThrow("full");
  expect({ closed, listeners, signals: process.listenerCount("SIGUSR2") }).toEqual({
    closed: false,
    listeners: 0,
    signals: 0,
  });
});
