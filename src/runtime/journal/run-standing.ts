import {
  waitCauses,
  type Headcount,
  type RunStanding,
  type TaskId,
  type TaskOutcome,
  type WaitCause,
} from "../../kernel/index.ts";

/** The part of a run's state that decides its standing. */
export interface StandingRun {
  readonly liveTasks: number;
  readonly paused: boolean;
  readonly headcount: Headcount;
  readonly tasks: ReadonlyMap<
    TaskId,
    { readonly outcome: TaskOutcome | null; readonly waitsFor: readonly WaitCause[] }
  >;
}

const nothing: readonly WaitCause[] = [];
export const running: RunStanding = { status: "running", waitsFor: nothing };
const paused: RunStanding = { status: "paused", waitsFor: nothing };

/** K1: the standing of a run. A run waits if each of its live tasks waits, or has no seat. Costs O(tasks that have not ended). */
export function standingOf(run: StandingRun): RunStanding {
  if (run.liveTasks === 0) return running;
  if (run.paused) return paused;
  const found = new Set<WaitCause>();
  const { tasks } = run.headcount;
  for (const taskId in tasks) {
    const task = run.tasks.get(taskId as TaskId);
    const seat = tasks[taskId as TaskId];
    if (task === undefined || task.outcome !== null || seat === undefined) continue;
    if (seat.status === "pending" || seat.status === "paused") found.add("seat");
    else if (seat.status === "pausing" || !seat.idle) return running;
    else for (const cause of task.waitsFor) found.add(cause);
  }
  return { status: "waiting", waitsFor: waitCauses.filter((cause) => found.has(cause)) };
}

export function isSameStanding(one: RunStanding, other: RunStanding): boolean {
  return one.status === other.status && one.waitsFor.join() === other.waitsFor.join();
}
