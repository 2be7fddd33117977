import type { JsonValue, RunId, Store } from "../kernel/index.ts";
import { dyingStore, type Death, type DyingStore } from "./dying-store.ts";

/** Name of the environment variable that passes the orders to the worker process as JSON. */
export const ordersVariable = "REEVE_WORKER_ORDERS";

/** Orders that a worker process receives at its start. */
export interface WorkerOrders {
  /** Path of the store's file. */
  readonly file: string;
  readonly workload: string;
  readonly server: { readonly url: string; readonly caller: string };
  readonly death: Death | null;
  readonly data: JsonValue;
}

/** Orders of a worker process, with a function that wraps its store. */
export interface WorkerDuty extends WorkerOrders {
  /** Wraps the store on `file` so that this process dies at the ordered write. Call it once. */
  readonly mortal: (store: Store) => Store;
}

/** Does the work of a worker process. Returns the ids of its runs. */
export type DutyWork = (duty: WorkerDuty) => Promise<readonly RunId[]>;

/**
 * Runs the work of a `WorkerProcess` script and reports the ids of its runs on stdout. A restarted worker must find
 * work of an earlier process instead of repeating it, so submit runs under fixed ids.
 */
export async function runWorkerDuty(work: DutyWork): Promise<void> {
  const told = process.env[ordersVariable];
  if (told === undefined)
    throw new Error(`${ordersVariable} is not set; start this script with WorkerProcess`);
  const report = await doDuty(JSON.parse(told) as WorkerOrders, work);
  process.stdout.write(`\n${reportMark}${JSON.stringify(report)}\n`);
}

/** Does the ordered work in this process and returns its report. */
export async function doDuty(orders: WorkerOrders, work: DutyWork): Promise<WorkerReport> {
  let counted: DyingStore | undefined;
  const mortal = (store: Store): Store => {
    counted = dyingStore(store, orders.death ?? { at: Infinity, when: "before" });
    return counted;
  };
  const runs = await work({ ...orders, mortal });
  return { runs, kinds: counted?.kinds ?? [] };
}

/** Beginning of the stdout line with the report, so that other lines that the work prints are not mistaken for it. */
const reportMark = "reeve-worker-report ";

/** The report of a worker process after it has done its work. */
export interface WorkerReport {
  readonly runs: readonly RunId[];
  /** The kind of each write, in order. */
  readonly kinds: readonly string[];
}

/** Reads the report of a worker from its stdout. Returns `undefined` if there is none. */
export function readReport(stdout: string): WorkerReport | undefined {
  const line = stdout.split("\n").findLast((each) => each.startsWith(reportMark));
  return line === undefined ? undefined : (JSON.parse(line.slice(reportMark.length)) as WorkerReport);
}
