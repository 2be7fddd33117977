import type { Failure } from "../base/fault.ts";

/** Options of `ctx.parallel`. */
export interface ParallelOptions {
  /**
   * Whether the first fault abandons the other branches: their calls never settle, and their calls in flight are
   * cancelled. Default: `false`.
   */
  readonly stopOnFault?: boolean;
}

/** Options of `ctx.map`. */
export interface MapOptions {
  /** Maximum number of items that are in progress at the same time. Default: all items. */
  readonly concurrency?: number;
}

/**
 * The result of one item of `ctx.map`, as of `Promise.allSettled`. It is JSON, so that it can be an output: the reason has the
 * code, the message and the details of the error.
 */
export type SettledItem<Value> =
  | { readonly status: "fulfilled"; readonly value: Value }
  | { readonly status: "rejected"; readonly reason: Failure };

/** Options of `ctx.uncancellable`. */
export interface UncancellableOptions {
  /** Maximum duration of the branch, in milliseconds. After it `timeout` is thrown. Default: 600_000. */
  readonly timeoutMs?: number;
}
