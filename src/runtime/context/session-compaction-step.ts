import {
  compactionProblem,
  contextMessages,
  estimateTokens,
  Fault,
  modelFor,
  rootTaskId,
  sessionSettings,
  type CompactionResult,
  type Model,
  type ModelReference,
  type SessionCompactionOutcome,
  type SessionCompactionStep,
  type SessionEntry,
  type SessionUsage,
  type SkippedCompaction,
} from "../../kernel/index.ts";
import { contextUsage } from "../process/context-usage.ts";
import { resolveModel } from "../process/session-model.ts";
import type { NestedContext } from "../task/nested-scope.ts";
import type { StepExecutor } from "../task/step-executor.ts";
import type { StepIdentity } from "../journal/step-identity.ts";
import type { TaskRunner } from "../task/task-runner.ts";
import { hasOtherRuns } from "./other-runs.ts";
import { noteReport } from "./task-report.ts";

type CompactionEntry = Extract<SessionEntry, { readonly type: "compaction" }>;

/** The record of a session compaction. */
type CompactionRecord = { readonly entry: CompactionEntry; readonly tokensAfter: number } | SkippedCompaction;

/** The session as the compaction found it. A replay reads the same path, up to the same entry. */
interface FoundSession {
  readonly leafId: string | null;
  readonly contextTokens: number;
}

/**
 * Compacts the session of a run of kind `compaction`. The first step records the current entry, the second one the
 * new entry. The summaries are steps inside the second one, so that a new owner does not pay for them again. The
 * entry is written in the commit that ends the run.
 */
export async function compactSession(
  steps: StepExecutor,
  request: SessionCompactionStep,
  scoped: (step: StepIdentity) => NestedContext,
): Promise<SessionCompactionOutcome> {
  const { runner } = steps;
  const { sessionId } = runner.facts;
  if (runner.host.kind !== "compaction" || runner.taskId !== rootTaskId)
    throw new Fault(
      "invalid_argument",
      `run ${runner.facts.runId} is no compaction: use sessions.compact(sessionId), or ctx.requestCompaction() during an invocation`,
    );
  const { instructions, manual } = request;
  const found = await steps.run<FoundSession>(steps.identify("compaction", "leaf", null), () => find(runner));
  const { leafId, contextTokens } = found;
  const step = steps.identify("compaction", "session", { instructions: instructions ?? null });
  const record = await steps.run<CompactionRecord>(
    step,
    async (open) => {
      const ctx = scoped(step);
      const path = await pathTo(runner, leafId);
      const { contextWindow } = usageOf(runner, path);
      const asked = {
        path,
        contextTokens,
        contextWindow,
        ...(instructions !== undefined && { instructions }),
      };
      const result = await request.compact(asked, ctx);
      for (const draft of ctx.takeEvents()) open.emit(draft);
      if ("skipped" in result) return result;
      const entry = entryOf(runner, found, path, result, steps.idempotencyKey(step.address));
      if (seenTokens([...path, entry]) > seenTokens(path)) return { skipped: "longer_summary" };
      return { entry, tokensAfter: usageOf(runner, [...path, entry]).tokens };
    },
    { type: "session_before_compact", data: { sessionId, contextTokens, manual } },
  );
  return close(steps, record);
}

/**
 * Reports the entry, and the events that are committed with it. The session has settled if no run waits for the
 * compaction.
 */
async function close(steps: StepExecutor, record: CompactionRecord): Promise<SessionCompactionOutcome> {
  const { runner } = steps;
  const { facts, agentId } = runner;
  const { sessionId } = facts;
  const isSettled = !(await hasOtherRuns(runner));
  const settle = (): void => {
    if (isSettled) steps.emit({ type: "settled", data: { sessionId } });
  };
  if ("skipped" in record) {
    const { skipped: reason, failure } = record;
    steps.emit({
      type: "compaction_skipped",
      data: { sessionId, reason, ...(failure !== undefined && { failure }) },
    });
    settle();
    return record;
  }
  const { entry, tokensAfter } = record;
  const { id: entryId, tokensBefore } = entry;
  noteReport(runner, {
    sessions: [{ type: "append", sessionId, agentId, entry, visibility: "visible", atLeaf: true }],
  });
  steps.emit({ type: "session_compact", data: { sessionId, entryId, tokensBefore, tokensAfter } });
  steps.emit({ type: "save_point", data: { sessionId, leafId: entryId } });
  settle();
  return { entryId, tokensBefore, tokensAfter };
}

async function find(runner: TaskRunner): Promise<FoundSession> {
  const path = await runner.log.reading(
    runner.worker.store.sessions.readPath(runner.facts.sessionId, { from: "compaction" }),
  );
  return { leafId: path?.leafId ?? null, contextTokens: usageOf(runner, path?.entries ?? []).tokens };
}

async function pathTo(runner: TaskRunner, leafId: string | null): Promise<readonly SessionEntry[]> {
  if (leafId === null) return [];
  const { sessionId } = runner.facts;
  const path = await runner.log.reading(
    runner.worker.store.sessions.readPath(sessionId, { leafId, from: "compaction" }),
  );
  if (path !== undefined) return path.entries;
  throw new Fault("not_found", `session ${sessionId} was deleted while it was compacted`);
}

function usageOf({ agent, worker }: TaskRunner, path: readonly SessionEntry[]): SessionUsage {
  const findModel = (reference: ModelReference | null): Model | undefined =>
    reference === null ? modelFor(agent, "main") : resolveModel(worker, agent, reference);
  return contextUsage(path, findModel);
}

/**
 * Estimates the tokens of what the model sees of a path. The provider's own count is not used, because it measures
 * something else.
 */
function seenTokens(path: readonly SessionEntry[]): number {
  return estimateTokens(contextMessages(path));
}

/**
 * S3: returns the compaction entry. The part of the path that it keeps does not begin with a result whose call is
 * before that part.
 */
function entryOf(
  { facts, taskId, worker }: TaskRunner,
  { leafId, contextTokens: tokensBefore }: FoundSession,
  path: readonly SessionEntry[],
  { summary, firstKeptEntryId }: CompactionResult,
  id: string,
): CompactionEntry {
  const problem = compactionProblem(path, { summary, firstKeptEntryId });
  if (problem !== undefined) throw new Fault("invalid_argument", problem);
  worker.sizes.assert(summary, `the summary of session ${facts.sessionId}`);
  const { model, thinkingLevel } = sessionSettings(path);
  return {
    type: "compaction",
    id,
    parentId: leafId,
    at: worker.clock.now(),
    runId: facts.runId,
    taskId,
    summary,
    firstKeptEntryId,
    tokensBefore,
    ...(model !== null && { model }),
    ...(thinkingLevel !== null && { thinkingLevel }),
  };
}
