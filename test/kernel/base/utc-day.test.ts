import { expect, test } from "vitest";
import { addDays, isUtcDay, startOfDay, utcDay } from "../../../src/kernel/index.ts";

const msPerDay = 86_400_000;

test("utcDay() and startOfDay() agree with Date for every day of 800 years", () => {
  const wrong: string[] = [];
  for (let at = Date.parse("1600-01-01"); at < Date.parse("2400-01-01"); at += msPerDay) {
    const day = new Date(at).toISOString().slice(0, 10);
    const isRight = utcDay(at) === day && utcDay(at + msPerDay - 1) === day && startOfDay(day) === at;
    if (!isRight) wrong.push(day);
  }
  expect(wrong).toEqual([]);
});

test("isUtcDay() accepts only days of the calendar in the form YYYY-MM-DD", () => {
  for (const day of ["2026-11-16", "2024-02-29", "2000-02-29", "0000-01-01", "9999-12-31"])
    expect([day, isUtcDay(day)]).toEqual([day, true]);
  for (const day of [
    "2026-02-29",
    "1900-02-29",
    "2026-13-01",
    "2026-00-10",
    "2026-01-00",
    "2026-1-1",
    "",
    5,
    null,
  ])
    expect([day, isUtcDay(day)]).toEqual([day, false]);
});

test("addDays() crosses months and years forwards and backwards", () => {
  expect(addDays("2026-12-31", 1)).toBe("2027-01-01");
  expect(addDays("2024-03-01", -1)).toBe("2024-02-29");
  expect(addDays("2026-11-16", 0)).toBe("2026-11-16");
});
