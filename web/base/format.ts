import { visibleLine } from "../../src/kernel/index.ts";
import { counted, grouped, personName, shortModel } from "../../src/surfaces/view/short-words.ts";

export { counted, grouped, personName, shortModel };

/** Formats an amount spent with three decimals. Amounts below a tenth of a cent are shown with their first digits. */
export function usd(amount: number | null): string {
  if (amount === null) return "unpriced";
  if (amount !== 0 && Math.abs(amount) < 0.0005) return `$${amount.toFixed(5)}`;
  return `$${grouped(amount.toFixed(3))}`;
}

/**
 * Formats an amount for a column, always with three decimals, so that amounts are aligned. A smaller amount is not
 * shown as zero.
 */
export function columnUsd(amount: number | null): string {
  return amount !== null && amount > 0 && amount < 0.0005 ? "<$0.001" : usd(amount);
}

/** Formats two different amounts with as many decimals as are needed to distinguish them. */
export function usdApart(one: number, other: number): readonly [string, string] {
  const differ = (digits: number): boolean => one.toFixed(digits) !== other.toFixed(digits);
  const digits = usd(one) === usd(other) ? [4, 5, 6, 7, 8, 9].find(differ) : undefined;
  if (digits === undefined) return [usd(one), usd(other)];
  return [`$${grouped(one.toFixed(digits))}`, `$${grouped(other.toFixed(digits))}`];
}

/**
 * Formats a budget with two decimals; with more only for a fraction of a cent below one dollar; without decimals
 * from 100 dollars.
 */
export function capUsd(amount: number): string {
  if (amount >= 100) return `$${grouped(amount.toFixed(0))}`;
  const isWhole = Math.abs(amount * 100 - Math.round(amount * 100)) < 1e-6;
  return isWhole || amount >= 1 ? `$${amount.toFixed(2)}` : usd(amount);
}

const generatedId = /^(?<start>[a-z]+[_-][0-9a-f]{8})-[0-9a-f]{4}-/u;
const longestId = 24;

/**
 * Shortens an id for a list. A shortened id ends with an ellipsis, so that it is not mistaken for a complete id:
 * `run_394d481d…`.
 */
export function shortId(id: string): string {
  const start = generatedId.exec(id)?.groups?.["start"];
  if (start !== undefined) return `${start}…`;
  return id.length <= longestId ? id : `${id.slice(0, longestId - 1)}…`;
}

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

function pad(value: number): string {
  return String(value).padStart(2, "0");
}

/** A duration as a clock shows it: 0:43, 12:37, 1:12:44. */
export function clock(ms: number): string {
  const total = Math.max(0, Math.floor(ms / second));
  const [hours, minutes, seconds] = [Math.floor(total / 3600), Math.floor(total / 60) % 60, total % 60];
  return hours > 0 ? `${hours}:${pad(minutes)}:${pad(seconds)}` : `${minutes}:${pad(seconds)}`;
}

/** A duration in words: 43 s, 12 min, 2 h, 3 d. */
export function span(ms: number): string {
  if (ms < minute) return `${Math.max(0, Math.floor(ms / second))} s`;
  if (ms < hour) return `${Math.floor(ms / minute)} min`;
  return ms < day ? `${Math.floor(ms / hour)} h` : `${Math.floor(ms / day)} d`;
}

/** Formats the time in which a run had no owner: 1.6 s, 43 s, 12 min. */
export function downTime(ms: number): string {
  return ms < 10 * second ? `${Math.max(0.1, ms / second).toFixed(1)} s` : span(ms);
}

/** Formats the duration of a call: 240 ms, 1.4 s, 18 s. */
export function took(ms: number): string {
  if (ms < second) return `${Math.round(ms)} ms`;
  return ms < minute ? `${(ms / second).toFixed(ms < 10 * second ? 1 : 0)} s` : clock(ms);
}

/** Formats how long ago a time was: now, 26 min, 2 h, Yesterday, 14 Mar. */
export function ago(at: number, now: number): string {
  const passed = now - at;
  if (passed < minute) return "now";
  const [then, today] = [new Date(at), new Date(now)];
  if (passed < 12 * hour || then.toDateString() === today.toDateString()) return span(passed);
  const yesterday = new Date(now - day);
  if (then.toDateString() === yesterday.toDateString()) return "Yesterday";
  return dayOf(then);
}

/** A time of day: 14:05. */
export function timeOfDay(at: number): string {
  return new Date(at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
}

/** A day and a time of it: 20 Nov, 14:05. */
export function dayAndTime(at: number): string {
  return `${dayOf(new Date(at))}, ${timeOfDay(at)}`;
}

function dayOf(date: Date): string {
  return date.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
}

/** Words as the beginning of a sentence. */
export function capitalized(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** A JSON value as text: a string as it is. */
export function plain(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");
}

/**
 * Formats a JSON value as one line, with hidden characters made visible, and with at most `most` of its characters.
 */
export function oneLine(value: unknown, most = Infinity): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  const line = text.length > most ? `${text.slice(0, most)}…` : text;
  return visibleLine(line.replaceAll(/\s+/gu, " ").trim());
}
