import { describeValue, Fault } from "../../kernel/index.ts";
import { requireCount, requireScore } from "./option-checks.ts";

/** Options that every operation has. */
interface OperationBase {
  /**
   * Name by which later operations refer to this one. Default: `op_` and the position of the operation, counted from 1.
   */
  readonly name?: string;
  /** Names of earlier operations whose thoughts this one works on. Default: the operation just before it. */
  readonly from?: readonly string[];
}

/** An operation on thoughts. A thought is a whole answer. */
export type ThoughtOperation = OperationBase &
  (
    | {
        /** Writes `count` independent answers from scratch. Ignores the thoughts of earlier operations. */
        readonly do: "generate";
        /** Number of answers. Default: 3. */
        readonly count?: number;
      }
    | {
        /** Scores every thought that has no score. */
        readonly do: "score";
      }
    | {
        /** Keeps the `count` best thoughts. Thoughts without a score come last. */
        readonly do: "keep_best";
        /** Number of thoughts to keep. Default: 1. */
        readonly count?: number;
      }
    | {
        /** Merges all thoughts into one. */
        readonly do: "aggregate";
      }
    | {
        /**
         * Rewrites each thought by the reason for its score, until it reaches `threshold` or the rounds are used up. A
         * version with a lower score is dropped.
         */
        readonly do: "refine";
        /** Maximum number of rewrites of one thought. Default: 1. */
        readonly maxRounds?: number;
        /** Score from 0 to 1 at which a thought is not rewritten any more. Default: 0.9. */
        readonly threshold?: number;
      }
  );

/** An operation with all defaults filled in. */
export type ResolvedOperation = { readonly name: string; readonly from: readonly string[] } & (
  | { readonly do: "generate"; readonly count: number }
  | { readonly do: "score" }
  | { readonly do: "keep_best"; readonly count: number }
  | { readonly do: "aggregate" }
  | { readonly do: "refine"; readonly maxRounds: number; readonly threshold: number }
);

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
 * Checks the operations and fills in their defaults. An operation may only refer to earlier ones, so the graph has no
 * cycle.
 */
export function resolveOperations(operations: readonly ThoughtOperation[]): readonly ResolvedOperation[] {
  if (operations.length === 0) throw invalidOperations('the list is empty: give at least { do: "generate" }');
  const known: string[] = [];
  return operations.map((operation, index) => {
    const { name = `op_${index + 1}` } = operation;
    const [before] = known.slice(-1);
    if (known.includes(name)) throw invalidOperations(`two operations are named ${name}: rename one of them`);
    const own = resolveLimits(name, operation);
    const from =
      operation.do === "generate" ? [] : (operation.from ?? (before === undefined ? [] : [before]));
    if (operation.do !== "generate" && from.length === 0)
      throw invalidOperations(
        `operation ${name} has no thoughts to work on: put a generate operation before it`,
      );
    const unknown = from.find((each) => !known.includes(each));
    if (unknown !== undefined)
      throw invalidOperations(
        `operation ${name} works on ${unknown}, which is not an earlier operation; earlier operations: ${known.join(", ") || "none"}`,
      );
    known.push(name);
    return { name, from, ...own };
  });
}

type WithoutLinks<Operation> = Operation extends unknown ? Omit<Operation, "name" | "from"> : never;

function resolveLimits(name: string, operation: ThoughtOperation): WithoutLinks<ResolvedOperation> {
  const at = `operation ${name} of ${where}`;
  switch (operation.do) {
    case "generate":
      return { do: "generate", count: requireCount(at, "count", operation.count ?? 3) };
    case "keep_best":
      return { do: "keep_best", count: requireCount(at, "count", operation.count ?? 1) };
    case "refine":
      return {
        do: "refine",
        maxRounds: requireCount(at, "maxRounds", operation.maxRounds ?? 1),
        threshold: requireScore(at, "threshold", operation.threshold ?? 0.9),
      };
    case "score":
    case "aggregate":
      return { do: operation.do };
    default: {
      const { do: unknown } = operation as { readonly do: unknown };
      throw invalidOperations(
        `operation ${name} has do: ${describeValue(unknown)}; it must be generate, score, keep_best, aggregate or refine`,
      );
    }
  }
}

function invalidOperations(problem: string): Fault {
  return new Fault("invalid_argument", `invalid operations of ${where}: ${problem}`);
}
