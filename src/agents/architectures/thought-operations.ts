import {
  describeValue,
  Fault,
  is,
  optionTable,
  type JsonObject,
  type OptionKinds,
} from "../../kernel/index.ts";

/** A thought that a scoring function judges. */
export interface ScoredThought {
  /** The text of the thought. */
  readonly text: string;
  /** Texts of the thoughts from which this one was made, in order. Empty for a thought that was made from the task. */
  readonly parents: readonly string[];
  /** The task of the invocation. */
  readonly task: string;
}

/**
 * Scores a thought from 0 to 1, or returns the score with the reason that a refiner sees. It is called once per thought
 * and journaled; a replay uses the recorded score.
 */
export type ThoughtScorer = (thought: ScoredThought) => ThoughtScore | Promise<ThoughtScore>;

/** A score from 0 to 1, alone or with a reason. */
export type ThoughtScore = number | { readonly score: number; readonly reason?: string };

/** Splits a text into parts, in order. It is called once per thought and journaled. */
export type ThoughtSplitter = (text: string) => readonly string[] | Promise<readonly string[]>;

/** Options of operations that call a model. */
interface Instructed {
  /** What the model does in this operation. Default: depends on the operation. */
  readonly instructions?: string;
}

/** Options that every operation has. */
interface OperationBase {
  /**
   * Name by which later operations refer to this one. Default: `op_` and the position of the operation, counted from 1.
   */
  readonly name?: string;
  /**
   * Names of earlier operations whose thoughts this one works on. Default: the operation just before it. A `generate`
   * without `from` works on the task.
   */
  readonly from?: readonly string[];
}

/** An operation on thoughts. A thought is a whole answer, or a part of the work on one. */
export type ThoughtOperation = OperationBase &
  (
    | ({
        /** Writes `count` independent thoughts: from each thought of `from`, or from the task if `from` is absent. */
        readonly do: "generate";
        /** Number of thoughts to write from each thought, or from the task. Default: 3. */
        readonly count?: number;
      } & Instructed)
    | ({
        /** Splits each thought into parts that can be worked on separately. As the first operation, splits the task. */
        readonly do: "split";
        /** Maximum number of parts that the model splits a thought into. Further parts are joined to the last. Default: 4. */
        readonly count?: number;
        /**
         * Function that splits a thought. All its parts are used, at most 100. If absent, the model of the role
         * `splitter` splits the thought.
         */
        readonly by?: ThoughtSplitter;
      } & Instructed)
    | {
        /** Scores every thought that has no score. */
        readonly do: "score";
      }
    | {
        /** Keeps the `count` best thoughts. Thoughts without a score come last. */
        readonly do: "keep_best";
        /** Number of thoughts to keep. Default: 1. */
        readonly count?: number;
        /**
         * `"all"` keeps the best of all thoughts. `"parents"` keeps the best of each group of thoughts with the
         * same parents, in the order of the groups. Default: `"all"`.
         */
        readonly per?: "all" | "parents";
      }
    | ({
        /** Merges thoughts into one. */
        readonly do: "aggregate";
        /** Number of consecutive thoughts that are merged into one. At least 2. Default: all thoughts. */
        readonly groupSize?: number;
        /** Number of independent merged thoughts of each group. Default: 1. */
        readonly count?: number;
      } & Instructed)
    | ({
        /**
         * Rewrites each thought according to the reason for its score, until the score reaches `threshold` or the
         * rounds are used up. A version with a lower score is dropped.
         */
        readonly do: "refine";
        /** Maximum number of rewrites of one thought. Default: 1. */
        readonly maxRounds?: number;
        /** Score from 0 to 1 at which a thought is not rewritten any more. Default: 0.9. */
        readonly threshold?: number;
      } & Instructed)
  );

/** An operation with all defaults filled in. */
export type ResolvedOperation = {
  readonly name: string;
  readonly from: readonly string[];
  /** Instructions of the caller for the model. If absent, those of the operation are used. */
  readonly instructions?: string;
} & (
  | { readonly do: "generate"; readonly count: number }
  | { readonly do: "split"; readonly count: number; readonly by?: ThoughtSplitter }
  | { readonly do: "score" }
  | { readonly do: "keep_best"; readonly count: number; readonly per: "all" | "parents" }
  | { readonly do: "aggregate"; readonly groupSize: number | null; readonly count: number }
  | { readonly do: "refine"; readonly maxRounds: number; readonly threshold: number }
);

/** One operation of a kind. */
export type OperationOf<Kind extends ResolvedOperation["do"]> = Extract<
  ResolvedOperation,
  { readonly do: Kind }
>;

/**
 * The default operations: writes three drafts, merges the best two and refines the result. The best of these three is
 * the answer.
 */
export const usualOperations: readonly ThoughtOperation[] = Object.freeze([
  { name: "drafts", do: "generate", count: 3 },
  { name: "scored", do: "score" },
  { name: "best", do: "keep_best", count: 2 },
  { name: "merged", do: "aggregate" },
  { name: "refined", do: "refine" },
  { name: "answer", do: "keep_best", from: ["best", "refined"] },
]);

const where = "graphOfThoughts";

/**
 * Checks the operations and fills in their defaults. An operation may only refer to earlier ones, so that the graph
 * has no cycle.
 */
export function resolveOperations(operations: readonly ThoughtOperation[]): readonly ResolvedOperation[] {
  if (operations.length === 0) throw invalidOperations('the list is empty: give at least { do: "generate" }');
  const known: string[] = [];
  return operations.map((operation, index) => {
    const { name = `op_${index + 1}` } = operation;
    const [before] = known.slice(-1);
    if (known.includes(name)) throw invalidOperations(`two operations are named ${name}: rename one of them`);
    const own = resolveLimits(name, operation);
    const worksOnTask = operation.do === "generate" || (operation.do === "split" && before === undefined);
    const from = operation.from ?? (worksOnTask || before === undefined ? [] : [before]);
    if (!worksOnTask && from.length === 0)
      throw invalidOperations(
        `operation ${name} has no thoughts to work on: put a generate or split operation before it`,
      );
    const unknown = from.find((each) => !known.includes(each));
    if (unknown !== undefined)
      throw invalidOperations(
        `operation ${name} works on ${unknown}, which is not an earlier operation; earlier operations: ${known.join(", ") || "none"}`,
      );
    known.push(name);
    const { instructions } = operation as Instructed;
    return { name, from, ...own, ...(instructions !== undefined && { instructions }) };
  });
}

type WithoutLinks<Operation> = Operation extends unknown
  ? Omit<Operation, "name" | "from" | "instructions">
  : never;

type Given<Kind extends ResolvedOperation["do"]> = Extract<ThoughtOperation, { readonly do: Kind }>;

const sharedKinds = {
  do: is.any,
  name: is.text(),
  from: is.list({ of: is.text() }),
  instructions: is.text(),
};

const tables = {
  generate: optionTable({
    ...sharedKinds,
    count: is.integer({ from: 1, default: 3 }),
  } satisfies OptionKinds<Given<"generate">>),
  split: optionTable({
    ...sharedKinds,
    count: is.integer({ from: 2, default: 4 }),
    by: is.callback(),
  } satisfies OptionKinds<Given<"split">>),
  keep_best: optionTable({
    ...sharedKinds,
    count: is.integer({ from: 1, default: 1 }),
    per: is.choice(["all", "parents"], { default: "all" }),
  } satisfies OptionKinds<Given<"keep_best">>),
  aggregate: optionTable({
    ...sharedKinds,
    groupSize: is.integer({ from: 2 }),
    count: is.integer({ from: 1, default: 1 }),
  } satisfies OptionKinds<Given<"aggregate">>),
  refine: optionTable({
    ...sharedKinds,
    maxRounds: is.integer({ from: 1, default: 1 }),
    threshold: is.number({ from: 0, to: 1, default: 0.9 }),
  } satisfies OptionKinds<Given<"refine">>),
};

function resolveLimits(name: string, operation: ThoughtOperation): WithoutLinks<ResolvedOperation> {
  const at = `operation ${name} of ${where}`;
  switch (operation.do) {
    case "generate":
      return { do: "generate", count: tables.generate.read(at, operation).count };
    case "split": {
      const { count, by } = tables.split.read(at, operation);
      return { do: "split", count, ...(by && { by }) };
    }
    case "keep_best": {
      const { count, per } = tables.keep_best.read(at, operation);
      return { do: "keep_best", count, per };
    }
    case "aggregate": {
      const { groupSize = null, count } = tables.aggregate.read(at, operation);
      return { do: "aggregate", groupSize, count };
    }
    case "refine": {
      const { maxRounds, threshold } = tables.refine.read(at, operation);
      return { do: "refine", maxRounds, threshold };
    }
    case "score":
      return { do: "score" };
    default: {
      const { do: unknown } = operation as { readonly do: unknown };
      throw invalidOperations(
        `operation ${name} has do: ${describeValue(unknown)}; it must be generate, split, score, keep_best, aggregate or refine`,
      );
    }
  }
}

function invalidOperations(problem: string): Fault {
  return new Fault("invalid_argument", `invalid operations of ${where}: ${problem}`);
}

/** A score and the reason for it; the reason may be empty. */
export interface ThoughtJudgement {
  readonly score: number;
  readonly reason: string;
}

/** Maximum number of parts that a function may split one thought into. */
const maxParts = 100;

/** Splits a text with a function. */
export async function splitBy(
  operation: string,
  by: ThoughtSplitter,
  text: string,
): Promise<readonly string[]> {
  const parts: unknown = await by(text);
  if (Array.isArray(parts) && parts.length <= maxParts && parts.every((part) => typeof part === "string"))
    return parts;
  throw new Fault(
    "invalid_argument",
    `by of operation ${operation} of graphOfThoughts returned ${describeValue(parts)}: expected a list of at most ${maxParts} texts`,
  );
}

/** Scores a thought with a function. A score outside 0 to 1 throws, because its scale is unknown. */
export async function scoreBy(
  scorer: ThoughtScorer,
  thought: ScoredThought,
): Promise<{ readonly score: number; readonly reason: string }> {
  const returned: unknown = await scorer(thought);
  const { score, reason = "" } =
    typeof returned === "object" && returned !== null
      ? (returned as { readonly score?: unknown; readonly reason?: unknown })
      : { score: returned };
  if (typeof score === "number" && score >= 0 && score <= 1 && typeof reason === "string")
    return { score, reason };
  throw new Fault(
    "invalid_argument",
    `the scorer of graphOfThoughts returned ${describeValue(returned)}: expected a score from 0 to 1, or { score, reason }`,
  );
}

/** Returns at most `count` parts. Further parts are joined to the last one, so that no part is lost. */
export function joinedAfter(parts: readonly string[], count: number): readonly string[] {
  if (parts.length <= count) return parts;
  return [...parts.slice(0, count - 1), parts.slice(count - 1).join("\n")];
}

/** Returns an operation as JSON, for the log. */
export function operationJson(operation: ResolvedOperation): JsonObject {
  if (operation.do !== "split") return { ...operation };
  const { by, ...rest } = operation;
  return by === undefined ? rest : { ...rest, by: "function" };
}

/** Splits a list into groups of consecutive items. The last group may be smaller. */
export function inGroups<Item>(items: readonly Item[], size: number): readonly (readonly Item[])[] {
  const groups: (readonly Item[])[] = [];
  for (let start = 0; start < items.length; start += size) groups.push(items.slice(start, start + size));
  return groups;
}

/** One candidate answer, or a part of the work on one. */
export interface Thought {
  readonly id: string;
  readonly text: string;
  /** Ids of the thoughts from which this one was made. */
  readonly from: readonly string[];
  /** Score from 0 to 1. `null` until the thought is scored. */
  readonly score: number | null;
  /** The evaluator's reply, which explains the score. */
  readonly reason: string;
}

/** Returns the best thoughts: of all thoughts, or of each group with the same parents. */
export function keepBest(
  { count, per }: OperationOf<"keep_best">,
  thoughts: readonly Thought[],
): readonly Thought[] {
  if (per === "all") return ranked(thoughts).slice(0, count);
  const groups = Map.groupBy(thoughts, ({ from }) => from.join());
  return [...groups.values()].flatMap((group) => ranked(group).slice(0, count));
}

export function uniqueThoughts(thoughts: readonly Thought[]): readonly Thought[] {
  return [...new Map(thoughts.map((each) => [each.id, each])).values()];
}

/**
 * Sorts thoughts by score, best first. Of thoughts with equal scores the later one comes first, because more
 * thoughts were used for it. Thoughts without a score come last.
 */
export function ranked(thoughts: readonly Thought[]): readonly Thought[] {
  return thoughts.toReversed().toSorted((one, other) => (other.score ?? -1) - (one.score ?? -1));
}
