import type { Failure } from "../base/fault.ts";

/** Options of `ctx.parallel`. */
export interface ParallelOptions {
  /**
   * Whether the first fault of a branch abandons the other branches. The promises of their calls then never settle,
   * and their calls in flight are cancelled. Default: `false`.
   */
  readonly stopOnFault?: boolean;
}

/** Options of `ctx.map`. */
export interface MapOptions {
  /** Maximum number of items that are in progress at the same time. Default: all items. */
  readonly concurrency?: number;
}

/**
 * The result of one item of `ctx.map`, like that of `Promise.allSettled`. It is JSON and can be part of an output:
 * `reason` has the code, the message and the details of the error.
 */
export type SettledItem<Value> =
  | { readonly status: "fulfilled"; readonly value: Value }
  | { readonly status: "rejected"; readonly reason: Failure };

/** Options of `ctx.uncancellable`. */
export interface UncancellableOptions {
  /**
   * Maximum duration of the branch, in milliseconds. A branch that takes longer throws `timeout`. Default: 600_000.
   */
  readonly timeoutMs?: number;
}
