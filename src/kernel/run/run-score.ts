import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";
import { is, optionTable, type OptionKinds } from "../base/option-table.ts";

/** Maximum length of the comment of a score, in characters. */
export const longestComment = 2_000;

/** Maximum length of the name of a score, in characters. */
export const longestScoreName = 64;

/** Maximum length of the author of a score, in characters. */
const longestAuthor = 256;

/** How good a run was, as one author judged it under one name. */
export interface RunScore {
  /** What was judged, such as `thumbs` or the name of a scorer. */
  readonly name: string;
  /** How good the run was: from 0 to 1. */
  readonly value: number;
  /** The person or the scorer that judged. */
  readonly by: string;
  /** Epoch milliseconds. */
  readonly at: number;
}

/** A score with its comment, as `RunHandle.scores` returns it. */
export interface StoredScore extends RunScore {
  /** Comment of the author. `null` if the author wrote none, or if the text of the run was erased. */
  readonly comment: string | null;
  /**
   * Time at which a later score of the same name and author replaced this one, in epoch milliseconds. `null` while
   * it is the current score.
   */
  readonly replacedAt: number | null;
}

/** What `RunHandle.score` receives. */
export interface ScoreOptions {
  /** Name of what is judged: 1 to 64 characters, such as `thumbs`. */
  readonly name: string;
  /** From 0 to 1. `true` is 1 and `false` is 0. */
  readonly value: number | boolean;
  /** Comment that gives the reason, at most 2,000 characters. Default: no comment. */
  readonly comment?: string | null;
  /**
   * Author of the score: a person or a scorer. A later score of the same name and author replaces the earlier one.
   * Default: the user in whose name the handle sends commands.
   */
  readonly by?: string;
}

/** Selects runs by a score that counts. */
export interface ScoreFilter {
  /** Name of the score. */
  readonly name: string;
  /** Selects runs with a value greater than this. */
  readonly above?: number;
  /** Selects runs with a value less than this. */
  readonly below?: number;
}

const scoreTable = optionTable({
  name: is.text({ required: true, empty: false }),
  value: is.any,
  comment: is.text({ or: [null, "none"] }),
  by: is.text({ empty: false }),
} satisfies OptionKinds<ScoreOptions>);

const filterTable = optionTable({
  name: is.text({ required: true, empty: false }),
  above: is.number({ finite: true }),
  below: is.number({ finite: true }),
} satisfies OptionKinds<ScoreFilter>);

/** Checks a score and returns it with its author. Throws `invalid_argument` for an invalid field. */
export function readScore(options: ScoreOptions, author: string): Omit<StoredScore, "at" | "replacedAt"> {
  const { name, value, comment = null, by = author } = scoreTable.read("score()", options);
  checkLength("name", name, longestScoreName);
  checkLength("by", by, longestAuthor);
  if (comment !== null) checkLength("comment", comment, longestComment);
  const number = typeof value === "boolean" ? Number(value) : value;
  if (typeof number !== "number" || !(number >= 0 && number <= 1))
    throw new Fault(
      "invalid_argument",
      `invalid value ${describeValue(value)} of score(): expected a number from 0 to 1, true or false; divide a score of another scale by its maximum`,
    );
  return { name, value: number, by, comment: comment === "" ? null : comment };
}

/** Checks the score filter of a list of runs. Throws `invalid_argument` for an invalid field. */
export function readScoreFilter(method: string, filter: ScoreFilter): ScoreFilter {
  return filterTable.read(`score of ${method}`, filter);
}

/** Whether a current score matches a filter. */
export function matchesScore({ name, value }: RunScore, filter: ScoreFilter): boolean {
  const { above = -Infinity, below = Infinity } = filter;
  return name === filter.name && value > above && value < below;
}

/** Returns the current scores of a run after a new score: one per name and author, sorted by both. */
export function withScore(
  before: readonly RunScore[],
  { name, value, by, at }: RunScore,
): readonly RunScore[] {
  const others = before.filter((each) => each.name !== name || each.by !== by);
  return [...others, { name, value, by, at }].toSorted(
    (one, other) => compare(one.name, other.name) || compare(one.by, other.by),
  );
}

function compare(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

function checkLength(option: string, text: string, most: number): void {
  if (text.length <= most && text.isWellFormed() && (option === "comment" || !/\p{Cc}/u.test(text))) return;
  const expected = option === "comment" ? "a text" : "a text without control characters and lone surrogates";
  throw new Fault(
    "invalid_argument",
    `invalid ${option} ${describeValue(text)} of score(): expected ${expected} of at most ${most} characters`,
  );
}
