import {
  Fault,
  type CrashLoop,
  type Lease,
  type LostCall,
  type LostOwner,
  type RunId,
  type Store,
  type TaskId,
} from "../../kernel/index.ts";
import type { RunState } from "../journal/run-state.ts";
import { deadlineOf } from "../journal/task-clock.ts";
import type { TaskState } from "../journal/task-state.ts";
import { asksPerson, isCall, isLastingWait } from "../journal/wait-names.ts";
import { hasPausing } from "./run-headcount.ts";
import { openCalls } from "./run-ledger.ts";

/**
 * How long a run that only waits may be left alone. `wakeAt` is in epoch milliseconds; `null` means until mail
 * arrives.
 */
export interface RunRest {
  readonly wakeAt: number | null;
}

/**
 * L7: returns how long a run may be left alone that its last owner left without releasing it. `undefined` if the
 * run has work. A run that only waits is not replayed, so that its code cannot end the process. Costs O(live
 * tasks).
 */
export function restOf(state: RunState, now: number): RunRest | undefined {
  const { ledger, headcount } = state;
  const isLeft = openCalls(ledger).length > 0 || ledger.waiting.length > 0 || hasPausing(headcount);
  if (state.ended || state.resumesFork || isLeft) return undefined;
  if (state.paused) return { wakeAt: null };
  let wakeAt = Infinity;
  for (const taskId in headcount.tasks) {
    const task = state.task(taskId as TaskId);
    if (task.outcome !== null) continue;
    if (task.cancelled !== null || task.crashes > 0) return undefined;
    const deadline = task.clock.isStopped ? null : deadlineOf(task);
    wakeAt = Math.min(wakeAt, deadline === null ? Infinity : deadline + 1);
    if (headcount.tasks[taskId as TaskId]?.status !== "seated") continue;
    if (headcount.tasks[taskId as TaskId]?.idle !== true || !stillWaits(state, task)) return undefined;
    wakeAt = Math.min(wakeAt, task.suspension?.until ?? Infinity);
  }
  if (wakeAt <= now) return undefined;
  return { wakeAt: wakeAt === Infinity ? null : wakeAt };
}

/** Whether the task still waits as in its last `task_suspend`, because nothing has arrived that ends the wait. */
function stillWaits(state: RunState, { record, suspension }: TaskState): boolean {
  if (suspension === undefined || suspension.waitsFor.length === 0) return false;
  return suspension.waitsFor.every((name) => {
    const [kind = "", ...rest] = name.split(" ");
    if (!isLastingWait(name)) return false;
    if (kind === "join") return rest.every((child) => state.tasks.get(child as TaskId)?.outcome === null);
    return state.resolutions.first(record.taskId, name) === undefined;
  });
}

/** What is known about the owners in a row that were lost while they executed a run. */
export interface JudgedLosses extends Pick<CrashLoop, "ended" | "unknown"> {
  /**
   * The last of the lost owners. `undefined` if the run only waited or had not started, so that the loss does not
   * count.
   */
  readonly lost: LostOwner | undefined;
}

/** L7: judges the loss of the last owner, together with the earlier losses in the journal. */
export async function judgeLosses(
  { leases }: Pick<Store, "leases">,
  state: RunState,
  last: LostOwner,
): Promise<JudgedLosses> {
  const lost = state.isExecuting ? last : undefined;
  const losses = lost === undefined ? state.losses : [...state.losses, lost];
  const known = losses.length === 0 ? [] : await leases.haveEnded(losses);
  return {
    lost,
    ended: losses.filter((_, index) => known[index] === true),
    unknown: losses.filter((_, index) => known[index] !== true),
  };
}

/**
 * Returns the calls that the last owner left in flight, as far as the journal names them. It reads the events since
 * the start of the first of these calls.
 */
export async function callsInFlight(
  { events }: Pick<Store, "events">,
  state: RunState,
  runId: RunId,
): Promise<readonly LostCall[]> {
  const calls: LostCall[] = openCalls(state.ledger).map(({ taskId, label }) => ({
    taskId,
    kind: "model",
    name: label?.modelId ?? null,
  }));
  const begun = new Set<number>();
  for (const { outcome, opened } of state.tasks.values())
    for (const [address, seq] of opened)
      if (outcome === null && isCall(address) && !asksPerson(address)) begun.add(seq);
  if (begun.size === 0) return calls;
  for await (const event of events.read(runId, Math.min(...begun))) {
    if (event.type !== "tool_execution_start" || !begun.has(event.seq)) continue;
    calls.push({ taskId: event.taskId, kind: "tool", name: event.data.toolName });
  }
  return calls;
}

/**
 * Number of recoveries without a commit after which a run is not loaded at once, because loading it may be what
 * kills the processes.
 */
const maxLoads = 10;

/** Maximum delay after a loss before such a run is loaded again, in milliseconds. */
const longestLoadDelayMs = 300_000;

/**
 * L7: throws `crash_loop` if so many owners were lost without a commit that the run must not be loaded yet. It may
 * be loaded after a delay since the last loss, which doubles with each loss, from a second to five minutes. So a
 * run that is not the cause of the losses is loaded soon, and a run that kills its processes kills only few of
 * them.
 */
export function refuseLoad({ runId, recoveries = 0, lostAt }: Lease, now: number): void {
  if (recoveries < maxLoads || lostAt === undefined) return;
  const retryAt = lostAt + Math.min(longestLoadDelayMs, 1_000 * 2 ** (recoveries - maxLoads));
  if (retryAt <= now) return;
  throw new Fault(
    "crash_loop",
    `run ${runId} is not loaded for another ${Math.ceil((retryAt - now) / 1_000)} s, because ${recoveries} workers in a row were lost after they claimed it, before it had a commit; find out why their processes ended, for example because the run needs more memory than they have`,
    { details: { runId, recoveries, retryAt } },
  );
}
