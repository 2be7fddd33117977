import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";
import type { Random } from "../base/random.ts";

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

const defaultRetrySettings: RetrySettings = Object.freeze({
  enabled: true,
  maxRetries: 3,
  baseDelayMs: 2_000,
  jitter: 0,
  maxDelayMs: 120_000,
});

/** The defaults with what was given instead, looked at: with a number that is none, a call would be tried for ever. */
export function retrySettings(given: Partial<RetrySettings> = {}): RetrySettings {
  const settings = { ...defaultRetrySettings, ...given };
  requireRetryNumbers("retry", settings);
  return settings;
}

/** Of what tries again, by any settings: `where` says which. */
export function requireRetryNumbers(
  where: string,
  numbers: Pick<RetrySettings, "maxRetries" | "baseDelayMs" | "maxDelayMs"> & Partial<RetrySettings>,
): void {
  const { maxRetries, baseDelayMs, maxDelayMs, jitter = 0 } = numbers;
  const require = (name: string, value: number, isRight: boolean, rule: string): void => {
    if (!isRight)
      throw new Fault("invalid_argument", `${where}.${name} is ${describeValue(value)}: it must be ${rule}`);
  };
  const isCount = maxRetries === Number.POSITIVE_INFINITY || Number.isSafeInteger(maxRetries);
  require("maxRetries", maxRetries, isCount && maxRetries >= 0, "an integer from 0");
  require("baseDelayMs", baseDelayMs, baseDelayMs >= 0, "milliseconds from 0");
  require("maxDelayMs", maxDelayMs, maxDelayMs >= 0, "milliseconds from 0");
  require("jitter", jitter, jitter >= 0, "a share from 0");
}

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
