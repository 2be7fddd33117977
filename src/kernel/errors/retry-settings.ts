import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";
import { checkOptions, optionNames, type ForeignNames } from "../base/option-check.ts";
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

/** Names of other libraries, each with the name to use instead. */
const foreign: ForeignNames = {
  retries: 'use "maxRetries"',
  attempts: 'use "maxRetries", which does not count the first attempt',
  maxAttempts: 'use "maxRetries", which does not count the first attempt',
};

/** What an owner of retry settings may set: some of them, or `false` for no retries. */
export type RetryChanges = Partial<RetrySettings> | false;

/**
 * Returns the default settings changed by `changes`, validated: an invalid number would cause endless retries. `owner`
 * names the options in the error.
 */
export function retrySettings(changes: RetryChanges = {}, owner = "openRuntime()"): RetrySettings {
  if (changes !== false) checkOptions(`retry of ${owner}`, changes, knownOptions, foreign);
  const settings = mergeRetrySettings(defaultRetrySettings, changes);
  requireRetryNumbers("retry", settings, owner);
  if (typeof settings.enabled !== "boolean")
    throw new Fault(
      "invalid_argument",
      `invalid retry.enabled ${describeValue(settings.enabled)} of ${owner}: expected true or false`,
    );
  return settings;
}

/** Returns `base` with the settings that `changes` contains. `false` switches retries off. */
export function mergeRetrySettings(base: RetrySettings, changes: RetryChanges): RetrySettings {
  if (changes === false) return { ...base, enabled: false };
  const { enabled = base.enabled, maxRetries = base.maxRetries, baseDelayMs = base.baseDelayMs } = changes;
  const { jitter = base.jitter, maxDelayMs = base.maxDelayMs } = changes;
  return { enabled, maxRetries, baseDelayMs, jitter, maxDelayMs };
}

/** Validates the numbers of retry settings. `option` and `owner` name them in the error. */
export function requireRetryNumbers(
  option: string,
  numbers: Pick<RetrySettings, "maxRetries" | "baseDelayMs" | "maxDelayMs"> & Partial<RetrySettings>,
  owner = "openRuntime()",
): void {
  const { maxRetries, baseDelayMs, maxDelayMs, jitter = 0 } = numbers;
  const require = (name: string, value: number, isRight: boolean, rule: string): void => {
    if (!isRight)
      throw new Fault(
        "invalid_argument",
        `invalid ${option}.${name} ${describeValue(value)} of ${owner}: expected ${rule}`,
      );
  };
  const isCount = maxRetries === Number.POSITIVE_INFINITY || Number.isSafeInteger(maxRetries);
  require("maxRetries", maxRetries, isCount && maxRetries >= 0, "an integer from 0");
  require("baseDelayMs", baseDelayMs, isFrom0(baseDelayMs), "milliseconds from 0");
  require("maxDelayMs", maxDelayMs, isFrom0(maxDelayMs), "milliseconds from 0");
  require("jitter", jitter, isFrom0(jitter) && Number.isFinite(jitter), "a share from 0");
}

function isFrom0(value: unknown): boolean {
  return typeof value === "number" && value >= 0;
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
