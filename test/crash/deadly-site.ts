import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inject } from "vitest";
import { formatRunId, type Event, type RunId } from "../../src/kernel/index.ts";
import { WorkerProcess, type WorkerEnd } from "../../src/testing/index.ts";
import { readAll } from "../runtime/runtime-setup.ts";
import { openCrashStore } from "./crash-store.ts";
import type { SiteAddress } from "./site-engine.ts";

const boundMs = 120_000;

/** The run whose agent ends its process. */
export const deadly = formatRunId("deadly");

/** A store, and worker processes on it that a run kills. */
export interface DeadlySite {
  /** Runs one worker process to its end. */
  readonly work: (place: string) => Promise<WorkerEnd>;
  /** Runs worker processes until one of them ends by itself. Returns the number of processes that were killed. */
  readonly workUntilDone: (place: string) => Promise<number>;
  readonly attempts: () => Promise<readonly string[]>;
  readonly events: (runId: RunId) => Promise<readonly Event[]>;
}

/**
 * Calls `check` with a new store. The environment decides which store the workers have. With an address, they use the Restate
 * engine.
 */
export async function onDeadlySite(
  check: (site: DeadlySite) => Promise<void>,
  address?: SiteAddress,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-deadly-"));
  const file = join(folder, "store.db");
  const script = new URL("deadly-worker.mjs", inject("crashWorkers"));
  const work = (place: string): Promise<WorkerEnd> => {
    const data = { place, ...(address !== undefined && { site: { ...address } }) };
    const orders = { file, workload: "deadly", data, death: null, server: { url: "", caller: "" } };
    return WorkerProcess.start(script, orders, join(folder, "compiled")).endWithin(boundMs);
  };
  const workUntilDone = async (place: string): Promise<number> => {
    for (let killed = 0; killed < 20; killed++) {
      const end = await work(place);
      if (end.kind === "finished") return killed;
      if (end.kind === "failed" && !end.reason.includes("ended with SIGKILL")) throw new Error(end.reason);
    }
    throw new Error("20 processes in a row were killed");
  };
  try {
    await check({
      work,
      workUntilDone,
      attempts: async () => (await readFile(`${file}.attempts`, "utf8")).trim().split("\n"),
      async events(runId) {
        const store = await openCrashStore(file);
        const events = await readAll(store, runId);
        await store.close();
        return events;
      },
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** How the root task of a run ended. */
export const endOf = (events: readonly Event[]): unknown =>
  events.findLast(({ type }) => type === "task_end")?.data;
/** The end of the deadly run as a crash loop. */
export const failed = (recoveries: number): unknown => ({
  status: "failed",
  failure: { code: "crash_loop", details: { runId: deadly, recoveries } },
});
