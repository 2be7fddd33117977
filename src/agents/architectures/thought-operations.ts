import { describeValue, Fault } from "../../kernel/index.ts";
import { requireCount, requireScore } from "./option-checks.ts";

interface OperationBase {
  /** For others to refer to; `op_3` unless told, counted from 1. */
  readonly name?: string;
  /** Whose thoughts it works on: operations before it. The one right before it unless told. */
  readonly from?: readonly string[];
}

/** What is done with thoughts, each of which is a whole answer. */
export type ThoughtOperation = OperationBase &
  (
    | {
        /** So many answers, each from scratch. 3 unless told. Whatever comes before it is not looked at. */
        readonly do: "generate";
        readonly count?: number;
      }
    | {
        /** Each that has no score gets one. */
        readonly do: "score";
      }
    | {
        /** The best; what has no score comes last. 1 unless told. */
        readonly do: "keep_best";
        readonly count?: number;
      }
    | {
        /** One thought made of several. */
        readonly do: "aggregate";
      }
    | {
        /** Each is criticised by its score's reason and rewritten, until it scores `threshold` or the rounds are used up. A version that scores lower is dropped. */
        readonly do: "refine";
        /** 1 unless told. */
        readonly maxRounds?: number;
        /** 0.9 unless told. */
        readonly threshold?: number;
      }
  );

/** An operation with all it needs said. */
export type ResolvedOperation = { readonly name: string; readonly from: readonly string[] } & (
  | { readonly do: "generate"; readonly count: number }
  | { readonly do: "score" }
  | { readonly do: "keep_best"; readonly count: number }
  | { readonly do: "aggregate" }
  | { readonly do: "refine"; readonly maxRounds: number; readonly threshold: number }
);

/** Three drafts, the best two made into one and refined; the best of these is the answer. */
export const usualOperations: readonly ThoughtOperation[] = Object.freeze([
  { name: "drafts", do: "generate", count: 3 },
  { name: "scored", do: "score" },
  { name: "best", do: "keep_best", count: 2 },
  { name: "merged", do: "aggregate" },
  { name: "refined", do: "refine" },
  { name: "answer", do: "keep_best", from: ["best", "refined"] },
]);

const where = "graphOfThoughts";

/** Refers only to what stands before, so it has no circle and comes to an end. */
export function resolveOperations(operations: readonly ThoughtOperation[]): readonly ResolvedOperation[] {
  if (operations.length === 0)
    throw invalidOperations('there is no operation: give at least { do: "generate" }');
  const known: string[] = [];
  return operations.map((operation, index) => {
    const { name = `op_${index + 1}` } = operation;
    const [before] = known.slice(-1);
    if (known.includes(name)) throw invalidOperations(`there are two operations named ${name}`);
    const own = resolveLimits(name, operation);
    const from =
      operation.do === "generate" ? [] : (operation.from ?? (before === undefined ? [] : [before]));
    if (operation.do !== "generate" && from.length === 0)
      throw invalidOperations(`operation ${name} has nothing to work on: put one that generates before it`);
    const unknown = from.find((each) => !known.includes(each));
    if (unknown !== undefined)
      throw invalidOperations(
        `operation ${name} works on ${unknown}, which does not stand before it; before it are: ${known.join(", ") || "none"}`,
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
        `operation ${name} is to do ${describeValue(unknown)}: it must be generate, score, keep_best, aggregate or refine`,
      );
    }
  }
}

function invalidOperations(problem: string): Fault {
  return new Fault("invalid_argument", `the operations of ${where}: ${problem}`);
}
