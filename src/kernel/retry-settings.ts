import type { Random } from "./random.ts";

/** How a model call is tried again (J5: inside its step). */
export interface RetrySettings {
  readonly enabled: boolean;
  /** Attempts after the first. */
  readonly maxRetries: number;
  readonly baseDelayMs: number;
  /** The share of the delay that chance may add; 0 is the seed's pure schedule. */
  readonly jitter: number;
  /** No delay of the schedule is longer; what a provider asks for may be. */
  readonly maxDelayMs: number;
}

export const defaultRetrySettings: RetrySettings = Object.freeze({
  enabled: true,
  maxRetries: 3,
  baseDelayMs: 2_000,
  jitter: 0,
  maxDelayMs: 120_000,
});

/**
 * How long to wait before retry number `retry`, counted from 1: the base, then twice as long each time, and never less than the
 * provider asked for. (Trap O3: the seed's formula, counted from 0, begins with half the base; its own example does not.)
 */
export function retryDelayMs(
  retry: number,
  { baseDelayMs, jitter, maxDelayMs }: RetrySettings,
  random: Random,
  retryAfterMs = 0,
): number {
  const scheduled = Math.min(maxDelayMs, baseDelayMs * 2 ** (retry - 1)) * (1 + jitter * random.next());
  return Math.max(scheduled, retryAfterMs);
}
