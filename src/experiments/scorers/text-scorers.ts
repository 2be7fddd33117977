import {
  canonicalJson,
  Fault,
  is,
  jsonText,
  optionTable,
  type JsonValue,
  type OptionKinds,
} from "../../kernel/index.ts";
import type { ScorerFunction } from "../contract.ts";
import { shown } from "../json-difference.ts";
import { namedKinds, namedScorer, withoutExpected, type NamedOptions } from "./named-scorer.ts";

/** Options of `exactMatch`. */
export interface ExactMatchOptions extends NamedOptions {
  /** Whether upper and lower case letters are equal. Default: `false`. */
  readonly ignoreCase?: boolean;
}

const exactTable = optionTable({
  ...namedKinds,
  ignoreCase: is.boolean({ default: false }),
} satisfies OptionKinds<ExactMatchOptions>);

/**
 * Scores 1 if the output is equal to `expected` of the case, and 0 otherwise. White space at both ends of a text is
 * ignored. Values other than texts are equal if their JSON is equal. Skips a case without `expected`.
 */
export function exactMatch(options: ExactMatchOptions = {}): ScorerFunction {
  const { name = "exactMatch", ignoreCase } = exactTable.read("exactMatch()", options);
  const comparable = (value: JsonValue): string => {
    if (typeof value !== "string") return canonicalJson(value);
    const text = value.trim();
    return canonicalJson(ignoreCase ? text.toLowerCase() : text);
  };
  return namedScorer(name, ({ output, expected }) => {
    if (expected === null) return withoutExpected(name);
    if (comparable(output) === comparable(expected)) return 1;
    return { score: 0, reason: `expected ${shown(expected)}, got ${shown(output)}` };
  });
}

/** Options of `contains`. */
export interface ContainsOptions extends NamedOptions {
  /** The texts that the output must contain. Default: `expected` of the case, a text or a list of texts. */
  readonly texts?: readonly string[];
  /** Whether upper and lower case letters are equal. Default: `false`. */
  readonly ignoreCase?: boolean;
}

const containsTable = optionTable({
  ...namedKinds,
  texts: is.list({ of: is.text({ empty: false }) }),
  ignoreCase: is.boolean({ default: false }),
} satisfies OptionKinds<ContainsOptions>);

/** Scores 1 if the output contains every expected text, and 0 otherwise. Skips a case without an expected text. */
export function contains(options: ContainsOptions = {}): ScorerFunction {
  const { name = "contains", texts, ignoreCase } = containsTable.read("contains()", options);
  return namedScorer(name, ({ output, expected }) => {
    if (texts === undefined && expected === null) return withoutExpected(name);
    const wanted = texts ?? wantedTexts(name, expected);
    const text = ignoreCase ? jsonText(output).toLowerCase() : jsonText(output);
    const missing = wanted.filter((each) => !text.includes(ignoreCase ? each.toLowerCase() : each));
    if (missing.length === 0) return 1;
    return { score: 0, reason: `the output does not contain ${missing.map(shown).join(" and ")}` };
  });
}

function wantedTexts(scorer: string, expected: JsonValue): readonly string[] {
  if (typeof expected === "string") return [expected];
  if (Array.isArray(expected) && expected.every((each) => typeof each === "string")) return expected;
  throw new Fault(
    "invalid_argument",
    `invalid expected value of the case for scorer ${scorer}: expected a text or a list of texts, not ${shown(expected)}`,
  );
}

const matchesTable = optionTable({ ...namedKinds } satisfies OptionKinds<NamedOptions>);

/**
 * Scores 1 if the regular expression matches somewhere in the output, and 0 otherwise. The expression is code of the
 * experiment: one with nested repetition, such as `(a+)+$`, can take for ever on a long output.
 */
export function matches(pattern: RegExp, options: NamedOptions = {}): ScorerFunction {
  if (!(pattern instanceof RegExp))
    throw new Fault(
      "invalid_argument",
      "invalid pattern of matches(): expected a regular expression, such as /\\d+/u",
    );
  const { name = "matches" } = matchesTable.read("matches()", options);
  // With one of these flags the expression would remember its last place between two cases.
  const stateless = new RegExp(pattern.source, pattern.flags.replaceAll(/[gy]/gu, ""));
  return namedScorer(name, ({ output }) => {
    if (stateless.test(jsonText(output))) return 1;
    return { score: 0, reason: `${String(stateless)} does not match the output` };
  });
}
