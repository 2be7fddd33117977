import { SchemaReader } from "../../capabilities/index.ts";
import { Fault, is, optionTable, type JsonValue, type OptionKinds, type Schema } from "../../kernel/index.ts";
import type { ScorerFunction } from "../contract.ts";
import { differenceText, jsonDifferences } from "../json-difference.ts";
import { namedKinds, namedScorer, withoutExpected, type NamedOptions } from "./named-scorer.ts";

/** Options of `jsonMatch`. */
export interface JsonMatchOptions extends NamedOptions {
  /** Schema that the output must match: a Standard Schema that describes itself as JSON Schema (zod), or a JSON Schema. */
  readonly schema?: Schema;
  /** Whether objects of the output may have members that are not in `expected`. Default: `false`. */
  readonly subset?: boolean;
}

const matchTable = optionTable({
  ...namedKinds,
  schema: is.any,
  subset: is.boolean({ default: false }),
} satisfies OptionKinds<JsonMatchOptions>);

/**
 * Scores 1 if the output is JSON that matches the schema and is equal to `expected` of the case, and 0 otherwise. The reason
 * names the paths that differ. A text is read as JSON. Without a schema it skips a case without `expected`.
 */
export function jsonMatch(options: JsonMatchOptions = {}): ScorerFunction {
  const { name = "jsonMatch", schema, subset } = matchTable.read("jsonMatch()", options);
  const reader =
    schema === undefined
      ? undefined
      : new SchemaReader({ schemaName: `the schema of scorer ${name}`, refuse }, schema);
  return namedScorer(name, async ({ output, expected }) => {
    if (reader === undefined && expected === null) return withoutExpected(name);
    const value = readJson(output);
    if (value === undefined) return { score: 0, reason: "the output is not JSON" };
    const problems = (await reader?.inspect(value))?.problems ?? [];
    const differences =
      expected === null ? [] : jsonDifferences(readJson(expected) ?? expected, value, { isSubset: subset });
    if (problems.length === 0 && differences.length === 0) return 1;
    const reasons = [
      ...problems.map((problem) => `schema: ${problem}`),
      ...differences.map((each) => differenceText(each, "output")),
    ];
    return {
      score: 0,
      reason: reasons.join("; "),
      metadata: {
        problems,
        differences: differences.map(({ path, ...each }) => ({
          path,
          expected: each.expected ?? null,
          actual: each.actual ?? null,
        })),
      },
    };
  });
}

/** Returns the fault for a value that cannot be parsed. */
function refuse(problems: readonly string[]): Fault {
  return new Fault("invalid_argument", `the output does not match the schema: ${problems.join("; ")}`);
}

/** Reads a text as JSON. Returns `undefined` for a text that is not JSON. */
function readJson(value: JsonValue): JsonValue | undefined {
  if (typeof value !== "string") return value;
  try {
    return JSON.parse(value) as JsonValue;
  } catch {
    // The caller reports a text that is not JSON.
    return undefined;
  }
}
