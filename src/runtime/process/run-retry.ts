import { retryKinds, is, optionTable, type OptionKinds } from "../../kernel/index.ts";

/** How a task is restarted after its code threw an unexpected error. */
export interface RunRetry {
  /** Maximum number of restarts of one task. Default: 3. */
  readonly maxRetries: number;
  /** Delay before the first restart. The delay doubles with each restart. Default: 5_000. */
  readonly baseDelayMs: number;
  /** Maximum delay before a restart. Default: 300_000. */
  readonly maxDelayMs: number;
}

const knownOptions = optionTable({
  maxRetries: retryKinds.maxRetries,
  baseDelayMs: is.number({ from: 0, default: 5_000 }),
  maxDelayMs: is.number({ from: 0, default: 300_000 }),
} satisfies OptionKinds<RunRetry>);

/** Returns the defaults with the given values. Throws `invalid_argument` for a number out of range. */
export function runRetry(options: Partial<RunRetry> = {}): RunRetry {
  return knownOptions.read("runRetry of openRuntime()", options);
}

/**
 * Returns the milliseconds to wait before the restart after crash number `crashes`, counted from 1. `null` means
 * that the task is not restarted.
 */
export function restartDelayMs(
  crashes: number,
  { maxRetries, baseDelayMs, maxDelayMs }: RunRetry,
): number | null {
  return crashes > maxRetries ? null : Math.min(maxDelayMs, baseDelayMs * 2 ** (crashes - 1));
}
