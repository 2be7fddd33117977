import { describe, expect, test } from "vitest";
import { cronReader } from "../../../src/capabilities/schedules/cron-reader.ts";

/** The first fires after a time, as ISO texts. */
function firesAfter(cron: string, timeZone: string, from: string, count: number): string[] {
  const times = cronReader.fires(cron, timeZone);
  const found: string[] = [];
  for (let at = times.next(Date.parse(from)); at !== null && found.length < count; at = times.next(at))
    found.push(new Date(at).toISOString().slice(0, 16));
  return found;
}

describe("cronReader.fires()", () => {
  test("a cron expression with a fixed time follows the wall clock through the year", () => {
    expect(firesAfter("0 9 * * 1-5", "Europe/Berlin", "2026-03-26T12:00Z", 3)).toEqual([
      "2026-03-27T08:00",
      "2026-03-30T07:00",
      "2026-03-31T07:00",
    ]);
  });

  test("a cron expression with a fixed time that the clock skips fires when the clock has jumped", () => {
    expect(firesAfter("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00Z", 2)).toEqual([
      "2026-03-29T01:00",
      "2026-03-30T00:30",
    ]);
  });

  test("a cron expression with a fixed time that comes twice fires the first time only", () => {
    expect(firesAfter("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00Z", 2)).toEqual([
      "2026-10-25T00:30",
      "2026-10-26T01:30",
    ]);
  });

  test("a cron expression with several hours fires at existing times only, and in both passes of a repeated hour", () => {
    expect(firesAfter("*/30 1-3 * * *", "Europe/Berlin", "2026-03-29T00:00Z", 4)).toEqual([
      "2026-03-29T00:30",
      "2026-03-29T01:00",
      "2026-03-29T01:30",
      "2026-03-29T23:00",
    ]);
    expect(firesAfter("*/30 * * * *", "Europe/Berlin", "2026-10-24T23:59Z", 5)).toEqual([
      "2026-10-25T00:00",
      "2026-10-25T00:30",
      "2026-10-25T01:00",
      "2026-10-25T01:30",
      "2026-10-25T02:00",
    ]);
  });

  test("last() of a cron expression returns the latest fire at or before a time, consistent with next(), through a year", () => {
    for (const [cron, timeZone] of [
      ["30 2 * * *", "Europe/Berlin"],
      ["15 1,2 * * 0", "America/New_York"],
      ["0 0 1 * *", "Australia/Lord_Howe"],
    ] as const) {
      const times = cronReader.fires(cron, timeZone);
      let previous = times.last(Date.parse("2026-01-01T00:00Z"));
      for (
        let at = times.next(previous ?? 0);
        at !== null && at < Date.parse("2027-01-01T00:00Z");
        at = times.next(at)
      ) {
        expect([at - 1, at, at + 999].map((until) => times.last(until))).toEqual([previous, at, at]);
        previous = at;
      }
    }
  });

  test("a cron expression that never fires has no next fire", () => {
    expect(cronReader.fires("0 0 30 2 *", "UTC").next(0)).toBeNull();
    expect(cronReader.fires("0 0 0 1 1 * 2020", "UTC").next(Date.parse("2026-01-01T00:00Z"))).toBeNull();
  });

  test("an invalid cron expression or time zone is refused, and the error says what is wrong", () => {
    const refusal = (cron: unknown, timeZone: unknown = "UTC") => {
      try {
        cronReader.fires(cron as string, timeZone as string);
      } catch (error) {
        return (error as Error).message;
      }
      return undefined;
    };
    expect(refusal("61 9 * * *")).toMatch(
      /^invalid cron "61 9 \* \* \*": Invalid value for minute: 61; expected/u,
    );
    for (const cron of ["", "hello", "* * *", "@reboot", "2026-01-01T00:00:00", null, 5, "0 0 * * 1#6"])
      expect(refusal(cron)).toMatch(/^invalid cron /u);
    for (const zone of ["Mars/Phobos", "", null, 7])
      expect(refusal("0 9 * * *", zone)).toMatch(/^invalid timeZone .*expected the IANA name/u);
  });
});

describe("cronReader.time()", () => {
  const time = (text: string, zone = "Europe/Berlin") => new Date(cronReader.time(text, zone)).toISOString();

  test("cronReader.time() reads a text without an offset as a time of the wall clock, and an offset takes precedence", () => {
    expect(time("2026-11-20T09:00")).toBe("2026-11-20T08:00:00.000Z");
    expect(time("2026-07-20T09:00:30")).toBe("2026-07-20T07:00:30.000Z");
    expect(time("2026-11-20T09:00Z")).toBe("2026-11-20T09:00:00.000Z");
    expect(time("2026-11-20T09:00-05:00")).toBe("2026-11-20T14:00:00.000Z");
  });

  test("cronReader.time() moves a time that the clock skips later, and takes the first of a time that comes twice", () => {
    expect(time("2026-03-29T02:30")).toBe("2026-03-29T01:30:00.000Z");
    expect(time("2026-10-25T02:30")).toBe("2026-10-25T00:30:00.000Z");
  });

  test("cronReader.time() refuses a text that is no existing time", () => {
    for (const text of ["2026-02-30T09:00", "2026-13-01T09:00", "tomorrow", "2026-11-20", "", "9:00"])
      expect(() => time(text)).toThrow(/^invalid time .*expected epoch milliseconds/u);
  });
});
