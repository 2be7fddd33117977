import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";
import { checkOptions, optionNames } from "../base/option-check.ts";
import type { Random } from "../base/random.ts";

/** How a model call is retried. J5: retries happen inside the step. */
export interface RetrySettings {
  readonly enabled: boolean;
  /** Maximum number of attempts after the first. */
  readonly maxRetries: number;
  readonly baseDelayMs: number;
  /** Fraction of the delay that is added at random. 0 means a fixed schedule. */
  readonly jitter: number;
  /** Upper bound of the delays of the schedule, in milliseconds. A wait that the provider asks for may be longer. */
  readonly maxDelayMs: number;
}

const defaultRetrySettings: RetrySettings = Object.freeze({
  enabled: true,
  maxRetries: 3,
  baseDelayMs: 2_000,
  jitter: 0,
  maxDelayMs: 120_000,
});

const knownOptions = optionNames<RetrySettings>({
  enabled: true,
  maxRetries: true,
  baseDelayMs: true,
  jitter: true,
  maxDelayMs: true,
});

/** The defaults merged with `given`, validated: an invalid number would cause endless retries. */
export function retrySettings(given: Partial<RetrySettings> = {}): RetrySettings {
  checkOptions("retry of openRuntime()", given, knownOptions);
  const settings = { ...defaultRetrySettings, ...given };
  requireRetryNumbers("retry", settings);
  return settings;
}

/** Validates the numbers of retry settings. `where` names the option in the error. */
export function requireRetryNumbers(
  where: string,
  numbers: Pick<RetrySettings, "maxRetries" | "baseDelayMs" | "maxDelayMs"> & Partial<RetrySettings>,
): void {
  const { maxRetries, baseDelayMs, maxDelayMs, jitter = 0 } = numbers;
  const require = (name: string, value: number, isRight: boolean, rule: string): void => {
    if (!isRight)
      throw new Fault(
        "invalid_argument",
        `invalid ${where}.${name} ${describeValue(value)}: expected ${rule}`,
      );
  };
  const isCount = maxRetries === Number.POSITIVE_INFINITY || Number.isSafeInteger(maxRetries);
  require("maxRetries", maxRetries, isCount && maxRetries >= 0, "an integer from 0");
  require("baseDelayMs", baseDelayMs, baseDelayMs >= 0, "milliseconds from 0");
  require("maxDelayMs", maxDelayMs, maxDelayMs >= 0, "milliseconds from 0");
  require("jitter", jitter, jitter >= 0, "a share from 0");
}

/**
 * The delay before a retry, in milliseconds. `retry` counts from 1. The delay starts at the base, doubles each time,
 * and is never shorter than the provider asks for. (Trap O3: the formula of the seed counts from 0 and would start with
 * half the base, unlike its own example.)
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
