import {
  holdsSeat,
  seatHolders,
  seatsTaken,
  type Headcount,
  type HeadcountCommand,
  type HeadcountOutcome,
  type HeadcountStep,
  type HeadcountTask,
  type RefusalReason,
  type SeatChange,
} from "./headcount.ts";
import type { TaskId } from "./identity.ts";
import { Priority } from "./priority.ts";

/** Applies one command. Costs O(tasks that have not ended); the state handed in is not changed. */
export function stepHeadcount(state: Headcount, command: HeadcountCommand): HeadcountStep {
  const draft = new Draft(state);
  const outcome = apply(draft, command);
  const changed = outcome.kind !== "ignored" && outcome.kind !== "refused";
  return { state: changed ? draft.finish() : state, outcome };
}

function apply(draft: Draft, command: HeadcountCommand): HeadcountOutcome {
  if (command.type === "acquire") return acquire(draft, command);
  if (command.type === "crash") {
    for (const task of draft.all()) if (task.status === "pausing") draft.pause(task);
    return draft.done();
  }
  const task = draft.find(command.taskId);
  if (task === undefined) return { kind: "ignored" };
  switch (command.type) {
    case "release":
      return release(draft, task);
    case "settle":
      if (task.status !== "pausing") return { kind: "ignored" };
      draft.pause(task);
      return draft.done();
    case "suspend":
      draft.change(task.taskId, { idle: true });
      if (task.status === "pausing") draft.pause(task);
      return draft.done();
    case "wake":
      draft.change(task.taskId, { idle: false });
      return draft.done();
    case "progress":
      draft.change(task.taskId, { shielded: false });
      return draft.done();
    case "reprioritize":
      return reprioritize(draft, task, command.priority);
  }
}

type Acquire = Extract<HeadcountCommand, { type: "acquire" }>;

function acquire(draft: Draft, command: Acquire): HeadcountOutcome {
  const { taskId, parentId, priority } = command;
  if (draft.find(taskId) !== undefined) return draft.refuse("already_hired");
  if (draft.find(parentId) === undefined) return draft.refuse("unknown_parent");
  if (draft.hasFreeSeat()) {
    draft.hire(command, "seated");
    draft.note(taskId, "granted");
    return { kind: "granted", changes: draft.changes };
  }
  if (priority < Priority.HIGH) return turnAway(draft, command, "full");
  if (!draft.state.budget.allowPreempt) return turnAway(draft, command, "preemption_off");
  const victim = lowestBelow(draft, priority, parentId);
  if (victim === undefined) return turnAway(draft, command, "nobody_below");
  draft.hire(command, "pending");
  draft.yieldSeat(victim.taskId, taskId);
  if (draft.find(taskId)?.status === "seated") return { kind: "granted", changes: draft.changes };
  return { kind: "pending", victim: victim.taskId, changes: draft.changes };
}

function turnAway(draft: Draft, command: Acquire, reason: RefusalReason): HeadcountOutcome {
  const { taskId, parentId, waits } = command;
  if (waits === undefined) return draft.refuse(reason);
  if (waits === "pending") {
    if (!draft.hasLeaver({ hires: parentId })) return draft.refuse("nobody_leaves");
    draft.hire(command, "pending");
    return { kind: "pending", victim: null, changes: draft.changes };
  }
  draft.hire(command, "paused");
  draft.note(taskId, "paused");
  return draft.done();
}

/** H4: what a task held goes to whoever was promised it, else to the head of the queue. */
function release(draft: Draft, task: HeadcountTask): HeadcountOutcome {
  draft.remove(task);
  const promised = task.yieldsTo === null ? undefined : draft.find(task.yieldsTo);
  if (promised !== undefined && draft.maySit(promised)) draft.seat(promised.taskId);
  draft.keepVictimOf(task.taskId);
  draft.fillSeats();
  return draft.done();
}

/** H8. Only a demotion can make room, and only for a task that waits and is promised no other seat. */
function reprioritize(draft: Draft, task: HeadcountTask, priority: Priority): HeadcountOutcome {
  draft.change(task.taskId, { priority });
  if (task.status !== "seated" || priority >= task.priority || !mayYield(draft, task)) return draft.done();
  const waiter = draft
    .queue()
    .find(
      (each) =>
        each.priority > priority &&
        draft.victimOf(each.taskId) === undefined &&
        draft.maySit(each, task) &&
        !draft.isAncestor(task.taskId, each.parentId),
    );
  if (waiter !== undefined) draft.yieldSeat(task.taskId, waiter.taskId);
  return draft.done();
}

/** H3: the victim of a newcomer hired by `parentId`. */
function lowestBelow(draft: Draft, priority: Priority, parentId: TaskId): HeadcountTask | undefined {
  let lowest: HeadcountTask | undefined;
  for (const task of draft.all()) {
    if (task.status !== "seated" || task.priority >= priority || !mayYield(draft, task)) continue;
    if (draft.isAncestor(task.taskId, parentId)) continue;
    const lower = lowest === undefined || task.priority < lowest.priority;
    if (lower || (task.priority === lowest?.priority && task.hired > lowest.hired)) lowest = task;
  }
  return lowest;
}

function mayYield(draft: Draft, task: HeadcountTask): boolean {
  return draft.state.budget.allowPreempt && task.taskId !== draft.state.rootId && !task.shielded;
}

/** Seats as they would be. */
interface SeatMove {
  readonly comes?: TaskId | undefined;
  readonly goes?: TaskId | undefined;
  readonly hires?: TaskId | undefined;
}

/** The next state while a command is applied to it. */
class Draft {
  readonly state: Headcount;
  readonly changes: SeatChange[] = [];
  readonly #tasks: Record<TaskId, HeadcountTask>;
  #nextOrder: number;

  constructor(state: Headcount) {
    this.state = state;
    this.#tasks = { ...state.tasks };
    this.#nextOrder = state.nextOrder;
  }

  finish(): Headcount {
    return { ...this.state, tasks: this.#tasks, nextOrder: this.#nextOrder };
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
    if (task !== undefined) this.#tasks[taskId] = { ...task, ...changes };
  }

  note(taskId: TaskId, change: SeatChange["change"]): void {
    this.changes.push({ taskId, change });
  }

  hire(command: Acquire, status: "seated" | "pending" | "paused"): void {
    const { taskId, parentId, priority } = command;
    const order = this.#nextOrder++;
    this.#tasks[taskId] = {
      taskId,
      parentId,
      priority,
      status,
      idle: false,
      shielded: false,
      hired: order,
      queued: status === "seated" ? null : order,
      yieldsTo: null,
    };
  }

  /** Its children are then their grandparent's, so that an ancestor stays one for the rule of H3. */
  remove(task: HeadcountTask): void {
    delete this.#tasks[task.taskId];
    for (const each of this.all()) {
      if (each.parentId === task.taskId) this.change(each.taskId, { parentId: task.parentId });
    }
  }

  hasFreeSeat(): boolean {
    return seatsTaken({ ...this.state, tasks: this.#tasks }) < this.state.budget.maxAgents;
  }

  /** Those without a seat, in the order in which they get one. */
  queue(): HeadcountTask[] {
    return this.all()
      .filter((task) => !holdsSeat(task))
      .toSorted((one, other) => other.priority - one.priority || (one.queued ?? 0) - (other.queued ?? 0));
  }

  victimOf(taskId: TaskId): HeadcountTask | undefined {
    return this.all().find((task) => task.yieldsTo === taskId);
  }

  isAncestor(taskId: TaskId, from: TaskId | null): boolean {
    for (let at = from; at !== null; at = this.#tasks[at]?.parentId ?? null) if (at === taskId) return true;
    return false;
  }

  /** H2: promises the seat of `taskId`; an idle task has no open call and gives it at once. */
  yieldSeat(taskId: TaskId, to: TaskId): void {
    this.change(taskId, { status: "pausing", yieldsTo: to });
    const task = this.find(taskId);
    if (task?.idle === true) this.pause(task);
    else this.note(taskId, "pausing");
  }

  /** Its seat goes to whoever was promised it. It need not, where that one would then wait for others without a seat, as all do. */
  pause(task: HeadcountTask): void {
    const { taskId, yieldsTo } = task;
    const promised = yieldsTo === null ? undefined : this.find(yieldsTo);
    if (promised !== undefined && !this.maySit(promised, task)) {
      this.change(taskId, { status: "seated", yieldsTo: null });
      this.note(taskId, "kept");
      return;
    }
    this.change(taskId, { status: "paused", yieldsTo: null, queued: this.#nextOrder++ });
    this.note(taskId, "paused");
    if (promised !== undefined) this.seat(promised.taskId);
  }

  /** Gives a free seat to a task of the queue. A paused one is shielded until its next model call (H3). */
  seat(taskId: TaskId): void {
    const recalled = this.find(taskId)?.status === "paused";
    this.change(taskId, { status: "seated", queued: null, shielded: recalled });
    this.note(taskId, recalled ? "recalled" : "granted");
  }

  /** Whoever was to yield to `taskId` need not. */
  keepVictimOf(taskId: TaskId): void {
    const victim = this.victimOf(taskId);
    if (victim === undefined) return;
    this.change(victim.taskId, { status: "seated", yieldsTo: null });
    this.note(victim.taskId, "kept");
  }

  fillSeats(): void {
    for (const task of this.queue()) {
      if (!this.hasFreeSeat()) return;
      if (!this.maySit(task)) continue;
      this.seat(task.taskId);
      this.keepVictimOf(task.taskId);
    }
  }

  /**
   * A seat that frees goes to nobody who would wait in it for someone without one while all others who have a seat do. There is always
   * somebody to have it: of those who wait, one who is above no other. `from` is who gives it up.
   */
  maySit(task: HeadcountTask, from?: HeadcountTask): boolean {
    // A newcomer has nobody below it.
    return task.status === "pending" || this.hasLeaver({ comes: task.taskId, goes: from?.taskId });
  }

  /**
   * Whether someone who has a seat is above nobody who waits for one, and above nobody that `hires` hires. A newcomer that is promised a
   * seat does not wait: it comes. As long as there is such a one, seats go on to free.
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
}
