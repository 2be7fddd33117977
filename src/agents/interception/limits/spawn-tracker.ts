import {
  describeValue,
  Fault,
  holdsSeat,
  openHeadcount,
  parsePriority,
  Priority,
  seatHolders,
  spawnBudget,
  type Headcount,
  type HeadcountTask,
  type PriorityName,
  type SeatHolder,
  type SpawnBudget,
  type RunSnapshot,
  type TaskId,
  invalidOption,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";
import { StandaloneHeadcount } from "./standalone-headcount.ts";

/** Throws for a number in place of a budget, such as 50. `limit` is the option that the number probably means. */
export function requireBudget(tracker: string, source: unknown, limit: string): void {
  if (typeof source === "object" && source !== null) return;
  const amount = typeof source === "number" ? String(source) : "...";
  throw new Fault(
    "invalid_argument",
    `invalid budget ${describeValue(source)} of ${tracker}: expected an object, or the context of a run; use new ${tracker}({ ${limit}: ${amount} })`,
  );
}

/** Throws for an invalid id, because a seat would be taken or kept for no task. */
function checkId(method: string, id: unknown, hint: string): void {
  if (typeof id === "string" && id.trim() !== "") return;
  throw invalidOption(method, "id", id, "a text that is not empty", hint);
}

const sameId = "pass the id of the task, as given to acquire()";

interface AcquireOptions {
  readonly parent?: string;
}

const acquireOptionTable = optionTable({ parent: is.text() } satisfies OptionKinds<AcquireOptions>);

/**
 * Tracks the seats of a run. If it is created from a budget, it has its own headcount. If it is created from a run
 * (`new SpawnTracker(ctx)`), it is a read-only view of the seats that the runtime manages (H4).
 *
 * A tracker with its own headcount uses ids of your choice, one per task: two tasks of one agent take two seats
 * (H1). It does not see calls, so a victim counts as being in a call: it keeps its seat until `settle` or
 * `release`, and only then does the new task's `acquire` resolve (H2).
 */
export class SpawnTracker {
  readonly #own: StandaloneHeadcount | null;
  readonly #look: () => Headcount;

  constructor(source: Partial<SpawnBudget> | { readonly snapshot: RunSnapshot } = {}) {
    requireBudget("SpawnTracker", source, "maxAgents");
    if ("snapshot" in source) {
      this.#own = null;
      this.#look = () => source.snapshot.headcount;
    } else {
      const own = new StandaloneHeadcount(
        openHeadcount(spawnBudget(source), "root" as TaskId, Priority.NORMAL),
      );
      this.#own = own;
      this.#look = () => own.headcount;
    }
  }

  /**
   * Requests a seat and resolves when the task has it: immediately if a seat is free, otherwise when another task,
   * the victim, has given up its seat. It rejects with `BudgetExhaustedError` if no seat can become free, and with
   * `CancellationError` if the task is released while it waits. `parent` is the spawning task (default: `root`);
   * ancestors of a new task are never its victims (H3). `priority` is a `Priority` or its name.
   */
  async acquire(
    id: string,
    priority: Priority | PriorityName = Priority.NORMAL,
    options: AcquireOptions = {},
  ): Promise<void> {
    checkId("acquire()", id, "pass an id of your choice for the task");
    const { parent } = acquireOptionTable.read("acquire()", options);
    const own = this.#writable("acquire", "spawn with ctx.spawn(), which takes the seat");
    await own.acquire(id, parent ?? own.headcount.rootId, parsePriority(priority));
  }

  /**
   * Ends a task with any status. Its seat goes to the next task (H5). A second call has no effect; the root keeps its
   * seat.
   */
  release(id: string): void {
    checkId("release()", id, sameId);
    this.#writable("release", "the commit that ends or pauses a task frees its seat").release(id);
  }

  /** H7: reports that the calls of a pausing task have settled and that it starts no others. */
  settle(id: string): void {
    checkId("settle()", id, sameId);
    this.#writable("settle", "the runtime sees for itself when a task's calls are over").settle(id);
  }

  /**
   * H8: changes the priority of a task. A task whose priority is lowered gives its seat only to a waiting task. A
   * task whose priority is raised waits with its new priority and takes no seat from another task.
   */
  reprioritize(id: string, priority: Priority | PriorityName): void {
    checkId("reprioritize()", id, sameId);
    const own = this.#writable("reprioritize", "call run.reprioritize(taskId, priority) on the run's handle");
    own.reprioritize(id, parsePriority(priority));
  }

  /** Whether a task must not start anything, because it is pausing or paused. */
  isPaused(id: string): boolean {
    const status = this.find(id)?.status;
    return status === "pausing" || status === "paused";
  }

  /** Returns the task with an id, or `undefined` if it was never spawned or has ended. */
  find(id: string): HeadcountTask | undefined {
    const { tasks } = this.#look();
    return Object.hasOwn(tasks, id) ? tasks[id as TaskId] : undefined;
  }

  hasSeat(id: string): boolean {
    const task = this.find(id);
    return task !== undefined && holdsSeat(task);
  }

  /** Number of seats taken, including the root's; at most `budget.maxAgents` (H1). */
  get seatsTaken(): number {
    return this.#look().taken;
  }

  get holders(): readonly SeatHolder[] {
    return seatHolders(this.#look());
  }

  get budget(): SpawnBudget {
    return this.#look().budget;
  }

  #writable(method: string, instead: string): StandaloneHeadcount {
    if (this.#own !== null) return this.#own;
    throw new Fault(
      "unsupported",
      `SpawnTracker.${method} is not available inside a run, where the tracker is a read-only view; ${instead}`,
    );
  }
}
