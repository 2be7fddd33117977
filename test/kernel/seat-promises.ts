import fc from "fast-check";
import {
  formatTaskId,
  type Headcount,
  type HeadcountCommand,
  type HeadcountTask,
  Priority,
  seatsTaken,
  type SpawnBudget,
  spawnBudget,
  type TaskId,
} from "../../src/kernel/index.ts";

/** A thing that hands out the seats of a run: what the headcount and the seed's tracker both are. */
export interface SeatKeeper {
  acquire(request: SeatRequest): "granted" | "pending" | "refused";
  release(taskId: TaskId): void;
  /** The calls that were open when the task was told to pause have ended. */
  settle(taskId: TaskId): void;
  reprioritize(taskId: TaskId, priority: Priority): void;
  /** The tasks that may have a call open, the root among them. */
  working(): readonly TaskId[];
}

export type OpenSeats = (budget: SpawnBudget) => SeatKeeper;

export type SeatRequest = Omit<Extract<HeadcountCommand, { type: "acquire" }>, "type">;

/** One command, and who worked before and after it. */
export interface Moment {
  readonly budget: SpawnBudget;
  readonly command: HeadcountCommand;
  /** The command asked for a seat for a new task of a known parent and got none. */
  readonly turnedAway: boolean;
  readonly before: readonly TaskId[];
  readonly after: readonly TaskId[];
}

/** The promises one can see from outside. */
const seatPromises = {
  "H1: no more tasks work than there are seats": ({ budget, after }) => after.length <= budget.maxAgents,
  "H3: with preemption off a task works until it ends": ({ budget, command, before, after }) =>
    budget.allowPreempt ||
    before.every((id) => after.includes(id) || (command.type === "release" && command.taskId === id)),
  "H4: a newcomer is turned away only when every seat is taken": ({ budget, turnedAway, before }) =>
    !turnedAway || before.length >= budget.maxAgents,
} satisfies Record<string, (moment: Moment) => boolean>;

type SeatPromise = keyof typeof seatPromises;

export const promiseNames = Object.keys(seatPromises) as readonly SeatPromise[];

/** The promises about what only a headcount has. */
const statePromises: Readonly<
  Record<string, (state: Headcount, tasks: readonly HeadcountTask[]) => boolean>
> = {
  "H1: a seat is counted for whoever has one and nobody else": (state, tasks) =>
    seatsTaken(state) === tasks.length - tasks.filter(isWaiting).length,
  "H2: who has no seat is in the queue, who has one is not": (_state, tasks) =>
    tasks.every((task) => (task.queued !== null) === isWaiting(task)),
  "H2: every pausing task yields to one that waits, and nobody else yields": ({ tasks }, all) =>
    all.every(({ status, yieldsTo }) =>
      status === "pausing" ? yieldsTo !== null && isWaiting(tasks[yieldsTo]) : yieldsTo === null,
    ),
  "H2: every pending task has one victim, a paused one at most one": (_state, tasks) =>
    tasks.every((task) => {
      const victims = tasks.filter((each) => each.yieldsTo === task.taskId).length;
      return victims === 1 || (victims === 0 && task.status !== "pending");
    }),
  "H3: neither the root nor an ancestor is a victim": ({ rootId, tasks }, all) =>
    all.every(
      ({ taskId, yieldsTo }) =>
        yieldsTo === null || (taskId !== rootId && !lineage(tasks, yieldsTo).includes(taskId)),
    ),
  "H3: only a task with a seat is safe in it": (_state, tasks) =>
    tasks.every((task) => !task.shielded || task.status === "seated"),
  "H5: no seat is free while somebody waits": (state, tasks) =>
    seatsTaken(state) === state.budget.maxAgents || !tasks.some(isWaiting),
};

export function brokenPromises(moment: Moment, state: Headcount): readonly string[] {
  const tasks = Object.values(state.tasks);
  return [
    ...promiseNames.filter((name) => !seatPromises[name](moment)),
    ...Object.keys(statePromises).filter((name) => statePromises[name]?.(state, tasks) === false),
  ];
}

function isWaiting(task: HeadcountTask | undefined): boolean {
  return task?.status === "paused" || task?.status === "pending";
}

function lineage(tasks: Headcount["tasks"], from: TaskId): readonly TaskId[] {
  const parentId = tasks[from]?.parentId ?? null;
  return parentId === null ? [] : [parentId, ...lineage(tasks, parentId)];
}

/** Fast-check's view of one promise: any sequence of moves keeps it. */
export function keeps(promise: SeatPromise, open: OpenSeats): fc.IProperty<[SeatRun]> {
  const moves = seatRuns(["acquire", "acquire", "acquire", "release", "settle", "reprioritize"]);
  return fc.property(moves, (run) => moments(open, run).every((moment) => seatPromises[promise](moment)));
}

function moments(open: OpenSeats, { budget, wishes }: SeatRun): readonly Moment[] {
  const keeper = open(budget);
  const hired = new Set([formatTaskId(0)]);
  return wishes.map((wish) => {
    const command = commandOf(wish, [...hired]);
    const before = keeper.working();
    const refused = !move(keeper, command);
    const turnedAway = refused && isNewcomer(hired, command);
    if (command.type === "acquire" && !refused) hired.add(command.taskId);
    if (command.type === "release") hired.delete(command.taskId);
    return { budget, command, turnedAway, before, after: keeper.working() };
  });
}

function isNewcomer(hired: ReadonlySet<TaskId>, command: HeadcountCommand): boolean {
  return command.type === "acquire" && !hired.has(command.taskId) && hired.has(command.parentId);
}

/** `false` is a refused seat. */
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

/** A command before it is known who is there: random ids would seldom meet. */
export interface Wish {
  readonly type: HeadcountCommand["type"];
  readonly who: number;
  readonly parent: number;
  readonly rank: number;
}

const digit = fc.nat({ max: 20 });

/** A few hirings, to begin with; then each type as often as `types` lists it. */
export function seatRuns(types: readonly Wish["type"][]): fc.Arbitrary<SeatRun> {
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
/** Newcomers who may preempt, and demotions, are where something happens. */
const newcomers = [LOW, HIGH, CRITICAL, NORMAL, HIGH, BACKGROUND, CRITICAL];
const newRanks = [BACKGROUND, LOW, CRITICAL, BACKGROUND, NORMAL, LOW, HIGH];

/** About somebody in `hired` or, now and then, a task that never was. The last one there does not leave. */
export function commandOf(wish: Wish, hired: readonly TaskId[], pausing = hired): HeadcountCommand {
  const { type, who, parent, rank } = wish;
  if (type === "crash") return { type };
  if (type === "acquire") {
    const taskId = who === 1 ? pick(hired, parent) : firstUnused(hired);
    const parentId = pick(who % 2 === 0 ? hired.slice(0, 1) : hired, parent);
    return { type, taskId, parentId, priority: newcomers[rank % 7] ?? LOW };
  }
  if (type === "reprioritize") return { type, taskId: pick(hired, who), priority: newRanks[rank % 7] ?? LOW };
  if (type === "release") return { type, taskId: hired.length === 1 ? nobody : pick(hired, who) };
  return { type, taskId: pick(type === "settle" ? pausing : hired, who) };
}

function pick(from: readonly TaskId[], at: number): TaskId {
  return (at === 0 ? undefined : from[at % from.length]) ?? nobody;
}

function firstUnused(hired: readonly TaskId[]): TaskId {
  const ordinals = Array.from({ length: hired.length + 1 }, (_, ordinal) => formatTaskId(ordinal));
  return ordinals.find((taskId) => !hired.includes(taskId)) ?? nobody;
}
