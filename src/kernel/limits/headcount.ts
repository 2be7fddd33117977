import type { TaskId } from "../base/identity.ts";
import type { SpawnBudget } from "./budget.ts";
import type { Priority } from "./priority.ts";

/**
 * The seats of a run, as a state machine. `seatHeadcount` applies a command in place; `stepHeadcount` returns the
 * next state and leaves the given one unchanged. The runtime and `SpawnTracker` use it; no other code counts seats.
 *
 * Status of a task:
 *
 * - `seated`: may work. It gives up the seat by `release`, or becomes `pausing` when its seat is promised to a new
 *   task.
 * - `pausing`: keeps its seat until its calls in flight settle (H2). It becomes `paused` by `settle`, `suspend` or
 *   `crash`, or `seated` again if the other task got another seat or ended.
 * - `paused`: has no seat. It gets a seat again when one becomes free: the highest priority first, among equals the
 *   one that has waited longest (H5). A task that is held, because it waits for a larger budget, gets no seat
 *   before `unhold`.
 * - `pending`: a new task that is promised a seat, or waits for the next free one.
 *
 * Promises: H1: seats taken <= `maxAgents` at every moment; a task that waits for a larger budget holds no seat.
 * H2: a seat changes hands only after its holder's calls have settled; a program of `ctx.attempt` is not a call;
 * only the calls that it makes through the attempt are. H3: only a new HIGH or CRITICAL task preempts, and only a
 * task of strictly lower priority, the lowest first, among equals the newest; never the root, an ancestor of the
 * new task, or a task that was recalled and has not completed a model call since then. H5: a paused task is
 * recalled when a seat is free; a task that waits for a larger budget only after a top-up. H8: a task whose
 * priority is lowered gives its seat only to a waiting task; a task whose priority is raised waits with its new
 * priority.
 */
export interface Headcount {
  readonly budget: SpawnBudget;
  readonly rootId: TaskId;
  /** The tasks that have not ended, in the order in which they were spawned. */
  readonly tasks: Readonly<Record<TaskId, HeadcountTask>>;
  /** The next sequence number. It orders both the spawned tasks and the tasks that wait for a seat. */
  readonly nextOrder: number;
  /** Number of tasks that hold a seat. */
  readonly taken: number;
  /** Number of tasks without a seat. */
  readonly waiting: number;
  /** Number of tasks whose seat is promised to another task. */
  readonly pausing: number;
}

export type SeatStatus = "seated" | "pausing" | "paused" | "pending";

export interface HeadcountTask {
  readonly taskId: TaskId;
  /** The nearest ancestor that has not ended. */
  readonly parentId: TaskId | null;
  readonly priority: Priority;
  readonly status: SeatStatus;
  /** Whether the task is suspended. It has no call in flight, so it can pause immediately. */
  readonly idle: boolean;
  /**
   * Whether the task was recalled and has not completed a model call since then. If so, it cannot be a victim (H3).
   */
  readonly shielded: boolean;
  readonly hired: number;
  /** Sequence number at which the task began to wait for a seat. `null` while it holds a seat. */
  readonly queued: number | null;
  /** For a pausing task, the task that takes its seat. `null` if the task pauses because it is held. */
  readonly yieldsTo: TaskId | null;
  /**
   * The task whose budget must be raised before this task is recalled (H5). Absent if the task does not wait for a
   * larger budget.
   */
  readonly heldFor?: TaskId;
  /** Number of live children. */
  readonly children: number;
}

export type HeadcountCommand =
  | {
      readonly type: "acquire";
      readonly taskId: TaskId;
      readonly parentId: TaskId;
      readonly priority: Priority;
      /**
       * Lets a task wait for the next free seat in cases in which it would otherwise be refused: as `pending` if it
       * is new, as `paused` if it existed before and is resumed (J5). A new task for which no seat can ever become
       * free is still refused.
       */
      readonly waits?: "pending" | "paused";
    }
  /** The task ended, with any status. */
  | { readonly type: "release"; readonly taskId: TaskId }
  /** The calls in flight of a pausing task have settled. */
  | { readonly type: "settle"; readonly taskId: TaskId }
  /** The task waits and has no call in flight. It keeps its seat (H1). */
  | { readonly type: "suspend"; readonly taskId: TaskId }
  | { readonly type: "wake"; readonly taskId: TaskId }
  /** A model call of the task completed. */
  | { readonly type: "progress"; readonly taskId: TaskId }
  | { readonly type: "reprioritize"; readonly taskId: TaskId; readonly priority: Priority }
  /** The task waits until the budget of `heldFor` is raised. It pauses once its calls in flight have settled (H2). */
  | { readonly type: "hold"; readonly taskId: TaskId; readonly heldFor: TaskId }
  /** The task no longer waits for a larger budget. It is recalled like every paused task. */
  | { readonly type: "unhold"; readonly taskId: TaskId }
  /** The owner of the run died, so that no call is in flight any more. */
  | { readonly type: "crash" };

/** A change of one task's seat that a command has caused. The task may be another one than that of the command. */
export interface SeatChange {
  readonly taskId: TaskId;
  /** `kept` means that the task was about to pause and now keeps its seat. */
  readonly change: "granted" | "pausing" | "paused" | "recalled" | "kept";
}

/**
 * Why a seat was refused. `nobody_leaves` means that the task would wait forever, because every task with a seat
 * waits for it or for another waiting task. // prose-check: ignore
 */
export type RefusalReason =
  | "full"
  | "preemption_off"
  | "nobody_below"
  | "nobody_leaves"
  | "already_hired"
  | "unknown_parent";

export type HeadcountOutcome =
  | { readonly kind: "granted" | "done"; readonly changes: readonly SeatChange[] }
  /** `victim` is the task whose seat is promised, or `null` if the new task waits for any seat. */
  | { readonly kind: "pending"; readonly victim: TaskId | null; readonly changes: readonly SeatChange[] }
  /**
   * H4: the seat was refused. The refusal is a value and not an error, so that the model can react to it. `holders`
   * lists the tasks that hold the seats.
   */
  | { readonly kind: "refused"; readonly reason: RefusalReason; readonly holders: readonly SeatHolder[] }
  /** The task does not exist, or its status does not allow the command. Nothing changed. */
  | { readonly kind: "ignored" };

export interface SeatHolder {
  readonly taskId: TaskId;
  readonly priority: Priority;
  readonly status: SeatStatus;
}

export interface HeadcountStep {
  readonly state: Headcount;
  readonly outcome: HeadcountOutcome;
}

/** Creates the headcount of a new run, in which the root has a seat. */
export function openHeadcount(budget: SpawnBudget, rootId: TaskId, priority: Priority): Headcount {
  const root: HeadcountTask = {
    taskId: rootId,
    parentId: null,
    priority,
    status: "seated",
    idle: false,
    shielded: false,
    hired: 0,
    queued: null,
    yieldsTo: null,
    children: 0,
  };
  return { budget, rootId, tasks: { [rootId]: root }, nextOrder: 1, taken: 1, waiting: 0, pausing: 0 };
}

export function seatHolders({ tasks }: Headcount): readonly SeatHolder[] {
  return Object.values(tasks)
    .filter(holdsSeat)
    .map(({ taskId, priority, status }) => ({ taskId, priority, status }));
}

export function holdsSeat({ status }: HeadcountTask): boolean {
  return status === "seated" || status === "pausing";
}

const words: Readonly<Record<RefusalReason, string>> = {
  full: "every seat is taken",
  preemption_off: "every seat is taken and preemption is switched off",
  nobody_below: "every seat is taken by a task of the same or a higher priority",
  nobody_leaves:
    "every seat is held by a task that waits for a task without a seat; raise spawnBudget.maxAgents",
  already_hired: "it was spawned already",
  unknown_parent: "the spawning task has no seat itself",
};

/** H4: returns a text that explains to a model why a sub-agent was not spawned. */
export function describeRefusal(
  name: string,
  { reason, holders }: { readonly reason: RefusalReason; readonly holders: readonly SeatHolder[] },
): string {
  const { length } = holders;
  return `${name} was not spawned: ${words[reason]} (${length} ${length === 1 ? "seat" : "seats"})`;
}
