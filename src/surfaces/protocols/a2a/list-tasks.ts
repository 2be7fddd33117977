import {
  Fault,
  unfinishedStatuses,
  type RunQuery,
  type RunSummary,
  type RunSummaryStatus,
} from "../../../kernel/index.ts";
import { callerSession, shownSession } from "../../http/caller-session.ts";
import type { ListParams, TaskState, WireTask } from "./a2a-schema.ts";
import { endedStates } from "./task-view.ts";
import { requireTask, viewOf, type CalledAgent } from "./tasks.ts";

/** The state of a task, without its log. */
function stateOf({ status, waitsFor, endedAt }: RunSummary): TaskState {
  if (status === "pending") return "TASK_STATE_SUBMITTED";
  if (status === "waiting" && waitsFor.includes("person")) return "TASK_STATE_INPUT_REQUIRED";
  if (endedAt === null || status === "running" || status === "waiting") return "TASK_STATE_WORKING";
  return endedStates[status];
}

/** The statuses of runs that may have a state. */
function statusesOf(state: TaskState): readonly RunSummaryStatus[] {
  if (state === "TASK_STATE_SUBMITTED") return ["pending"];
  if (state === "TASK_STATE_INPUT_REQUIRED") return ["waiting"];
  if (state === "TASK_STATE_WORKING") return unfinishedStatuses.filter((status) => status !== "pending");
  const ended = Object.entries(endedStates) as [RunSummaryStatus, TaskState][];
  return ended.flatMap(([status, each]) => (each === state ? [status] : []));
}

interface TaskPage {
  readonly tasks: readonly WireTask[];
  readonly nextPageToken: string;
  readonly pageSize: number;
  readonly totalSize: number;
}

/**
 * Lists the tasks of an agent that the caller may see, newest first. A filter by a state that depends on what a run waits for,
 * or by a time, is applied to each page, so that a page may have fewer tasks than `pageSize`.
 */
export async function listTasks(of: CalledAgent, params: ListParams): Promise<TaskPage> {
  const { runtime, agent, access } = of;
  const {
    contextId = "",
    status,
    pageSize = 50,
    pageToken = "",
    historyLength = 0,
    includeArtifacts = false,
  } = params;
  const state = status === "TASK_STATE_UNSPECIFIED" ? undefined : status;
  if (state === "TASK_STATE_AUTH_REQUIRED") return { tasks: [], nextPageToken: "", pageSize, totalSize: 0 };
  const query: RunQuery = {
    agentName: agent.name,
    ...(agent.kind === "agent" && { kind: "invocation" as const }),
    ...(contextId !== "" && { sessionId: await callerSession(of, contextId) }),
    ...(state !== undefined && { status: statusesOf(state) }),
  };
  const after = afterOf(params);
  const page = await runtime.list({
    ...query,
    limit: pageSize,
    ...(pageToken !== "" && { after: pageToken }),
  });
  const wanted = page.runs.filter(
    (run) =>
      (state === undefined || stateOf(run) === state) && (after === undefined || run.updatedAt > after),
  );
  const tasks: WireTask[] = [];
  for (const run of wanted) {
    if (!includeArtifacts && historyLength === 0) {
      tasks.push(shortTask(run, shownSession(access, run.sessionId ?? "")));
      continue;
    }
    const view = await viewOf(of, { run: await requireTask(of, run.runId), waitsFromSeq: 0 });
    const { artifacts, ...task } = view.task({ historyLength });
    tasks.push({ ...task, ...(includeArtifacts && artifacts !== undefined && { artifacts }) });
  }
  return { tasks, nextPageToken: page.next ?? "", pageSize, totalSize: await runtime.count(query) };
}

function shortTask(run: RunSummary, contextId: string): WireTask {
  const { runId, updatedAt } = run;
  return {
    id: runId,
    contextId,
    status: { state: stateOf(run), timestamp: new Date(updatedAt).toISOString() },
    metadata: { reeve: { runId } },
  };
}

function afterOf({ statusTimestampAfter = "" }: ListParams): number | undefined {
  if (statusTimestampAfter === "") return undefined;
  const time = Date.parse(statusTimestampAfter);
  if (Number.isNaN(time))
    throw new Fault(
      "invalid_argument",
      `invalid statusTimestampAfter ${JSON.stringify(statusTimestampAfter)}: expected a time as 2026-01-31T12:00:00Z`,
    );
  return time;
}
