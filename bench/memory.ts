// Memory of this process: runs that wait in it, and long lists.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRuntime, sha256 } from "reeve";
import {
  formatAgentId,
  formatSessionId,
  type HostedAgent,
  type Runtime,
  type SessionChange,
  type Store,
} from "reeve/kernel";
import { sqliteStore } from "reeve/sqlite";
import type { Row } from "./row.ts";

export async function* rows(): AsyncIterable<Row> {
  const folder = mkdtempSync(join(tmpdir(), "reeve-memory-"));
  try {
    yield* waitingRuns(folder);
    yield* listedSessions(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Bytes of the heap after a garbage collection. */
async function heap(): Promise<number> {
  for (let turn = 0; turn < 3; turn++) {
    await new Promise(setImmediate);
    globalThis.gc?.();
  }
  return process.memoryUsage().heapUsed;
}

async function openStore(folder: string, name: string): Promise<Store> {
  return sqliteStore({ path: join(folder, `${name}.db`), hash: sha256, durability: "normal" });
}

/** Runs that wait for a signal and stay in the process, at two numbers. */
async function* waitingRuns(folder: string): AsyncIterable<Row> {
  const sizes = [100, 1_000] as const;
  const each: number[] = [];
  for (const size of sizes) {
    const store = await openStore(folder, `waiting-${size}`);
    const runtime = await openRuntime({ store, suspendAfterMs: 3_600_000, concurrency: 2 * size });
    await wait(runtime, 10);
    const before = await heap();
    await wait(runtime, size);
    each.push(((await heap()) - before) / size);
    await runtime.close();
  }
  const [few = 0, many = 0] = each;
  yield {
    name: "a waiting run in the process, 1,000 of them, against 100",
    value: many / 1_024,
    unit: "KB",
    against: few / 1_024,
    goal: { atMost: 1.1 },
  };
}

async function wait(runtime: Runtime, count: number): Promise<void> {
  const reached = Promise.withResolvers<void>();
  let waiting = 0;
  const agent: HostedAgent = {
    id: formatAgentId({ name: `waiter-${count}` }),
    run: async (ctx) => {
      await ctx.step("prepare", async () => "ready");
      if (++waiting === count) reached.resolve();
      await ctx.waitForSignal("go");
      return "done";
    },
  };
  runtime.register(agent);
  for (let done = 0; done < count; done++) await runtime.submit(agent, null);
  await reached.promise;
}

/** The heap after a caller has read the list of all sessions page by page, against the heap before. */
async function* listedSessions(folder: string): AsyncIterable<Row> {
  const count = 10_000;
  const store = await openStore(folder, "sessions");
  const changes = Array.from({ length: count }, (_, number): SessionChange => {
    const message = { role: "user", content: [{ type: "text", text: `Question ${number}?` }] } as const;
    const entry = {
      type: "message",
      id: `entry-${number}`,
      parentId: null,
      at: number,
      runId: null,
      taskId: null,
      message,
    } as const;
    const agentId = formatAgentId({ name: "listed" });
    return {
      type: "append",
      sessionId: formatSessionId(`s-${number}`),
      agentId,
      entry,
      visibility: "visible",
    };
  });
  for (let from = 0; from < count; from += 1_000)
    await store.sessions.apply(changes.slice(from, from + 1_000));
  const runtime = await openRuntime({ store });
  await listAll(runtime);
  const before = await heap();
  const listed = await listAll(runtime);
  if (listed !== count) throw new Error(`${listed} of ${count} sessions were listed`);
  const after = await heap();
  await runtime.close();
  yield {
    name: `the heap after ${count.toLocaleString("en")} sessions were listed, against before`,
    value: after / 2 ** 20,
    unit: "MB",
    against: before / 2 ** 20,
    goal: { atMost: 1.1 },
  };
}

async function listAll(runtime: Runtime): Promise<number> {
  let listed = 0;
  for (let after: string | null | undefined; after !== null;) {
    const page = await runtime.sessions.list({ limit: 100, ...(after !== undefined && { after }) });
    listed += page.sessions.length;
    after = page.next;
  }
  return listed;
}
