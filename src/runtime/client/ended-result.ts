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
  const history = new RunHistory(events, output);
  return {
    output,
    status,
    finishReason: rootEnd?.data.finishReason ?? null,
    get messages() {
      return history.messages;
    },
    get steps() {
      return history.steps;
    },
    get toolCalls() {
      return history.toolCalls;
    },
    get reasoning() {
      return history.reasoning;
    },
    get files() {
      return history.files;
    },
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
}
