import fc from "fast-check";
import {
  formatTaskId,
  type Headcount,
  type HeadcountCommand,
  type HeadcountOutcome,
  type HeadcountTask,
  Priority,
  type SeatChange,
  seatHolders,
  type SeatStatus,
  type SpawnBudget,
  spawnBudget,
  type TaskId,
} from "../../../src/kernel/index.ts";

/**
 * An object that assigns the seats of a run. The headcount and the seat tracker of the first design both implement it.
 */
export interface SeatKeeper {
  acquire(request: SeatRequest): "granted" | "pending" | "refused";
  release(taskId: TaskId): void;
  /** Reports that the calls that were in flight when the task had to pause have ended. */
  settle(taskId: TaskId): void;
  reprioritize(taskId: TaskId, priority: Priority): void;
  /** Tasks that may have a call in flight, the root included. */
  working(): readonly TaskId[];
}

export type OpenSeats = (budget: SpawnBudget) => SeatKeeper;

export type SeatRequest = Omit<Extract<HeadcountCommand, { type: "acquire" }>, "type">;

/** One command, and the tasks that worked before and after it. */
interface Moment {
  readonly budget: SpawnBudget;
  readonly command: HeadcountCommand;
  /** `true` if the command asked for a seat for a new task of an existing parent and the seat was refused. */
  readonly turnedAway: boolean;
  readonly before: readonly TaskId[];
  readonly after: readonly TaskId[];
}

/** Promises that can be checked from outside, for every kind of seat keeper. */
const seatPromises = {
  "H1: the number of working tasks never exceeds the number of seats": ({ budget, after }) =>
    after.length <= budget.maxAgents,
  "H3: with preemption off a task works until it ends": ({ budget, command, before, after }) =>
    budget.allowPreempt ||
    before.every((id) => after.includes(id) || (command.type === "release" && command.taskId === id)),
  "H4: a new task is refused only when every seat is taken": ({ budget, turnedAway, before }) =>
    !turnedAway || before.length >= budget.maxAgents,
} satisfies Record<string, (moment: Moment) => boolean>;

type SeatPromise = keyof typeof seatPromises;

export const promiseNames = Object.keys(seatPromises) as readonly SeatPromise[];

/** One step of a headcount: its command, outcome, and the states before and after. */
interface HeadcountMoment {
  readonly before: Headcount;
  readonly after: Headcount;
  readonly command: HeadcountCommand;
  readonly outcome: HeadcountOutcome;
}

/** Promises about the internal state of a headcount. */
const headcountPromises: Readonly<
  Record<string, (after: Headcount, tasks: readonly HeadcountTask[], moment: HeadcountMoment) => boolean>
> = {
  "H1: the counters equal the numbers of seated, waiting and pausing tasks": (after, tasks) =>
    after.taken === tasks.length - tasks.filter(isWaiting).length &&
    after.waiting === tasks.filter(isWaiting).length &&
    after.pausing === tasks.filter(({ status }) => status === "pausing").length,
  "H3: each task counts exactly its children": (_after, tasks) =>
    tasks.every(
      ({ taskId, children }) => children === tasks.filter((each) => each.parentId === taskId).length,
    ),
  "H2: a task is in the queue if and only if it has no seat": (_after, tasks) =>
    tasks.every((task) => (task.queued !== null) === isWaiting(task)),
  "H2: every pausing task yields to a waiting one, and no other task yields": (after, tasks) =>
    tasks.every(({ status, yieldsTo }) =>
      status === "pausing" ? yieldsTo !== null && isWaiting(after.tasks[yieldsTo]) : yieldsTo === null,
    ),
  "H2: a pending task has one victim unless it was spawned to wait; a paused task has at most one": (
    _after,
    tasks,
    { before, command },
  ) =>
    tasks.every(({ taskId, status }) => {
      const victims = tasks.filter((each) => each.yieldsTo === taskId).length;
      if (victims > 0 || status !== "pending") return victims <= 1;
      const earlier = before.tasks[taskId];
      if (earlier === undefined) return command.type === "acquire" && command.waits === "pending";
      return isPending(earlier) && !hasVictim(before, taskId);
    }),
  "H5: some seated task is no ancestor of a waiting task, unless a task was resumed": (
    after,
    _tasks,
    { before, command },
  ) => seatsFree(after) || !seatsFree(before) || (command.type === "acquire" && command.waits === "paused"),
  "H3: neither the root nor an ancestor of the waiting task is a victim": (after, tasks) =>
    tasks.every(
      ({ taskId, yieldsTo }) =>
        yieldsTo === null || (taskId !== after.rootId && !lineage(after, yieldsTo).includes(taskId)),
    ),
  "H3: only a seated task is protected from preemption": (_after, tasks) =>
    tasks.every((task) => !task.shielded || task.status === "seated"),
  "H5: no seat is free while a task waits": (after, tasks) =>
    after.taken === after.budget.maxAgents || !tasks.some(isWaiting),
  "H4: a refusal lists the tasks that hold the seats": (after, _tasks, { outcome }) =>
    outcome.kind !== "refused" || JSON.stringify(outcome.holders) === JSON.stringify(seatHolders(after)),
  "H4: a command that is refused or ignored changes nothing": (after, _tasks, { before, outcome }) =>
    JSON.stringify(before) === JSON.stringify(after) ||
    (outcome.kind !== "refused" && outcome.kind !== "ignored"),
  "H4: an outcome reports every change exactly once": (after, tasks, { before, outcome }) => {
    const told = "changes" in outcome ? outcome.changes : [];
    return (
      tasks.every(({ taskId, status }) => {
        const changes = told.filter((each) => each.taskId === taskId).map((each) => each.change);
        return changes.join() === changeBetween(before.tasks[taskId]?.status, status);
      }) && told.every(({ taskId }) => after.tasks[taskId] !== undefined)
    );
  },
};

export function brokenPromises(moment: HeadcountMoment): readonly string[] {
  const { before, after, command, outcome } = moment;
  const tasks = Object.values(after.tasks);
  const seen: Moment = {
    budget: after.budget,
    command,
    turnedAway:
      outcome.kind === "refused" && ["full", "preemption_off", "nobody_below"].includes(outcome.reason),
    before: seatHolders(before).map((holder) => holder.taskId),
    after: seatHolders(after).map((holder) => holder.taskId),
  };
  return [
    ...promiseNames.filter((name) => !seatPromises[name](seen)),
    ...Object.keys(headcountPromises).filter(
      (name) => headcountPromises[name]?.(after, tasks, moment) !== true,
    ),
  ];
}

const lawful: Readonly<Record<string, SeatChange["change"] | "">> = {
  "undefined pending": "",
  "undefined paused": "paused",
  "undefined seated": "granted",
  "pending seated": "granted",
  "paused seated": "recalled",
  "pausing seated": "kept",
  "seated pausing": "pausing",
  "seated paused": "paused",
  "pausing paused": "paused",
};

function changeBetween(from: SeatStatus | undefined, to: SeatStatus): string {
  return from === to ? "" : (lawful[`${from} ${to}`] ?? "unlawful");
}

/**
 * Returns whether some seated task is no ancestor of a waiting task, so that a seat will become free. New tasks with a
 * promised seat do not count.
 */
function seatsFree(state: Headcount): boolean {
  const waiting = Object.values(state.tasks).filter(
    (task) => task.status === "paused" || (isPending(task) && !hasVictim(state, task.taskId)),
  );
  const above = new Set(waiting.flatMap(({ taskId }) => lineage(state, taskId)));
  return waiting.length === 0 || seatHolders(state).some(({ taskId }) => !above.has(taskId));
}

function isPending(task: HeadcountTask | undefined): boolean {
  return task?.status === "pending";
}

function hasVictim({ tasks }: Headcount, taskId: TaskId): boolean {
  return Object.values(tasks).some(({ yieldsTo }) => yieldsTo === taskId);
}

function isWaiting(task: HeadcountTask | undefined): boolean {
  return task?.status === "paused" || task?.status === "pending";
}

function lineage(state: Headcount, from: TaskId): readonly TaskId[] {
  const parentId = state.tasks[from]?.parentId ?? null;
  return parentId === null ? [] : [parentId, ...lineage(state, parentId)];
}

/** A fast-check property: any sequence of commands that every seat keeper supports keeps the promise. */
export function keeps(promise: SeatPromise, open: OpenSeats): fc.IProperty<[SeatRun]> {
  const moves = seatRuns({ acquire: 3, release: 1, settle: 1, reprioritize: 1 });
  return fc.property(moves, (run) => moments(open, run).every((moment) => seatPromises[promise](moment)));
}

/**
 * Executes the commands. Commands about unknown tasks are skipped, and so are commands about the root, which not every
 * implementation lists.
 */
function moments(open: OpenSeats, { budget, wishes }: SeatRun): readonly Moment[] {
  const keeper = open(budget);
  const root = formatTaskId(0);
  const hired = new Set<TaskId>();
  return wishes.flatMap((wish) => {
    const command = commandAbout(wish, [root, ...hired]);
    if (command.type === "crash" || command.taskId === root) return [];
    const isThere = hired.has(command.taskId);
    if (command.type === "acquire" ? command.parentId === nobody : !isThere) return [];
    const before = keeper.working();
    const refused = !move(keeper, command);
    if (command.type === "acquire" && !refused) hired.add(command.taskId);
    if (command.type === "release") hired.delete(command.taskId);
    return { budget, command, turnedAway: refused && !isThere, before, after: keeper.working() };
  });
}

/** Applies a command. Returns `false` if a seat was refused. */
function move(keeper: SeatKeeper, command: HeadcountCommand): boolean {
  if (command.type === "acquire") return keeper.acquire(command) !== "refused";
  if (command.type === "release") keeper.release(command.taskId);
  if (command.type === "settle") keeper.settle(command.taskId);
  if (command.type === "reprioritize") keeper.reprioritize(command.taskId, command.priority);
  return true;
}

export interface SeatRun {
  readonly budget: SpawnBudget;
  readonly wishes: readonly Wish[];
}

/**
 * A random command whose task is picked only when the existing tasks are known, because random ids would seldom match.
 */
interface Wish {
  readonly type: HeadcountCommand["type"];
  readonly who: number;
  readonly parent: number;
  readonly rank: number;
}

export const allCommands = {
  acquire: 9,
  release: 3,
  settle: 4,
  suspend: 2,
  wake: 1,
  progress: 2,
  reprioritize: 6,
  crash: 1,
};

const digit = fc.nat({ max: 20 });

/** Random runs: first a few spawns, then commands of each type in proportion to its weight. */
export function seatRuns(weights: Partial<Record<Wish["type"], number>>): fc.Arbitrary<SeatRun> {
  const types = Object.entries(weights).flatMap(([type, weight]) =>
    Array.from({ length: weight }, () => type as Wish["type"]),
  );
  const wish = fc.record({ type: fc.constantFrom(...types), who: digit, parent: digit, rank: digit });
  const hiring = digit.map((rank): Wish => ({ type: "acquire", who: 2, parent: 1, rank }));
  return fc
    .record({
      maxAgents: fc.constantFrom(3, 2, 4, 5, 1, 2, 3, 4, 3),
      allowPreempt: fc.constantFrom(true, true, true, true, false),
      hirings: fc.array(fc.noBias(hiring), { maxLength: 4, size: "max" }),
      wishes: fc.array(fc.noBias(wish), { maxLength: 22, size: "max" }),
    })
    .map(({ hirings, wishes, ...budget }) => ({
      budget: spawnBudget(budget),
      wishes: [...hirings, ...wishes],
    }));
}

const nobody = formatTaskId(99);
const { BACKGROUND, LOW, NORMAL, HIGH, CRITICAL } = Priority;
/** Priorities of new tasks. Priorities that may preempt are more frequent, because they cause more changes. */
const newcomers = [LOW, HIGH, CRITICAL, NORMAL, HIGH, BACKGROUND, CRITICAL];
const newRanks = [BACKGROUND, LOW, CRITICAL, BACKGROUND, NORMAL, LOW, HIGH];

export function commandOf(wish: Wish, { tasks }: Headcount): HeadcountCommand {
  const all = Object.values(tasks);
  const pausing = all.filter((task) => task.status === "pausing");
  const command = commandAbout(
    wish,
    all.map((task) => task.taskId),
    pausing.map((task) => task.taskId),
  );
  if (command.type !== "acquire") return command;
  // A task that has not started cannot spawn, so the first task becomes the parent instead.
  const parentId = isPending(tasks[command.parentId]) ? (all[0]?.taskId ?? nobody) : command.parentId;
  if (wish.who <= 12) return { ...command, parentId };
  return { ...command, parentId, waits: wish.who > 16 ? "pending" : "paused" };
}

/**
 * Turns a wish into a command about a task in `hired` or, rarely, an unknown task. The last remaining task is never
 * released.
 */
function commandAbout(wish: Wish, hired: readonly TaskId[], pausing = hired): HeadcountCommand {
  const { type, who, parent, rank } = wish;
  if (type === "crash") return { type };
  if (type === "acquire") {
    const taskId = who === 1 ? pick(hired, parent) : firstUnused(hired);
    const parentId = pick(who % 2 === 0 ? hired.slice(0, 1) : hired, parent);
    return { type, taskId, parentId, priority: newcomers[rank % 7] ?? LOW };
  }
  if (type === "reprioritize") return { type, taskId: pick(hired, who), priority: newRanks[rank % 7] ?? LOW };
  if (type === "hold") return { type, taskId: pick(hired, who), heldFor: pick(hired, parent) };
  if (type === "release") return { type, taskId: hired.length === 1 ? nobody : pick(hired, who) };
  return { type, taskId: pick(type === "settle" && parent > 5 ? pausing : hired, who) };
}

function pick(from: readonly TaskId[], at: number): TaskId {
  return (at === 0 ? undefined : from[at % from.length]) ?? nobody;
}

function firstUnused(hired: readonly TaskId[]): TaskId {
  const ordinals = Array.from({ length: hired.length + 1 }, (_, index) => formatTaskId(index + 1));
  return ordinals.find((taskId) => !hired.includes(taskId)) ?? nobody;
}
