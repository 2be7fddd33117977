import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inject } from "vitest";
import {
  formatRunId,
  type CrashLoop,
  type Event,
  type RunId,
  type RunSummary,
  type Store,
} from "../../src/kernel/index.ts";
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
  readonly summary: (runId: RunId) => Promise<RunSummary | undefined>;
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
  const read = async <Value>(from: (store: Store) => Promise<Value>): Promise<Value> => {
    const store = await openCrashStore(file);
    try {
      return await from(store);
    } finally {
      await store.close();
    }
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
      events: (runId) => read((store) => readAll(store, runId)),
      summary: (runId) => read((store) => store.journal.summary(runId)),
    });
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

/** How the root task of a run ended. */
export const endOf = (events: readonly Event[]): unknown =>
  events.findLast(({ type }) => type === "task_end")?.data;

/** How the last pause of a run tells of its crash loop. */
export const loopOf = (events: readonly Event[]): CrashLoop | undefined =>
  events.findLast((event): event is Event<"run_pause"> => event.type === "run_pause")?.data.crashLoop;
