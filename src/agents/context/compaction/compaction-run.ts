import {
  compactionProblem,
  contextMessages,
  Fault,
  type CompactionResult,
  type JsonValue,
  type RunContext,
  type SessionCompactionRequest,
  type SkippedCompaction,
} from "../../../kernel/index.ts";
import { limitsFor, type CompactionPlan } from "./compaction-plan.ts";
import { sessionCompaction } from "./session-compaction.ts";
import { summarizeIn } from "./summarizer.ts";

/** The input of a run that compacts a session. */
interface CompactionInput {
  readonly instructions?: string;
  /** Whether a person requested the compaction. Default: `false`. */
  readonly manual?: boolean;
}

/** Executes a run of kind `compaction`. If it writes no entry, it says why; without a summary it has failed. */
export async function runCompaction(
  plan: CompactionPlan | null,
  ctx: RunContext,
  role: string,
): Promise<JsonValue> {
  const { instructions, manual = false } = (ctx.input ?? {}) as CompactionInput;
  const outcome = await ctx.compactSession({
    manual,
    ...(instructions !== undefined && { instructions }),
    compact: (request, inside) =>
      plan === null ? Promise.resolve({ skipped: "disabled" }) : summarise(plan, request, inside, role),
  });
  if ("skipped" in outcome && outcome.skipped === "no_summary") {
    const reason = `the session was not compacted: ${outcome.failure?.message ?? "there is no summary"}`;
    ctx.report({ interruption: { status: "failed", reason } });
  }
  return { ...outcome } as JsonValue;
}

async function summarise(
  plan: CompactionPlan,
  request: SessionCompactionRequest,
  ctx: RunContext,
  role: string,
): Promise<CompactionResult | SkippedCompaction> {
  const { path, instructions, contextWindow } = request;
  const problemOf = (summary: CompactionResult): Fault | undefined => summaryProblem(path, summary);
  const answer = await plan.beforeCompact?.(
    { messages: contextMessages(path), ...(instructions !== undefined && { instructions }) },
    ctx,
    problemOf,
  );
  if (answer !== undefined) {
    if ("cancel" in answer) return { skipped: "cancelled" };
    const problem = problemOf(answer);
    return problem === undefined ? answer : { skipped: "no_summary", failure: problem.toJSON() };
  }
  const { reserveTokens, keepRecentTokens } = limitsFor(plan, contextWindow);
  let failure: Fault | undefined;
  const strategy = sessionCompaction({
    reserveTokens,
    keepRecentTokens,
    fileUse: plan.fileUse,
    summarize: summarizeIn(ctx, { role }),
    onFailure: (fault) => (failure = fault),
  });
  try {
    const result = await strategy.compact(request);
    if (result !== null) return result;
  } catch (error) {
    failure = Fault.from(error);
    if (failure.code !== "budget_exhausted") throw error;
  }
  if (failure === undefined) return { skipped: "nothing_to_compact" };
  return { skipped: "no_summary", failure: failure.toJSON() };
}

/**
 * S3: returns why a summary of an extension is refused, because it keeps an entry that the model does not see, or a
 * result without its call.
 */
function summaryProblem(
  path: SessionCompactionRequest["path"],
  summary: CompactionResult,
): Fault | undefined {
  const problem = compactionProblem(path, summary);
  return problem === undefined ? undefined : new Fault("invalid_argument", problem);
}
