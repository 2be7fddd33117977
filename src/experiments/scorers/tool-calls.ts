import {
  describeValue,
  Fault,
  is,
  optionTable,
  readProperty,
  type JsonValue,
  type OptionKinds,
} from "../../kernel/index.ts";
import type { ScoredToolCall, ScorerFunction } from "../contract.ts";
import { differenceText, jsonDifferences, shown } from "../json-difference.ts";
import { namedKinds, namedScorer, withoutExpected, type NamedOptions } from "./named-scorer.ts";

/** A tool call that a case expects. */
export interface ExpectedToolCall {
  readonly name: string;
  /** Arguments of the call. If absent, any arguments match. */
  readonly arguments?: JsonValue;
}

/** Options of `toolCalls`. */
export interface ToolCallsOptions extends NamedOptions {
  /**
   * The calls that every case expects. Default: `expected` of the case, which must be a list of calls, or an object
   * with such a list as its member `toolCalls`.
   */
  readonly calls?: readonly ExpectedToolCall[];
  /** Whether the calls must have the order of the expected calls. Default: `"same"`. */
  readonly order?: "same" | "any";
  /** Whether the agent may make additional calls. Default: `"refuse"`. */
  readonly extra?: "refuse" | "allow";
  /** With `"subset"`, arguments may have members that are not in the expected arguments. Default: `"equal"`. */
  readonly arguments?: "equal" | "subset";
}

const callsTable = optionTable({
  ...namedKinds,
  calls: is.list(),
  order: is.choice(["same", "any"], { default: "same" }),
  extra: is.choice(["refuse", "allow"], { default: "refuse" }),
  arguments: is.choice(["equal", "subset"], { default: "equal" }),
} satisfies OptionKinds<ToolCallsOptions>);

/**
 * Compares the tool calls of an agent with the expected calls: the tools, their order and their arguments. The
 * score is the fraction of matching calls; it is 1 only if all calls match. The reason names each missing call,
 * each additional call, and the arguments that differ. A case without `expected` is skipped.
 */
export function toolCalls(options: ToolCallsOptions = {}): ScorerFunction {
  const given = callsTable.read("toolCalls()", options);
  const { name = "toolCalls", order, extra } = given;
  const fixed = given.calls === undefined ? undefined : readCalls("toolCalls()", given.calls);
  const isSubset = given.arguments === "subset";
  return namedScorer(name, ({ expected, run }) => {
    const source = Array.isArray(expected) ? expected : readProperty(expected, "toolCalls");
    if (fixed === undefined && expected === null) return withoutExpected(name);
    const wanted = fixed ?? readCalls(`the case for scorer ${name}`, source);
    const matching = order === "same" ? inOrder : inAnyOrder;
    const pairs = matching(wanted, run.toolCalls, (one, other) => isMatch(one, other, isSubset));
    const missing = wanted.filter((_, at) => !pairs.has(at));
    const used = new Set(pairs.values());
    const further = extra === "allow" ? [] : run.toolCalls.filter((_, at) => !used.has(at));
    const total = extra === "allow" ? wanted.length : Math.max(wanted.length, run.toolCalls.length);
    if (missing.length === 0 && further.length === 0) return 1;
    const others = extra === "allow" ? run.toolCalls.filter((_, at) => !used.has(at)) : further;
    return {
      score: pairs.size / total,
      reason: reasons(missing, further, others, isSubset).join("; "),
      metadata: { expected: wanted.length, made: run.toolCalls.length, matching: pairs.size },
    };
  });
}

type Matches = (one: ExpectedToolCall, other: ScoredToolCall) => boolean;

/** Pairs of indexes: of an expected call, and of the call that matches it. */
type Pairs = ReadonlyMap<number, number>;

/** Returns the longest common subsequence of both lists. */
function inOrder(
  wanted: readonly ExpectedToolCall[],
  made: readonly ScoredToolCall[],
  matches: Matches,
): Pairs {
  const equal = wanted.map((one) => made.map((other) => matches(one, other)));
  const lengths = Array.from({ length: wanted.length + 1 }, () =>
    Array.from({ length: made.length + 1 }, () => 0),
  );
  const length = (row: number, column: number): number => lengths[row]?.[column] ?? 0;
  for (let row = wanted.length - 1; row >= 0; row--)
    for (let column = made.length - 1; column >= 0; column--)
      (lengths[row] as number[])[column] =
        equal[row]?.[column] === true
          ? length(row + 1, column + 1) + 1
          : Math.max(length(row + 1, column), length(row, column + 1));
  const pairs = new Map<number, number>();
  for (let row = 0, column = 0; row < wanted.length && column < made.length;)
    if (equal[row]?.[column] === true) pairs.set(row++, column++);
    else if (length(row + 1, column) >= length(row, column + 1)) row++;
    else column++;
  return pairs;
}

/**
 * Returns the largest possible set of pairs, regardless of order. If an expected call matches several made calls,
 * it leaves a call to an expected call with stricter arguments.
 */
function inAnyOrder(
  wanted: readonly ExpectedToolCall[],
  made: readonly ScoredToolCall[],
  matches: Matches,
): Pairs {
  const ownerOf = new Map<number, number>();
  const place = (row: number, tried: Set<number>): boolean =>
    made.some((call, column) => {
      if (tried.has(column) || !matches(wanted[row] as ExpectedToolCall, call)) return false;
      tried.add(column);
      const owner = ownerOf.get(column);
      if (owner !== undefined && !place(owner, tried)) return false;
      ownerOf.set(column, row);
      return true;
    });
  for (let row = 0; row < wanted.length; row++) place(row, new Set());
  return new Map([...ownerOf].map(([column, row]) => [row, column]));
}

function isMatch(one: ExpectedToolCall, other: ScoredToolCall, isSubset: boolean): boolean {
  if (one.name !== other.name) return false;
  return (
    one.arguments === undefined ||
    jsonDifferences(one.arguments, other.arguments, { isSubset, most: 1 }).length === 0
  );
}

/** Describes the differences. A missing call is compared with an additional call of the same tool. */
function reasons(
  missing: readonly ExpectedToolCall[],
  further: readonly ScoredToolCall[],
  others: readonly ScoredToolCall[],
  isSubset: boolean,
): readonly string[] {
  const explained = new Set<ScoredToolCall>();
  const lines = missing.map((call) => {
    const nearest = others.find((each) => each.name === call.name && !explained.has(each));
    if (nearest === undefined) return `missing ${callText(call)}`;
    explained.add(nearest);
    const differences = jsonDifferences(call.arguments, nearest.arguments, { isSubset });
    if (call.arguments === undefined || differences.length === 0) return `${call.name} out of order`;
    return `${call.name}: ${differences.map((each) => differenceText(each, "arguments")).join(", ")}`;
  });
  for (const call of further) if (!explained.has(call)) lines.push(`unexpected ${callText(call)}`);
  return lines;
}

function callText({ name, arguments: given }: ExpectedToolCall): string {
  return `${name}(${given === undefined ? "" : shown(given)})`;
}

function readCalls(owner: string, value: unknown): readonly ExpectedToolCall[] {
  const refuse = (what: string): Fault =>
    new Fault(
      "invalid_argument",
      `invalid expected tool calls of ${owner}: ${what}; expected a list such as [{"name": "search", "arguments": {"query": "reeves"}}]`,
    );
  if (!Array.isArray(value)) throw refuse(`they are ${describeValue(value)}`);
  return value.map((each: unknown, at) => {
    if (typeof each !== "object" || each === null) throw refuse(`call ${at + 1} is ${describeValue(each)}`);
    const unknown = Object.keys(each).find((member) => member !== "name" && member !== "arguments");
    if (unknown !== undefined)
      throw refuse(`call ${at + 1} has the unknown member ${describeValue(unknown)}`);
    if (typeof readProperty(each, "name") !== "string") throw refuse(`call ${at + 1} has no name`);
    return each as ExpectedToolCall;
  });
}
