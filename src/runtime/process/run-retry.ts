import { requireRetryNumbers } from "../../kernel/index.ts";

/** How often a task whose code crashed is started again, and how long it waits before. */
export interface RunRetry {
  readonly maxRetries: number;
  readonly baseDelayMs: number;
  readonly maxDelayMs: number;
}

const defaultRunRetry: RunRetry = Object.freeze({
  maxRetries: 3,
  baseDelayMs: 5_000,
  maxDelayMs: 300_000,
});

/** The defaults with what was given instead. */
export function runRetry(given: Partial<RunRetry> = {}): RunRetry {
  const settings = { ...defaultRunRetry, ...given };
  requireRetryNumbers("runRetry", settings);
  return settings;
}

/** Before the start that follows crash number `crashes`, counted from 1; `null`: give up. */
export function restartDelayMs(
  crashes: number,
  { maxRetries, baseDelayMs, maxDelayMs }: RunRetry,
): number | null {
  return crashes > maxRetries ? null : Math.min(maxDelayMs, baseDelayMs * 2 ** (crashes - 1));
}
