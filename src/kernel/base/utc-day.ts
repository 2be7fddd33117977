const msPerDay = 86_400_000;
const msPerHour = 3_600_000;
const dayPattern = /^(\d{4})-(\d{2})-(\d{2})$/;
const hourPattern = /^(\d{4}-\d{2}-\d{2})T([01]\d|2[0-3])$/;
/** Number of days from 1 March of the year 0 to 1 January 1970. Used to compute the calendar day. */
const daysToEpoch = 719_468;

let lastNumber = -1;
let lastDay = "";

/**
 * Returns the UTC day of a time in epoch milliseconds, as `2026-11-16`. The last day is cached, because every model
 * call needs it.
 */
export function utcDay(at: number): string {
  const number = Math.floor(at / msPerDay);
  if (number !== lastNumber) {
    lastDay = dayText(number);
    lastNumber = number;
  }
  return lastDay;
}

/** Returns the UTC hour of the day of a time in epoch milliseconds, from 0 to 23. */
export function utcHourOfDay(at: number): number {
  return Math.floor(at / msPerHour) - Math.floor(at / msPerDay) * 24;
}

/** A UTC hour, as `2026-11-16T13`. */
export function hourText(day: string, hour: number): string {
  return `${day}T${padded(hour, 2)}`;
}

/** Returns the UTC hour of a time in epoch milliseconds, as `2026-11-16T13`. */
export function utcHour(at: number): string {
  return hourText(utcDay(at), utcHourOfDay(at));
}

/** Whether a value is an hour of the calendar, written as `2026-11-16T13`. */
export function isUtcHour(value: unknown): value is string {
  return typeof value === "string" && isUtcDay(hourPattern.exec(value)?.[1]);
}

/** Returns the UTC hour that is `count` hours after another one. A negative `count` gives an earlier hour. */
export function addHours(hour: string, count: number): string {
  return utcHour(startOfHour(hour) + count * msPerHour);
}

/** Returns the time at which a UTC hour begins, in epoch milliseconds. */
export function startOfHour(hour: string): number {
  const [day = "", number] = hour.split("T");
  return startOfDay(day) + Number(number) * msPerHour;
}

/** Whether a value is a day of the calendar, written as `2026-11-16`. */
export function isUtcDay(value: unknown): value is string {
  return typeof value === "string" && dayPattern.test(value) && dayText(dayNumber(value)) === value;
}

/** Returns the time at which a UTC day begins, in epoch milliseconds. */
export function startOfDay(day: string): number {
  return dayNumber(day) * msPerDay;
}

/** Returns the UTC day that is `count` days after another one. A negative `count` gives an earlier day. */
export function addDays(day: string, count: number): string {
  return dayText(dayNumber(day) + count);
}

/** Returns the first day of the month that follows the month of `day`, as text. */
export function firstOfNextMonth(day: string): string {
  // The 28th exists in every month, and four days later the next one has begun.
  return `${addDays(`${day.slice(0, 7)}-28`, 4).slice(0, 7)}-01`;
}

/**
 * Returns the day with this number, counted from 1970-01-01. In this calculation a year begins in March, so that a
 * leap day is its last day.
 */
function dayText(number: number): string {
  const days = number + daysToEpoch;
  const era = Math.floor(days / 146_097);
  const dayOfEra = days - era * 146_097;
  const yearOfEra = Math.floor(
    (dayOfEra -
      Math.floor(dayOfEra / 1_460) +
      Math.floor(dayOfEra / 36_524) -
      Math.floor(dayOfEra / 146_096)) /
      365,
  );
  const dayOfYear = dayOfEra - daysBeforeYear(yearOfEra);
  const marchMonth = Math.floor((5 * dayOfYear + 2) / 153);
  const day = dayOfYear - daysBeforeMonth(marchMonth) + 1;
  const month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9;
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  return `${padded(year, 4)}-${padded(month, 2)}-${padded(day, 2)}`;
}

/** Returns the number of a day, counted from 1970-01-01. */
function dayNumber(text: string): number {
  const [year = 0, month = 1, day = 1] = text.split("-").map(Number);
  const marchYear = month <= 2 ? year - 1 : year;
  const era = Math.floor(marchYear / 400);
  const marchMonth = month > 2 ? month - 3 : month + 9;
  const dayOfEra = daysBeforeYear(marchYear - era * 400) + daysBeforeMonth(marchMonth) + day - 1;
  return era * 146_097 + dayOfEra - daysToEpoch;
}

/** Returns the number of days before a year in a calendar cycle of 400 years. */
function daysBeforeYear(yearOfEra: number): number {
  return 365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100);
}

/** Returns the number of days before a month in a year that begins in March. */
function daysBeforeMonth(marchMonth: number): number {
  return Math.floor((153 * marchMonth + 2) / 5);
}

function padded(value: number, length: number): string {
  return String(value).padStart(length, "0");
}
