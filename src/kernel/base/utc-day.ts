const msPerDay = 86_400_000;
const dayPattern = /^\d{4}-\d{2}-\d{2}$/;

let lastNumber = -1;
let lastDay = "";

/** The UTC day of a time in epoch milliseconds, as `2026-11-16`. The last day is cached, because every model call asks. */
export function utcDay(at: number): string {
  const number = Math.floor(at / msPerDay);
  if (number !== lastNumber) {
    lastDay = new Date(number * msPerDay).toISOString().slice(0, 10);
    lastNumber = number;
  }
  return lastDay;
}

/** Whether a value is a day of the calendar, written as `2026-11-16`. */
export function isUtcDay(value: unknown): value is string {
  if (typeof value !== "string" || !dayPattern.test(value)) return false;
  const at = Date.parse(value);
  return Number.isFinite(at) && utcDay(at) === value;
}

/** The time at which a UTC day begins, in epoch milliseconds. */
export function startOfDay(day: string): number {
  return Date.parse(day);
}

/** The UTC day that is `count` days after another one; before it if `count` is negative. */
export function addDays(day: string, count: number): string {
  return utcDay(startOfDay(day) + count * msPerDay);
}
