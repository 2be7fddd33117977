import {
  nothingSpent,
  type Event,
  type JsonValue,
  type PendingApproval,
  type RunRecord,
  type RunResult,
} from "../../kernel/index.ts";
import { RunHistory } from "./run-history.ts";

/** The last `run_end` of a run and the last `task_end` of its root task. */
export interface EndEvents {
  runEnd?: Event<"run_end">;
  rootEnd?: Event<"task_end">;
  /** The last correction of its usage. */
  corrected?: Event<"usage_corrected">;
}

const nothingPending: readonly PendingApproval[] = Object.freeze([]);

type LazyField = "messages" | "steps" | "toolCalls" | "reasoning" | "files";

const historyKey = Symbol("history");

/**
 * The fields that are computed when they are first read. All results share these getters. With a getter in an
 * object literal, each result would have its own hidden class, which keeps the events of the run in memory until
 * the next full garbage collection.
 */
const lazyFields: Readonly<Record<LazyField, PropertyDescriptor>> = {
  messages: lazyField("messages"),
  steps: lazyField("steps"),
  toolCalls: lazyField("toolCalls"),
  reasoning: lazyField("reasoning"),
  files: lazyField("files"),
};

function lazyField(name: LazyField): PropertyDescriptor {
  return {
    enumerable: true,
    get(this: { readonly [historyKey]: RunHistory }) {
      return this[historyKey][name];
    },
  };
}

/**
 * Creates the result of a run that has ended: a `WorkflowResult` if it is a workflow. `events` reads all events of
 * the run.
 */
export function endedResult(
  { runId, kind, sessionId, agentId }: Pick<RunRecord, "runId" | "kind" | "sessionId" | "agentId">,
  { runEnd, rootEnd, corrected }: EndEvents,
  events: () => readonly Event[],
): RunResult<JsonValue> {
  const { status = "failed", lost: unreported = nothingSpent.unreported } = runEnd?.data ?? {};
  // A correction before the end is part of what the end says.
  const isLater = corrected !== undefined && corrected.seq > (runEnd?.seq ?? 0);
  const spent = isLater ? corrected.data.total : (runEnd?.data ?? nothingSpent);
  const failure = rootEnd?.data.failure ?? null;
  const output = rootEnd?.data.output ?? null;
  const own = {
    output,
    status,
    finishReason: rootEnd?.data.finishReason ?? null,
    pendingApprovals: nothingPending,
    interruptionReason: rootEnd?.data.interruption?.reason ?? failure?.message ?? null,
    usage: spent.usage,
    costUsd: spent.costUsd,
    unreported: isLater ? corrected.data.total.unreported : unreported,
    turns: spent.turns,
    runId,
    agentId,
    error: failure,
    metadata: rootEnd?.data.metadata ?? {},
    ...(kind !== "workflow" && { sessionId }),
  };
  Object.defineProperty(own, historyKey, { value: new RunHistory(events, output) });
  // The caller's type of the result of a workflow has no session.
  return Object.defineProperties(own, lazyFields) as RunResult<JsonValue>;
}
