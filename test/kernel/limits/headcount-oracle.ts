import {
  type Headcount,
  type HeadcountCommand,
  type HeadcountTask,
  priorities,
  Priority,
  type RefusalReason,
  type SeatStatus,
  type SpawnBudget,
  type TaskId,
} from "../../../src/kernel/index.ts";

export interface OracleReply {
  readonly kind: "granted" | "pending" | "refused" | "done" | "ignored";
  readonly reason?: RefusalReason;
  readonly victim?: TaskId | null;
}

interface Person {
  readonly id: TaskId;
  /** Parent at the time of spawning. A parent that has ended stays here, so that ancestors can still be found. */
  readonly parent: Person | null;
  priority: Priority;
  newcomer: boolean;
  idle: boolean;
  safe: boolean;
  gone: boolean;
}

interface Chair {
  sitter: Person | null;
  promisedTo: Person | null;
}

/**
 * A second, simple implementation of the headcount rules, with which tests compare the first. It is a room with
 * `maxAgents` chairs and one queue of people in order of arrival. The place of a person is the status of a task, so that
 * two tasks cannot share a seat (H1), and a person who stands has no seat (H2).
 */
export class HeadcountOracle {
  readonly #allowPreempt: boolean;
  readonly #rootId: TaskId;
  readonly #chairs: Chair[];
  /** Tasks that have not ended, in the order of spawning. */
  #staff: Person[] = [];
  #line: Person[] = [];

  constructor(budget: SpawnBudget, rootId: TaskId, priority: Priority) {
    this.#allowPreempt = budget.allowPreempt;
    this.#rootId = rootId;
    this.#chairs = Array.from({ length: budget.maxAgents }, () => ({ sitter: null, promisedTo: null }));
    this.#join(rootId, null, priority);
    this.#tidy();
  }

  describe(): string {
    const people = this.#staff.map((person) => ({
      taskId: person.id,
      parentId: this.#ancestors(person).find((each) => !each.gone)?.id ?? null,
      priority: person.priority,
      status: this.#status(person),
      idle: person.idle,
      shielded: person.safe,
      yieldsTo: this.#chairOf(person)?.promisedTo?.id ?? null,
    }));
    return describe(
      people,
      this.#ranked().map((person) => person.id),
    );
  }

  apply(command: HeadcountCommand): OracleReply {
    const reply = this.#obey(command);
    this.#tidy();
    return reply;
  }

  #obey(command: HeadcountCommand): OracleReply {
    if (command.type === "acquire") {
      const { taskId, parentId, priority, waits } = command;
      const reply = this.#hire(taskId, parentId, priority);
      const parent = this.#named(parentId);
      if (
        waits === undefined ||
        !["full", "preemption_off", "nobody_below"].includes(reply.reason ?? "") ||
        parent === undefined
      )
        return reply;
      if (waits === "pending" && this.#isDeadlock(parent))
        return { kind: "refused", reason: "nobody_leaves" };
      this.#join(taskId, parent, priority).newcomer = waits === "pending";
      return { kind: waits === "pending" ? "pending" : "done" };
    }
    if (command.type === "crash") {
      for (const person of this.#staff) if (this.#status(person) === "pausing") this.#yield(person);
      return { kind: "done" };
    }
    const person = this.#named(command.taskId);
    if (person === undefined) return { kind: "ignored" };
    if (command.type === "settle") {
      if (this.#status(person) !== "pausing") return { kind: "ignored" };
      this.#yield(person);
    }
    if (command.type === "release") this.#leave(person);
    if (command.type === "progress") person.safe = false;
    if (command.type === "wake") person.idle = false;
    if (command.type === "suspend") {
      person.idle = true;
      if (this.#status(person) === "pausing") this.#yield(person);
    }
    if (command.type === "reprioritize") this.#rank(person, command.priority);
    return { kind: "done" };
  }

  #hire(id: TaskId, parentId: TaskId, priority: Priority): OracleReply {
    const parent = this.#named(parentId);
    if (this.#named(id) !== undefined) return { kind: "refused", reason: "already_hired" };
    if (parent === undefined) return { kind: "refused", reason: "unknown_parent" };
    if (this.#chairs.some((chair) => chair.sitter === null)) {
      this.#join(id, parent, priority);
      return { kind: "granted" };
    }
    if (priority !== Priority.HIGH && priority !== Priority.CRITICAL)
      return { kind: "refused", reason: "full" };
    if (!this.#allowPreempt) return { kind: "refused", reason: "preemption_off" };

    const candidates = this.#staff.filter(
      (each) => this.#mayLose(each) && each.priority < priority && !this.#isFamily(each, parent),
    );
    const lowest = candidates.filter((one) => candidates.every((other) => one.priority <= other.priority));
    const victim = lowest.at(-1);
    if (victim === undefined) return { kind: "refused", reason: "nobody_below" };
    this.#promise(victim, this.#join(id, parent, priority));
    return victim.idle ? { kind: "granted" } : { kind: "pending", victim: victim.id };
  }

  /**
   * Returns whether every seated person is an ancestor of a person who stands, or would be one if `parent` spawned
   * another person.
   */
  #isDeadlock(parent: Person): boolean {
    const needed = [
      parent,
      ...this.#ancestors(parent),
      ...this.#stuck().flatMap((each) => this.#ancestors(each)),
    ];
    return this.#chairs.every(({ sitter }) => sitter !== null && needed.includes(sitter));
  }

  /** The people who stand, except new ones that are promised a chair. */
  #stuck(): readonly Person[] {
    return this.#line.filter(
      (person) => !person.newcomer || this.#chairs.every(({ promisedTo }) => promisedTo !== person),
    );
  }

  /**
   * Returns whether `person` may take the chair of `other`, or an empty chair. Refuses if every seated person would then
   * wait for a person in the queue.
   */
  #mayHaveChair(person: Person, other?: Person): boolean {
    const sitting = this.#chairs.flatMap(({ sitter }) => sitter ?? []).filter((each) => each !== other);
    const stuck = [...this.#stuck(), ...(other === undefined ? [] : [other])].filter(
      (each) => each !== person,
    );
    return (
      person.newcomer ||
      [...sitting, person].some((each) => !stuck.some((last) => this.#ancestors(last).includes(each)))
    );
  }

  #yield(person: Person): void {
    const chair = this.#chairOf(person);
    const to = chair?.promisedTo;
    if (chair !== undefined && to && !this.#mayHaveChair(to, person)) chair.promisedTo = null;
    else this.#standUp(person);
    this.#tidy();
  }

  /**
   * H8: a person whose priority is lowered yields the chair to the first person of higher priority in the queue without
   * a promise.
   */
  #rank(person: Person, priority: Priority): void {
    const demoted = priority < person.priority;
    person.priority = priority;
    if (!demoted || !this.#allowPreempt || !this.#mayLose(person)) return;
    const waiter = this.#ranked().find(
      (each) =>
        each.priority > priority &&
        this.#chairs.every((chair) => chair.promisedTo !== each) &&
        !this.#isFamily(person, each) &&
        this.#mayHaveChair(each, person),
    );
    if (waiter !== undefined) this.#promise(person, waiter);
  }

  #join(id: TaskId, parent: Person | null, priority: Priority): Person {
    const person = { id, parent, priority, newcomer: true, idle: false, safe: false, gone: false };
    this.#staff.push(person);
    this.#line.push(person);
    return person;
  }

  #promise(victim: Person, to: Person): void {
    for (const chair of this.#chairs) if (chair.sitter === victim) chair.promisedTo = to;
    if (victim.idle) this.#standUp(victim);
  }

  #standUp(person: Person): void {
    for (const chair of this.#chairs) if (chair.sitter === person) chair.sitter = null;
    this.#line.push(person);
  }

  #leave(person: Person): void {
    person.gone = true;
    for (const chair of this.#chairs) if (chair.sitter === person) chair.sitter = null;
    this.#staff = this.#staff.filter((each) => each !== person);
    this.#line = this.#line.filter((each) => each !== person);
  }

  /**
   * Cancels promises of chairs to people who no longer stand. Gives each empty chair to the person to whom it was
   * promised, else to the first in the queue.
   */
  #tidy(): void {
    for (;;) {
      for (const chair of this.#chairs) {
        if (chair.promisedTo !== null && !this.#line.includes(chair.promisedTo)) chair.promisedTo = null;
      }
      const empty = this.#chairs.filter((each) => each.sitter === null);
      const chair = empty.find((each) => each.promisedTo !== null) ?? empty[0];
      if (chair === undefined) return;
      const promised = chair.promisedTo;
      chair.promisedTo = null;
      const next = [promised ?? [], this.#ranked()].flat().find((each) => this.#mayHaveChair(each));
      if (next === undefined) return;
      chair.sitter = next;
      this.#line = this.#line.filter((each) => each !== next);
      next.safe = !next.newcomer;
      next.newcomer = false;
    }
  }

  #ranked(): readonly Person[] {
    return priorities.flatMap((priority) => this.#line.filter((person) => person.priority === priority));
  }

  #named(id: TaskId): Person | undefined {
    return this.#staff.find((person) => person.id === id);
  }

  #chairOf(person: Person): Chair | undefined {
    return this.#chairs.find((chair) => chair.sitter === person);
  }

  #status(person: Person): SeatStatus {
    const chair = this.#chairOf(person);
    if (chair === undefined) return person.newcomer ? "pending" : "paused";
    return chair.promisedTo === null ? "seated" : "pausing";
  }

  /** H3: returns whether a person may lose the chair, apart from rules that depend on who gets the chair. */
  #mayLose(person: Person): boolean {
    return this.#status(person) === "seated" && person.id !== this.#rootId && !person.safe;
  }

  #isFamily(elder: Person, person: Person): boolean {
    return elder === person || this.#ancestors(person).includes(elder);
  }

  #ancestors(person: Person): readonly Person[] {
    return person.parent === null ? [] : [person.parent, ...this.#ancestors(person.parent)];
  }
}

/** Describes everything observable of a headcount state as text. */
export function describeHeadcount({ tasks }: Headcount): string {
  const all = Object.values(tasks);
  const waiting = all.flatMap(({ taskId, priority, queued }) =>
    queued === null ? [] : [{ taskId, priority, queued }],
  );
  waiting.sort((one, other) => other.priority - one.priority || one.queued - other.queued);
  return describe(
    all.toSorted((one, other) => one.hired - other.hired),
    waiting.map((task) => task.taskId),
  );
}

export function describeReply({ kind, reason, victim }: OracleReply): string {
  return [kind, reason, victim].filter((each) => each !== undefined && each !== null).join(" ");
}

function describe(
  tasks: readonly Omit<HeadcountTask, "hired" | "queued" | "children">[],
  queue: readonly TaskId[],
): string {
  const lines = tasks.map(
    (task) =>
      `${task.taskId} of ${task.parentId} ${task.priority} ${task.status}${task.idle ? " idle" : ""}` +
      `${task.shielded ? " shielded" : ""}${task.yieldsTo === null ? "" : ` yields to ${task.yieldsTo}`}`,
  );
  return `${lines.join(", ")}; queue: ${queue.join(" ")}`;
}
