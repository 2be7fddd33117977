import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inject, onTestFinished } from "vitest";
import { CountingServer, traceRun, WorkerProcess, type RunTrace } from "../../src/testing/index.ts";
import { openCrashStore } from "../crash/crash-store.ts";
import { errandRun } from "../crash/porter.ts";
import { untilEvent } from "../crash/until-event.ts";
import { toolAnswer } from "../crash/workload.ts";

interface ZombieReport {
  /** The calls that an outside server received, as CALLER NAME. */
  readonly calls: readonly string[];
  /** The run before the zombie continued. */
  readonly before: RunTrace | undefined;
  readonly after: RunTrace | undefined;
}

/**
 * Stops a worker in a call for longer than its lease, lets another one end its run, and continues it until it knows that it
 * lost the run. The environment decides which store and which engine the workers have.
 */
export async function wakeZombie(): Promise<ZombieReport> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-zombie-"));
  const file = join(folder, "store.db");
  const server = await CountingServer.open();
  const carries = Promise.withResolvers<void>();
  const book = server.book("zombie", ({ name, body }) => ({
    ...toolAnswer(name, body),
    ...(name === "carry" && { hold: () => carries.promise }),
  }));
  const serving = new URL("serving-worker.mjs", inject("crashWorkers"));
  const start = (caller: string, count: number): WorkerProcess => {
    const orders = { file, workload: "porter", data: count, death: null, server: { url: book.url, caller } };
    const worker = WorkerProcess.start(serving, orders, join(folder, "compiled"));
    onTestFinished(async () => {
      worker.signal("SIGKILL");
      await worker.ended;
    });
    return worker;
  };
  onTestFinished(async () => {
    await server.close();
    await rm(folder, { recursive: true, force: true });
  });
  const store = await openCrashStore(file);
  onTestFinished(() => store.close());
  const runId = errandRun("zombie", 0);
  const made = (): readonly string[] => book.calls.map(({ caller, name }) => `${caller} ${name}`);
  const zombie = start("zombie", 1);
  await book.until(() => made().includes("zombie carry"), 60_000);
  zombie.signal("SIGSTOP");
  start("heir", 0);
  await book.until(() => made().includes("heir carry"), 60_000);
  carries.resolve();
  await untilEvent(store, runId, ({ type }) => type === "run_end", AbortSignal.timeout(60_000));
  const before = await traceRun(store, runId);
  zombie.signal("SIGCONT");
  await zombie.hasSaid("lease_lost", 60_000);
  return { calls: made(), before, after: await traceRun(store, runId) };
}

/** The report if the zombie made no call after the two that it began. */
export const noTrace = {
  calls: ["zombie lift", "zombie carry", "heir carry", "heir drop"],
  before: { status: "completed", output: "done", chain: { ok: true } },
};
