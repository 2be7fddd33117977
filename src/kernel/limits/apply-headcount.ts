import type { TaskId } from "../base/identity.ts";
import {
  type Headcount,
  type HeadcountCommand,
  type HeadcountOutcome,
  type HeadcountStep,
  type HeadcountTask,
  holdsSeat,
  type RefusalReason,
  type SeatChange,
  seatHolders,
} from "./headcount.ts";
import { Priority } from "./priority.ts";

/**
 * Applies one command to a headcount in place. No other code may hold the same object. A refused or ignored command
 * changes nothing. Spawning and ending a task cost O(1), or O(live tasks) if a task waits for a seat, yields one,
 * or has children.
 */
export function seatHeadcount(headcount: Headcount, command: HeadcountCommand): HeadcountOutcome {
  return apply(new Seating(headcount), command);
}

/** Copies a headcount, for callers that must not change the original object. */
export function copyHeadcount(headcount: Headcount): Headcount {
  return { ...headcount, tasks: { ...headcount.tasks } };
}

function apply(seating: Seating, command: HeadcountCommand): HeadcountOutcome {
  if (command.type === "acquire") return acquire(seating, command);
  if (command.type === "crash") {
    for (const task of seating.all()) if (task.status === "pausing") seating.pause(task.taskId);
    return seating.done();
  }
  const task = seating.find(command.taskId);
  if (task === undefined) return { kind: "ignored" };
  switch (command.type) {
    case "release":
      return release(seating, task);
    case "settle":
      if (task.status !== "pausing") return { kind: "ignored" };
      seating.pause(task.taskId);
      return seating.done();
    case "suspend":
      seating.change(task.taskId, { idle: true });
      if (task.status === "pausing") seating.pause(task.taskId);
      return seating.done();
    case "wake":
      seating.change(task.taskId, { idle: false });
      return seating.done();
    case "progress":
      seating.change(task.taskId, { shielded: false });
      return seating.done();
    case "reprioritize":
      return reprioritize(seating, task, command.priority);
    case "hold":
      return hold(seating, task, command.heldFor);
    case "unhold":
      return unhold(seating, task);
  }
}

/**
 * H1: a task that waits for a larger budget gives up its seat when its calls have settled. If it has no seat, it
 * leaves the queue for one, and the task that was about to give it a seat keeps that seat.
 */
function hold(seating: Seating, task: HeadcountTask, heldFor: TaskId): HeadcountOutcome {
  const { taskId, status, idle } = task;
  seating.change(taskId, { heldFor, shielded: false });
  if (!holdsSeat(task)) seating.keepVictimOf(taskId);
  if (status !== "seated") return seating.done();
  seating.change(taskId, { status: "pausing" });
  if (idle) seating.pause(taskId);
  return seating.done();
}

/** H5: a held task may take a seat again. If it has not paused yet, it keeps its seat. */
function unhold(seating: Seating, task: HeadcountTask): HeadcountOutcome {
  const { taskId, status, yieldsTo, heldFor } = task;
  if (heldFor === undefined) return { kind: "ignored" };
  seating.endHold(taskId);
  if (status === "pausing" && yieldsTo === null) {
    seating.change(taskId, { status: "seated" });
    seating.note(taskId, "kept");
  }
  seating.fillSeats();
  return seating.done();
}

type Acquire = Extract<HeadcountCommand, { type: "acquire" }>;

function acquire(seating: Seating, command: Acquire): HeadcountOutcome {
  const { taskId, parentId, priority } = command;
  if (seating.find(taskId) !== undefined) return seating.refuse("already_hired");
  if (seating.find(parentId) === undefined) return seating.refuse("unknown_parent");
  if (seating.hasFreeSeat()) {
    seating.hire(command, "seated");
    seating.note(taskId, "granted");
    return { kind: "granted", changes: seating.changes };
  }
  if (priority < Priority.HIGH) return turnAway(seating, command, "full");
  if (!seating.state.budget.allowPreempt) return turnAway(seating, command, "preemption_off");
  const victim = lowestBelow(seating, priority, parentId);
  if (victim === undefined) return turnAway(seating, command, "nobody_below");
  seating.hire(command, "pending");
  seating.yieldSeat(victim.taskId, taskId);
  if (seating.find(taskId)?.status === "seated") return { kind: "granted", changes: seating.changes };
  return { kind: "pending", victim: victim.taskId, changes: seating.changes };
}

function turnAway(seating: Seating, command: Acquire, reason: RefusalReason): HeadcountOutcome {
  const { taskId, parentId, waits } = command;
  if (waits === undefined) return seating.refuse(reason);
  if (waits === "pending") {
    if (!seating.hasLeaver({ hires: parentId })) return seating.refuse("nobody_leaves");
    seating.hire(command, "pending");
    return { kind: "pending", victim: null, changes: seating.changes };
  }
  seating.hire(command, "paused");
  seating.note(taskId, "paused");
  return seating.done();
}

/**
 * H4: frees the seat of a task. The seat goes to the task to which it is promised, otherwise to the first task of
 * the queue.
 */
function release(seating: Seating, task: HeadcountTask): HeadcountOutcome {
  seating.remove(task);
  const promised = task.yieldsTo === null ? undefined : seating.find(task.yieldsTo);
  if (promised !== undefined && seating.maySit(promised)) seating.seat(promised.taskId);
  seating.keepVictimOf(task.taskId);
  seating.fillSeats();
  return seating.done();
}

/**
 * H8: changes a task's priority. A seat can become free only if the priority is lowered and a task waits that is
 * promised no other seat.
 */
function reprioritize(seating: Seating, task: HeadcountTask, priority: Priority): HeadcountOutcome {
  seating.change(task.taskId, { priority });
  if (task.status !== "seated" || priority >= task.priority || !mayYield(seating, task))
    return seating.done();
  const waiter = seating
    .queue()
    .find(
      (each) =>
        each.priority > priority &&
        seating.victimOf(each.taskId) === undefined &&
        seating.maySit(each, task.taskId) &&
        !seating.isAncestor(task.taskId, each.parentId),
    );
  if (waiter !== undefined) seating.yieldSeat(task.taskId, waiter.taskId);
  return seating.done();
}

/** H3: finds the victim for a new task that `parentId` spawns, which is the task that gives up its seat. */
function lowestBelow(seating: Seating, priority: Priority, parentId: TaskId): HeadcountTask | undefined {
  let lowest: HeadcountTask | undefined;
  for (const task of seating.all()) {
    if (task.status !== "seated" || task.priority >= priority || !mayYield(seating, task)) continue;
    if (seating.isAncestor(task.taskId, parentId)) continue;
    const lower = lowest === undefined || task.priority < lowest.priority;
    if (lower || (task.priority === lowest?.priority && task.hired > lowest.hired)) lowest = task;
  }
  return lowest;
}

function mayYield(seating: Seating, task: HeadcountTask): boolean {
  return seating.state.budget.allowPreempt && task.taskId !== seating.state.rootId && !task.shielded;
}

/** A change of seats whose consequences are checked before it is made. */
interface SeatMove {
  readonly comes?: TaskId | undefined;
  readonly goes?: TaskId | undefined;
  readonly hires?: TaskId | undefined;
}

type Changing<Value> = { -readonly [Key in keyof Value]: Value[Key] };

/** A headcount while a command is applied to it. Task objects are replaced and never changed. */
class Seating {
  readonly state: Changing<Headcount>;
  readonly changes: SeatChange[] = [];
  readonly #tasks: Record<TaskId, HeadcountTask>;

  constructor(state: Headcount) {
    this.state = state;
    this.#tasks = state.tasks;
  }

  done(): HeadcountOutcome {
    return { kind: "done", changes: this.changes };
  }

  refuse(reason: RefusalReason): HeadcountOutcome {
    return { kind: "refused", reason, holders: seatHolders(this.state) };
  }

  all(): HeadcountTask[] {
    return Object.values(this.#tasks);
  }

  find(taskId: TaskId): HeadcountTask | undefined {
    return Object.hasOwn(this.#tasks, taskId) ? this.#tasks[taskId] : undefined;
  }

  change(taskId: TaskId, changes: Partial<HeadcountTask>): void {
    const task = this.#tasks[taskId];
    if (task === undefined) return;
    const changed = { ...task, ...changes };
    this.#tasks[taskId] = changed;
    this.#count(task, -1);
    this.#count(changed, 1);
  }

  note(taskId: TaskId, change: SeatChange["change"]): void {
    this.changes.push({ taskId, change });
  }

  hire(command: Acquire, status: "seated" | "pending" | "paused"): void {
    const { taskId, parentId, priority } = command;
    const order = this.state.nextOrder++;
    const task = {
      taskId,
      parentId,
      priority,
      status,
      idle: false,
      shielded: false,
      hired: order,
      queued: status === "seated" ? null : order,
      yieldsTo: null,
      children: 0,
    };
    this.#tasks[taskId] = task;
    this.#count(task, 1);
    this.#addChildren(parentId, 1);
  }

  /**
   * Removes a task. Its children become children of its parent, so that the search for a victim (H3) still
   * recognises their ancestors.
   */
  remove({ taskId, parentId, children }: HeadcountTask): void {
    const task = this.#tasks[taskId];
    if (task !== undefined) this.#count(task, -1);
    delete this.#tasks[taskId];
    this.#addChildren(parentId, children - 1);
    if (children === 0) return;
    for (const each of this.all()) if (each.parentId === taskId) this.change(each.taskId, { parentId });
  }

  hasFreeSeat(): boolean {
    return this.state.taken < this.state.budget.maxAgents;
  }

  /** Returns the tasks that wait for a seat and are not held, in the order in which they will get one. */
  queue(): HeadcountTask[] {
    if (this.state.waiting === 0) return [];
    return this.all()
      .filter((task) => !holdsSeat(task) && task.heldFor === undefined)
      .toSorted((one, other) => other.priority - one.priority || (one.queued ?? 0) - (other.queued ?? 0));
  }

  victimOf(taskId: TaskId): HeadcountTask | undefined {
    return this.state.pausing === 0 ? undefined : this.all().find((task) => task.yieldsTo === taskId);
  }

  isAncestor(taskId: TaskId, from: TaskId | null): boolean {
    for (let at = from; at !== null; at = this.#tasks[at]?.parentId ?? null) if (at === taskId) return true;
    return false;
  }

  /**
   * H2: promises the seat of `taskId` to another task. An idle task has no call in flight and gives up its seat
   * immediately.
   */
  yieldSeat(taskId: TaskId, to: TaskId): void {
    this.change(taskId, { status: "pausing", yieldsTo: to });
    if (this.find(taskId)?.idle === true) this.pause(taskId);
    else this.note(taskId, "pausing");
  }

  /**
   * Pauses a task. Its seat goes to the task to which it is promised, unless all tasks with seats would then wait
   * for tasks without a seat.
   */
  pause(taskId: TaskId): void {
    const to = this.find(taskId)?.yieldsTo ?? null;
    const promised = to === null ? undefined : this.find(to);
    if (promised !== undefined && !this.maySit(promised, taskId)) {
      this.change(taskId, { status: "seated", yieldsTo: null });
      this.note(taskId, "kept");
      return;
    }
    this.change(taskId, { status: "paused", yieldsTo: null, queued: this.state.nextOrder++ });
    this.note(taskId, "paused");
    if (promised !== undefined) this.seat(promised.taskId);
    else this.fillSeats();
  }

  endHold(taskId: TaskId): void {
    const task = this.#tasks[taskId];
    if (task === undefined) return;
    const { heldFor: _heldFor, ...free } = task;
    this.#tasks[taskId] = free;
  }

  /**
   * Gives a free seat to a waiting task. A task that was paused is protected from losing it again until its next
   * model call completes (H3).
   */
  seat(taskId: TaskId): void {
    const recalled = this.find(taskId)?.status === "paused";
    this.change(taskId, { status: "seated", queued: null, shielded: recalled });
    this.note(taskId, recalled ? "recalled" : "granted");
  }

  /** Cancels the pausing of the task that was to give its seat to `taskId`. */
  keepVictimOf(taskId: TaskId): void {
    const victim = this.victimOf(taskId);
    if (victim === undefined) return;
    this.change(victim.taskId, { status: "seated", yieldsTo: null });
    this.note(victim.taskId, "kept");
  }

  fillSeats(): void {
    if (!this.hasFreeSeat()) return;
    for (const task of this.queue()) {
      if (!this.hasFreeSeat()) return;
      if (!this.maySit(task)) continue;
      this.seat(task.taskId);
      this.keepVictimOf(task.taskId);
    }
  }

  /**
   * Whether a waiting task may take a freed seat. It may not if every task with a seat would then wait for a task
   * without a seat. At least one waiting task always may: one that has no waiting descendant. `from` is the task
   * that frees the seat.
   */
  maySit(task: HeadcountTask, from?: TaskId): boolean {
    // A task without children cannot wait for a child; a new task has no children.
    if (task.status === "pending" || task.children === 0) return true;
    return this.hasLeaver({ comes: task.taskId, goes: from }) || this.#leavesSeatForHeld();
  }

  /**
   * Whether a task is held for a top-up, and would still find a free seat afterwards if one more task takes a seat
   * now.
   */
  #leavesSeatForHeld(): boolean {
    const { taken, budget } = this.state;
    return taken + 1 < budget.maxAgents && this.all().some(({ heldFor }) => heldFor !== undefined);
  }

  /**
   * Whether at least one task with a seat has no waiting descendant, also after the task that `hires` spawns. While
   * this holds, seats keep becoming free. A new task that is promised a seat does not count as waiting.
   */
  hasLeaver({ comes, goes, hires }: SeatMove): boolean {
    const all = this.all();
    const sits = (task: HeadcountTask): boolean =>
      task.taskId === comes || (holdsSeat(task) && task.taskId !== goes);
    const promised = new Set(all.map(({ yieldsTo }) => yieldsTo));
    const above = new Set<TaskId>();
    const climb = (from: TaskId | null): void => {
      for (let at = from; at !== null && !above.has(at); at = this.#tasks[at]?.parentId ?? null)
        above.add(at);
    };
    climb(hires ?? null);
    for (const task of all)
      if (!sits(task) && !(task.status === "pending" && promised.has(task.taskId))) climb(task.parentId);
    return all.some((task) => sits(task) && !above.has(task.taskId));
  }

  #count(task: HeadcountTask, by: 1 | -1): void {
    if (holdsSeat(task)) this.state.taken += by;
    else this.state.waiting += by;
    if (task.status === "pausing") this.state.pausing += by;
  }

  #addChildren(parentId: TaskId | null, count: number): void {
    const parent = parentId === null ? undefined : this.#tasks[parentId];
    if (parent !== undefined && count !== 0)
      this.#tasks[parent.taskId] = { ...parent, children: parent.children + count };
  }
}

/** Returns the headcount after one command and does not change the given one. Costs O(live tasks). */
export function stepHeadcount(state: Headcount, command: HeadcountCommand): HeadcountStep {
  const next = copyHeadcount(state);
  const outcome = seatHeadcount(next, command);
  const isChanged = outcome.kind !== "ignored" && outcome.kind !== "refused";
  return { state: isChanged ? next : state, outcome };
}
