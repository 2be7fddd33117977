import { createInterface } from "node:readline";
import { setImmediate } from "node:timers/promises";
import type { Lease, Store } from "../../../../src/kernel/index.ts";
import { sha256 } from "../../../../src/runtime/process/sha256.ts";
import { sqliteStore } from "../../../../src/runtime/stores/sqlite/store.ts";
import {
  ownRun,
  placed,
  rootTask,
  runEnd,
  stepRecord,
  turnStart,
} from "../../../../src/testing/contracts/store-fixtures.ts";

/**
 * Runs one task on a store, in a process that a test starts with the arguments `PATH TASK NAME`. Prints `ready`, then
 * the output of the task.
 */
const [, , path = "", task = "", name = "worker"] = process.argv;
const say = (line: string): boolean => process.stdout.write(`${line}\n`);

const tasks: Readonly<Record<string, (store: Store) => Promise<void>>> = {
  /** Keeps the file open. */
  async open() {
    say("ready");
  },

  /** Claims all ready runs. For each input line, prints whether this process still owns them. */
  async claim(store) {
    await store.leases.enlist(name);
    const leases = await store.leases.claim({ workerId: name, limit: 100, now: 0 });
    say("ready");
    say(leases.map(({ runId }) => runId).join());
    const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
    while ((await lines.next()).done !== true) {
      for (const lease of leases) say(await owns(store, lease));
    }
  },

  /** Appends commits as fast as possible, and prints the number of each acknowledged commit. */
  async write(store) {
    const lease = await ownRun(store, name);
    say("ready");
    for (let number = 1; ; number++) {
      const events = [turnStart(lease.runId, number)];
      await store.journal.append(lease, {
        number,
        at: number,
        steps: [stepRecord(number, { number })],
        events,
      });
      say(`${number}`);
      await setImmediate();
    }
  },

  /** Streams a message as deltas, then records it. Each input line starts the next step. */
  async stream(store) {
    const lease = await ownRun(store, name);
    const { runId } = lease;
    const start = placed(runId, 1, { type: "message_start", data: { role: "assistant", attempt: 1 } });
    await store.journal.append(lease, { number: 1, at: 1, events: [start] });
    const piece = (offset: number, text: string): void =>
      store.events.putDelta(lease, {
        type: "message_update",
        runId,
        taskId: rootTask,
        messageSeq: 1,
        attempt: 1,
        offset,
        kind: "text",
        text,
      });
    say("ready");
    const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
    await lines.next();
    piece(0, "Hel");
    piece(3, "lo");
    await lines.next();
    const message = { role: "assistant", content: [{ type: "text", text: "Hello" }] } as const;
    const end = placed(runId, 2, { type: "message_end", data: { message } });
    await store.journal.append(lease, { number: 2, at: 2, events: [end, runEnd(runId, 3)] });
    say("recorded");
  },
};

async function owns(store: Store, lease: Lease): Promise<string> {
  try {
    await store.leases.check(lease);
    return "owned";
  } catch (error) {
    return (error as { code: string }).code;
  }
}

const store = await sqliteStore({ path, hash: sha256, watchEveryMs: 5 });
// Keeps the process alive until the test kills it.
setInterval(() => {}, 60_000);
await tasks[task]?.(store);
