import {
  noUsage,
  type Event,
  type JsonValue,
  type PendingApproval,
  type RunHandle,
  type RunResult,
} from "../../kernel/index.ts";
import { RunHistory } from "./run-history.ts";

/** The last `run_end` of a run and the last `task_end` of its root task. */
export interface EndEvents {
  runEnd?: Event<"run_end">;
  rootEnd?: Event<"task_end">;
}

const nothingPending: readonly PendingApproval[] = Object.freeze([]);

type LazyField = "messages" | "steps" | "toolCalls" | "reasoning" | "files";

const historyKey = Symbol("history");

/**
 * The fields that are computed when they are read. All results share these getters: a getter in an object literal would
 * belong to a hidden class of its own, which keeps the events of the run in memory until the next full garbage collection.
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

/** The result of a run that has ended. `events` reads all events of the run. */
export function endedResult(
  { runId, sessionId, agentId }: Pick<RunHandle, "runId" | "sessionId" | "agentId">,
  { runEnd, rootEnd }: EndEvents,
  events: () => readonly Event[],
): RunResult<JsonValue> {
  const { usage = noUsage, costUsd = 0, turns = 0, status = "failed" } = runEnd?.data ?? {};
  const { lost = { tokens: 0, costUsd: 0 } } = runEnd?.data ?? {};
  const failure = rootEnd?.data.failure ?? null;
  const output = rootEnd?.data.output ?? null;
  const own = {
    output,
    status,
    finishReason: rootEnd?.data.finishReason ?? null,
    pendingApprovals: nothingPending,
    interruptionReason: rootEnd?.data.interruption?.reason ?? failure?.message ?? null,
    usage,
    costUsd,
    unreported: lost,
    turns,
    runId,
    sessionId,
    agentId,
    error: failure,
    metadata: rootEnd?.data.metadata ?? {},
  };
  Object.defineProperty(own, historyKey, { value: new RunHistory(events, output) });
  return Object.defineProperties(own, lazyFields) as typeof own & Pick<RunResult, LazyField>;
}
