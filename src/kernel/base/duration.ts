import { describeValue } from "./describe-value.ts";
import { Fault } from "./fault.ts";

const unitsMs = {
  ms: 1,
  millisecond: 1,
  milliseconds: 1,
  s: 1_000,
  second: 1_000,
  seconds: 1_000,
  m: 60_000,
  minute: 60_000,
  minutes: 60_000,
  h: 3_600_000,
  hour: 3_600_000,
  hours: 3_600_000,
  d: 86_400_000,
  day: 86_400_000,
  days: 86_400_000,
  week: 604_800_000,
  weeks: 604_800_000,
} as const;

/** A duration: milliseconds, or a text such as `90s`, `2 hours` or `1.5 days`. */
export type Duration = number | `${number}${"" | " "}${keyof typeof unitsMs}`;

const form = /^(\d{1,12}(?:\.\d{1,6})?) ?([a-z]+)$/u;

/**
 * Returns a duration in whole milliseconds. Throws `invalid_argument` for a negative number and for a text without
 * a known unit. `owner` names the call in the error, such as `ctx.sleep()`.
 */
export function readDuration(value: unknown, owner: string): number {
  if (typeof value === "number" && Number.isFinite(value) && value >= 0) return Math.ceil(value);
  const [, count, unit = ""] = typeof value === "string" ? (form.exec(value) ?? []) : [];
  if (count !== undefined && isUnit(unit)) return Math.ceil(Number(count) * unitsMs[unit]);
  throw new Fault(
    "invalid_argument",
    `invalid duration ${describeValue(value)} of ${owner}: expected milliseconds from 0, or a number with a unit; use 5_000, "90s" or "2 hours"`,
  );
}

/**
 * Returns the duration of a wait in whole milliseconds, like `readDuration`. A negative number counts as 0: it is
 * the rest of a time that has already passed, such as `deadline - now`.
 */
export function readWait(value: unknown, owner: string): number {
  return typeof value === "number" && value < 0 && Number.isFinite(value) ? 0 : readDuration(value, owner);
}

/**
 * Returns the time of a `Date` in epoch milliseconds, also if the `Date` comes from another JavaScript realm.
 * `undefined` for any other value.
 */
export function timeOfDate(value: unknown): number | undefined {
  const isDate = typeof value === "object" && value !== null && "getTime" in value;
  return isDate && typeof value.getTime === "function" ? Number(value.getTime()) : undefined;
}

function isUnit(unit: string): unit is keyof typeof unitsMs {
  return Object.hasOwn(unitsMs, unit);
}
