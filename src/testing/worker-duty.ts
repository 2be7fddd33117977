import type { JsonValue, RunId, Store } from "../kernel/index.ts";
import { dyingStore, type Death, type DyingStore } from "./dying-store.ts";

/** Of the environment: the orders, as JSON. */
export const ordersVariable = "REEVE_WORKER_ORDERS";

/** What a worker process is told at its start. */
export interface WorkerOrders {
  /** The store's file. */
  readonly file: string;
  readonly workload: string;
  readonly server: { readonly url: string; readonly caller: string };
  readonly death: Death | null;
  readonly data: JsonValue;
}

/** In a worker process: what it was told, and the store it is to work on. */
export interface WorkerDuty extends WorkerOrders {
  /** Call once, with the store on `file`: the same, which dies when this process is to. */
  readonly mortal: (store: Store) => Store;
}

/**
 * What the script of a `WorkerProcess` calls: does the work and reports the runs it was about. Work that was done in an earlier life is
 * to be found done, not done again: submit under fixed run ids.
 */
export async function workAsTold(work: (duty: WorkerDuty) => Promise<readonly RunId[]>): Promise<void> {
  const told = process.env[ordersVariable];
  if (told === undefined) throw new Error(`${ordersVariable} is not set: start this script by WorkerProcess`);
  const orders = JSON.parse(told) as WorkerOrders;
  let counted: DyingStore | undefined;
  const mortal = (store: Store): Store => {
    counted = dyingStore(store, orders.death ?? { at: Infinity, when: "before" });
    return counted;
  };
  const runs = await work({ ...orders, mortal });
  process.stdout.write(`${JSON.stringify({ runs, writes: counted?.writes ?? 0 })}\n`);
}
