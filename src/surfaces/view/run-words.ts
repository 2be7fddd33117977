import { runSummaryStatuses, type RunScore, type ScoreFilter } from "../../kernel/index.ts";
import { statusWords } from "./status-words.ts";

/** What a filter of runs is about. */
type FilterName =
  | "status"
  | "agent"
  | "user"
  | "tenant"
  | "meta"
  | "started"
  | "ended"
  | "above"
  | "below"
  | "score";

/** A filter for runs: its subject, and its value in the text form that was given. */
export interface WordFilter {
  readonly name: FilterName;
  readonly value: string;
}

const aliases: Readonly<Record<string, FilterName>> = {
  status: "status",
  agent: "agent",
  user: "user",
  tenant: "tenant",
  started: "started",
  ended: "ended",
};

/**
 * Parses a word as a filter for runs: `user=mara`, `cost>1`, `score.thumbs<0.5`, `started=yesterday`, or a metadata
 * pair such as `order=8841`. Returns `null` if the word is a plain search word, and `"problem"` if the value is
 * invalid for the filter.
 */
export function filterWord(word: string): WordFilter | "problem" | null {
  const [, sign, amount] = /^cost([<>])(\d+(?:\.\d+)?)$/u.exec(word) ?? [];
  if (sign !== undefined && amount !== undefined)
    return { name: sign === ">" ? "above" : "below", value: amount };
  if (word.startsWith("score."))
    return scoreRange(word.slice(6)) === null ? "problem" : { name: "score", value: word.slice(6) };
  const [, key, value] = /^([^=:<>\s]+)[=:](.+)$/u.exec(word) ?? [];
  if (key === undefined || value === undefined) return null;
  const name = Object.hasOwn(aliases, key) ? aliases[key] : undefined;
  if (name === undefined) return word.includes("=") ? { name: "meta", value: `${key}=${value}` } : null;
  if (name === "status") {
    const status = runSummaryStatuses.find(
      (each) => each === value || statusWords[each].toLowerCase() === value.toLowerCase(),
    );
    return status === undefined ? "problem" : { name, value: status };
  }
  if ((name === "started" || name === "ended") && dayRange(value) === null) return "problem";
  return { name, value };
}

/**
 * Parses a score filter: `thumbs<0.5`, `thumbs>0.5`, or `thumbs` for any value. Returns `null` if the text is not a
 * score filter.
 */
export function scoreRange(text: string | null): ScoreFilter | null {
  const [, name, sign, bound] = /^([^<>]{1,64})(?:([<>])(\d+(?:\.\d+)?))?$/u.exec(text ?? "") ?? [];
  if (name === undefined) return null;
  if (bound === undefined) return { name };
  return sign === "<" ? { name, below: Number(bound) } : { name, above: Number(bound) };
}

/** Describes the scores of a run in one line: `exactMatch 0.33 (nightly), thumbs 1 (ann)`. */
export function scoreWords(scores: readonly RunScore[]): string {
  return scores.map(({ name, value, by }) => `${name} ${Math.round(value * 100) / 100} (${by})`).join(", ");
}

interface TimeRange {
  /** Start of the range in epoch milliseconds, inclusive. */
  readonly from: number;
  /** End of the range in epoch milliseconds, exclusive. */
  readonly to: number;
}

/**
 * Parses a text that names days, in the time zone of the process or browser. A date with `Z` is a UTC day, and
 * `2026-03-01T13Z` is one hour of it. Returns `null` if the text names no days.
 */
export function dayRange(text: string | null, now = Date.now()): TimeRange | null {
  if (text === null) return null;
  if (text === "today") return { from: dayAt(now, 0), to: dayAt(now, 1) };
  if (text === "yesterday") return { from: dayAt(now, -1), to: dayAt(now, 0) };
  const [, days] = /^(\d{1,3})d$/u.exec(text) ?? [];
  if (days !== undefined) return { from: dayAt(now, 1 - Number(days)), to: dayAt(now, 1) };
  const [, hour] = /^(\d{4}-\d{2}-\d{2}T\d{2})Z$/u.exec(text) ?? [];
  if (hour !== undefined) return rangeFrom(Date.parse(`${hour}:00Z`), hourMs);
  const [, first, last = first, zone = ""] =
    /^(\d{4}-\d{2}-\d{2})(?:\.\.(\d{4}-\d{2}-\d{2}))?(Z)?$/u.exec(text) ?? [];
  if (first === undefined || last === undefined) return null;
  const [from, to] = [Date.parse(`${first}T00:00${zone}`), Date.parse(`${last}T00:00${zone}`)];
  if (Number.isNaN(from) || Number.isNaN(to) || to < from) return null;
  return { from, to: zone === "" ? dayAt(to, 1) : to + dayMs };
}

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

function rangeFrom(from: number, length: number): TimeRange | null {
  return Number.isNaN(from) ? null : { from, to: from + length };
}

/** Returns midnight at the beginning of the day that contains a time, moved by a number of days. */
function dayAt(time: number, days: number): number {
  const day = new Date(time);
  return new Date(day.getFullYear(), day.getMonth(), day.getDate() + days).getTime();
}
