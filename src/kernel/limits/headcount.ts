import type { TaskId } from "../base/identity.ts";
import type { Priority } from "./priority.ts";
import type { SpawnBudget } from "./spawn-budget.ts";

/**
 * Who has a seat in a run, as a state machine: `seatHeadcount` applies a command in place, `stepHeadcount` gives the next state and
 * leaves the one handed in as it was. The runtime and the spawn tracker stand on it; nobody else counts seats.
 *
 * A task is
 * - `seated`: may work. Leaves by `release`, or becomes `pausing` when a newcomer is promised its seat.
 * - `pausing`: keeps its seat until its open calls settle (H2). Becomes `paused` by `settle`, `suspend` or `crash`, or
 *   `seated` again when whoever it was to yield to got another seat or left.
 * - `paused`: no seat. Recalled when one frees, highest priority first, among equals the longest in the queue (H5).
 * - `pending`: a newcomer that was promised a seat, or waits for the next that frees, and does not have it yet.
 *
 * The promises: H1 seats taken <= `maxAgents`, at every moment. H2 a seat changes hands only when its holder is done with
 * it. H3 only HIGH or CRITICAL newcomers preempt, only strictly lower tasks, lowest first, newest among equals; never
 * the root, an ancestor of the newcomer, or a task recalled since its last model call. H5 recall. H8 a demoted task
 * yields only to one that waits; a promoted one queues by its new rank.
 */
export interface Headcount {
  readonly budget: SpawnBudget;
  readonly rootId: TaskId;
  /** In the order of hiring. An ended task is not here. */
  readonly tasks: Readonly<Record<TaskId, HeadcountTask>>;
  /** Numbers hirings and queueings alike. */
  readonly nextOrder: number;
  /** Of the tasks: how many have a seat, */
  readonly taken: number;
  /** have none, */
  readonly waiting: number;
  /** and have one that is promised to another. */
  readonly pausing: number;
}

export type SeatStatus = "seated" | "pausing" | "paused" | "pending";

export interface HeadcountTask {
  readonly taskId: TaskId;
  /** The nearest ancestor that has not ended. */
  readonly parentId: TaskId | null;
  readonly priority: Priority;
  readonly status: SeatStatus;
  /** Suspended: it has no open call, so it pauses at once. */
  readonly idle: boolean;
  /** Recalled, and no model call of it has completed since: not a victim (H3). */
  readonly shielded: boolean;
  readonly hired: number;
  /** When it began to wait for a seat; `null` while it has one. */
  readonly queued: number | null;
  /** Of a pausing task: who takes its seat. */
  readonly yieldsTo: TaskId | null;
  /** Tasks here whose `parentId` it is. */
  readonly children: number;
}

export type HeadcountCommand =
  | {
      readonly type: "acquire";
      readonly taskId: TaskId;
      readonly parentId: TaskId;
      readonly priority: Priority;
      /**
       * Where it would be refused a seat it waits for the next that frees, as this: `pending` a newcomer, `paused` one that was hired before
       * and is gone on with (J5). A newcomer for whom no seat can free is refused all the same.
       */
      readonly waits?: "pending" | "paused";
    }
  /** The task ended, however it ended. */
  | { readonly type: "release"; readonly taskId: TaskId }
  /** A pausing task's open calls have settled. */
  | { readonly type: "settle"; readonly taskId: TaskId }
  /** The task waits for something and has no open call; it keeps its seat (H1). */
  | { readonly type: "suspend"; readonly taskId: TaskId }
  | { readonly type: "wake"; readonly taskId: TaskId }
  /** A model call of the task completed. */
  | { readonly type: "progress"; readonly taskId: TaskId }
  | { readonly type: "reprioritize"; readonly taskId: TaskId; readonly priority: Priority }
  /** The owner died: no call is open any more. */
  | { readonly type: "crash" };

/** What happened to a task besides the one the command was about, and to that one, in order. */
export interface SeatChange {
  readonly taskId: TaskId;
  /** `kept`: was pausing, need not any more. */
  readonly change: "granted" | "pausing" | "paused" | "recalled" | "kept";
}

/** `nobody_leaves`: it would wait for ever, since whoever has a seat waits for it, or for somebody else who waits for one. */
export type RefusalReason =
  | "full"
  | "preemption_off"
  | "nobody_below"
  | "nobody_leaves"
  | "already_hired"
  | "unknown_parent";

export type HeadcountOutcome =
  | { readonly kind: "granted" | "done"; readonly changes: readonly SeatChange[] }
  /** `victim`: whose seat it is promised; `null` where it waits for whichever frees. */
  | { readonly kind: "pending"; readonly victim: TaskId | null; readonly changes: readonly SeatChange[] }
  /** H4: a value the model can react to. `holders` says who has the seats. */
  | { readonly kind: "refused"; readonly reason: RefusalReason; readonly holders: readonly SeatHolder[] }
  /** The task is not here, or not in a status the command applies to; nothing changed. */
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

/** A run with its root seated. */
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
