import { Cron } from "croner";
import { describeValue, Fault, type CronReader, type FireTimes } from "../../kernel/index.ts";

/** Matches an ISO 8601 date and time, with or without an offset. */
const isoTime = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2})(?::\d{2})?(Z|[+-]\d{2}:\d{2})?$/u;

/** Reads cron expressions and local times with the package croner. The timers of croner are not used. */
export const cronReader: CronReader = { fires, time };

function fires(expression: string, timeZone: string): FireTimes {
  const cron = parse(expression, requireZone(timeZone));
  return {
    next: (after) => cron.nextRun(new Date(after))?.getTime() ?? null,
    last: (until) => lastOf(cron, until),
  };
}

/**
 * Returns the last fire at or before a time. croner returns only fires before a time and ignores milliseconds, so
 * that the search starts a second later.
 */
function lastOf(cron: Cron, until: number): number | null {
  for (const fire of cron.previousRuns(2, new Date(until + 1_000)))
    if (fire.getTime() <= until) return fire.getTime();
  return null;
}

function parse(expression: string, timezone: string): Cron {
  const fail = (reason: string): Fault =>
    new Fault(
      "invalid_argument",
      `invalid cron ${describeValue(expression)}: ${reason}; expected five fields (minute, hour, day, month, weekday), such as "0 9 * * 1-5", or six with seconds first`,
    );
  if (typeof expression !== "string") throw fail("it is no text");
  let cron: Cron;
  try {
    cron = new Cron(expression, { timezone });
  } catch (error) {
    throw fail(Fault.from(error).message.replace(/^Cron\w*: /u, ""));
  }
  if (cron.getPattern() === undefined) throw fail("it is a time; use the option at for a time");
  return cron;
}

function time(text: string, timeZone: string): number {
  const timezone = requireZone(timeZone);
  const [, minute = "", offset] = (typeof text === "string" && isoTime.exec(text)) || [];
  const found = !isRealMinute(minute)
    ? Number.NaN
    : offset === undefined
      ? local(text, timezone)
      : Date.parse(text);
  if (Number.isFinite(found)) return found;
  throw new Fault(
    "invalid_argument",
    `invalid time ${describeValue(text)}: expected epoch milliseconds, or a time such as "2026-11-20T09:00", "2026-11-20T09:00Z" or "2026-11-20T09:00+01:00"`,
  );
}

/** Whether the day exists, unlike 30 February. */
function isRealMinute(minute: string): boolean {
  const found = Date.parse(`${minute}Z`);
  return Number.isFinite(found) && new Date(found).toISOString().startsWith(minute);
}

/**
 * Returns a local time in epoch milliseconds. If the clock skips this time, the result is later by the skipped
 * time. If it occurs twice, the first one is returned.
 */
function local(text: string, timezone: string): number {
  try {
    return new Cron(text, { timezone }).getOnce()?.getTime() ?? Number.NaN;
  } catch {
    return Number.NaN;
  }
}

function requireZone(timeZone: string): string {
  try {
    if (typeof timeZone === "string" && timeZone !== "") {
      // The constructor throws for an unknown time zone.
      return new Intl.DateTimeFormat("en", { timeZone }).resolvedOptions().timeZone && timeZone;
    }
  } catch {
    // The error below says what is expected.
  }
  throw new Fault(
    "invalid_argument",
    `invalid timeZone ${describeValue(timeZone)}: expected the IANA name of a time zone, such as "Europe/Berlin" or "UTC"`,
  );
}
