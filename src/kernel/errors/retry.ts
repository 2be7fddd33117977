import { describeValue } from "../base/describe-value.ts";
import { type ErrorKind, Fault } from "../base/fault.ts";
import type { AgentId } from "../base/identity.ts";
import { is, optionTable, type OptionKinds } from "../base/option-table.ts";
import { readHeader } from "../base/read-property.ts";
import type { Random } from "../base/sources.ts";
import type { ErrorFacts } from "./error-facts.ts";

/** Limits how often an agent that crashed is started again. It adds no delays. */
export class RetryPolicy {
  readonly maxRetries: number;
  readonly #counts = new Map<AgentId, number>();

  constructor(maxRetries = 3) {
    if (!Number.isSafeInteger(maxRetries) || maxRetries < 0) {
      throw new Fault(
        "invalid_argument",
        `invalid maxRetries ${describeValue(maxRetries)}: expected an integer from 0`,
      );
    }
    this.maxRetries = maxRetries;
  }

  /** Whether another attempt is allowed. Each allowed attempt is counted. */
  shouldRetry(agentId: AgentId): boolean {
    const count = this.#counts.get(agentId) ?? 0;
    if (count >= this.maxRetries) return false;
    this.#counts.set(agentId, count + 1);
    return true;
  }

  /** Resets the count after a successful run. */
  reset(agentId: AgentId): void {
    this.#counts.delete(agentId);
  }
}

/** How a model call is retried. J5: the retries belong to one step. */
export interface RetrySettings {
  readonly enabled: boolean;
  /** Maximum number of attempts after the first. */
  readonly maxRetries: number;
  readonly baseDelayMs: number;
  /** Fraction of the delay that is added at random. 0 means a fixed schedule. */
  readonly jitter: number;
  /** Upper bound of the computed delays, in milliseconds. A wait that the provider asks for may be longer. */
  readonly maxDelayMs: number;
}

/**
 * Valid values of the numbers in retry settings. They are checked because a wrong number would cause endless
 * retries.
 */
export const retryKinds = {
  maxRetries: is.integer({ from: 0, or: [Infinity, "no end"], default: 3 }),
  baseDelayMs: is.number({ from: 0, default: 2_000 }),
  jitter: is.number({ from: 0, finite: true, default: 0 }),
  maxDelayMs: is.number({ from: 0, default: 120_000 }),
} as const;

const retryTable = optionTable({
  enabled: is.boolean({ default: true }),
  ...retryKinds,
} satisfies OptionKinds<RetrySettings>);

/** Retry settings of an agent or a runtime: some of the fields, or `false` for no retries. */
export type RetryChanges = Partial<RetrySettings> | false;

/** Returns the default settings with the given changes, after a check. `owner` names the options in the error. */
export function retrySettings(changes: RetryChanges = {}, owner = "openRuntime()"): RetrySettings {
  const isOff = changes === false;
  return retryTable.read(`retry of ${owner}`, isOff ? { enabled: false } : changes);
}

/** Returns `base` with the settings that `changes` contains. `false` switches retries off. */
export function mergeRetrySettings(base: RetrySettings, changes: RetryChanges): RetrySettings {
  if (changes === false) return { ...base, enabled: false };
  const { enabled = base.enabled, maxRetries = base.maxRetries, baseDelayMs = base.baseDelayMs } = changes;
  const { jitter = base.jitter, maxDelayMs = base.maxDelayMs } = changes;
  return { enabled, maxRetries, baseDelayMs, jitter, maxDelayMs };
}

/** How a step is retried. Each attempt that fails is recorded; the wait before the next one survives restarts. */
export interface StepRetry {
  /** Maximum number of attempts, the first one included. Default: 5. */
  readonly maxAttempts: number;
  /** Maximum time from the start of the first attempt to the start of the last one. `null`: no limit. Default: 600_000. */
  readonly maxMs: number | null;
  /** Delay before the second attempt. Default: 1_000. */
  readonly baseDelayMs: number;
  /** Factor by which the delay grows with each attempt. Default: 2. */
  readonly factor: number;
  /** Maximum delay. Default: 60_000. */
  readonly maxDelayMs: number;
  /** Fraction of the delay that is added at random. Default: 0.2. */
  readonly jitter: number;
}

const stepRetryTable = optionTable({
  maxAttempts: is.integer({ from: 1, or: [Infinity, "no end"], default: 5 }),
  maxMs: is.number({ from: 0, or: [null, "no limit"], default: 600_000 }),
  baseDelayMs: is.number({ from: 0, default: 1_000 }),
  factor: is.number({ from: 1, finite: true, default: 2 }),
  maxDelayMs: is.number({ from: 0, default: 60_000 }),
  jitter: is.number({ from: 0, finite: true, default: 0.2 }),
} satisfies OptionKinds<StepRetry>);

/** How a step of a workflow is retried unless its options say otherwise. */
export const defaultStepRetry: StepRetry = Object.freeze(stepRetry({}, "a workflow"));

/** Returns the default settings with the given changes, after a check. `owner` names the step in the error. */
export function stepRetry(changes: Partial<StepRetry>, owner: string): StepRetry {
  return stepRetryTable.read(`retry of ${owner}`, changes);
}

/**
 * Returns the delay before a retry, in milliseconds. `retry` counts from 1. The first delay is the base delay, and
 * each further delay is larger by a factor (default: 2). A delay is never shorter than the wait that the provider
 * asks for. (Trap O3: the formula of the seed counts from 0 and would start with half the base, unlike its own
 * example.)
 */
export function retryDelayMs(
  retry: number,
  {
    baseDelayMs,
    jitter,
    maxDelayMs,
    factor = 2,
  }: Pick<RetrySettings, "baseDelayMs" | "jitter" | "maxDelayMs"> & { readonly factor?: number },
  random: Random,
  retryAfterMs = 0,
): number {
  const scheduled = Math.min(maxDelayMs, baseDelayMs * factor ** (retry - 1)) * (1 + jitter * random.next());
  return Math.max(scheduled, retryAfterMs);
}

export interface RetryAfterOptions {
  readonly kind: ErrorKind;
  /** The current time in epoch milliseconds. Without it, a `Retry-After` that is a date is ignored. */
  readonly now?: number;
}

/**
 * Returns the wait that the provider asks for, in milliseconds. It reads headers first, the most exact one before
 * the others.
 */
export function readRetryAfter(facts: ErrorFacts, { kind, now }: RetryAfterOptions): number | undefined {
  const header = (name: string): string | undefined => {
    for (const headers of facts.headers) {
      const text = readHeader(headers, name);
      if (text !== undefined && text !== "") return text;
    }
    return undefined;
  };
  const stated =
    parseCount(header("retry-after-ms"), 1) ??
    parseCount(header("retry-after"), 1_000) ??
    parseWaitUntil(header("retry-after"), now) ??
    parseDuration(facts.retryDelays[0]) ??
    // A limit that is hit inside a stream has no headers, so the wait is read from the message.
    parseDuration(
      /(?:try again|retry) (?:in|after) ([\d.]+ ?[a-z]+(?:\d[\d.]*[a-z]+)*)/.exec(facts.evidence)?.[1],
    );
  if (stated !== undefined || kind !== "rate_limit") return stated;
  return parseDuration(header("x-ratelimit-reset-requests"));
}

function parseCount(text: string | undefined, unitMs: number): number | undefined {
  return text !== undefined && /^\d{1,12}(?:\.\d{1,9})?$/.test(text)
    ? Math.round(Number(text) * unitMs)
    : undefined;
}

const unitsMs: Readonly<Record<string, number>> = {
  ms: 1,
  milli: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Parses a duration such as `34s`, `36.4297s`, `644ms`, `6m0s` or `20 seconds`. */
function parseDuration(text: string | undefined): number | undefined {
  if (text === undefined || text.length > 60) return undefined;
  let totalMs: number | undefined;
  for (const [, count, unit = ""] of text.matchAll(/(\d{1,12}(?:\.\d{1,12})?) ?(ms|milli|[smhd])/gi)) {
    const unitMs = unitsMs[unit.toLowerCase()];
    if (unitMs !== undefined) totalMs = (totalMs ?? 0) + Number(count) * unitMs;
  }
  return totalMs === undefined ? undefined : Math.round(totalMs);
}

const months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/** Parses an IMF-fixdate, the only date format that HTTP senders may write: `Sun, 06 Nov 1994 08:49:37 GMT`. */
function parseWaitUntil(text: string | undefined, now: number | undefined): number | undefined {
  if (text === undefined || now === undefined || !Number.isFinite(now)) return undefined;
  const parts = /^[a-z]{3}, (\d\d) ([a-z]{3}) (\d{4}) (\d\d):(\d\d):(\d\d) gmt$/.exec(text.toLowerCase());
  const month = months.indexOf(parts?.[2] ?? "");
  if (parts === null || month < 0) return undefined;
  const [day, , year, hours, minutes, seconds] = parts.slice(1).map(Number) as [number, ...number[]];
  const days = daysSinceEpoch(year ?? 0, month + 1, day);
  const atMs = (((days * 24 + (hours ?? 0)) * 60 + (minutes ?? 0)) * 60 + (seconds ?? 0)) * 1_000;
  return Math.max(0, atMs - now);
}

/**
 * Returns the days since 1970-01-01 in the Gregorian calendar. Years are counted from March, so that a leap day is
 * the last day of a year.
 */
function daysSinceEpoch(year: number, month: number, day: number): number {
  const marchYear = month > 2 ? year : year - 1;
  const monthFromMarch = (month + 9) % 12;
  const leapDays = Math.floor(marchYear / 4) - Math.floor(marchYear / 100) + Math.floor(marchYear / 400);
  const dayOfYear = Math.floor((153 * monthFromMarch + 2) / 5) + day - 1;
  return marchYear * 365 + leapDays + dayOfYear - 719_468;
}
