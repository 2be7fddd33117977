import {
  rootTaskId as root,
  openHeadcount,
  openLedger,
  Priority,
  seatHeadcount,
  stepLedger,
  type Commit,
  type Event,
  type Headcount,
  type JsonValue,
  type Ledger,
  type LogVerdict,
  type RunId,
  type Spend,
  type SpendCaps,
  type Store,
  type TaskId,
} from "../kernel/index.ts";

/** Stored data of a run, read from outside: its log, and its seats and money computed from its commits. */
export interface RunTrace {
  readonly runId: RunId;
  readonly events: readonly Event[];
  readonly chain: LogVerdict;
  /** Receipts of the answers that recorded steps contain. */
  readonly receipts: ReadonlySet<string>;
  readonly output: JsonValue;
  readonly status: string;
  /** Money of the root's account, which covers the whole tree of tasks. */
  readonly money: {
    readonly caps: SpendCaps;
    readonly spent: Spend;
    readonly lost: Spend;
    readonly reserved: Spend;
    /** U1: the sum of `Commit.usage`, which the store added to its totals. */
    readonly totalled: Spend;
  };
  readonly seats: {
    readonly cap: number;
    /** Maximum number of seats that were taken at the same time. */
    readonly most: number;
    /** Tasks other than the root that still hold or wait for a seat. */
    readonly left: readonly TaskId[];
  };
  /** Tasks that have not ended. */
  readonly open: readonly TaskId[];
}

const nothing: Spend = { tokens: 0, nanoUsd: 0, turns: 0 };
const uncapped: SpendCaps = { tokens: null, nanoUsd: null, turns: null };

/** Reads the stored data of a run. Returns `undefined` if the run does not exist (yet). */
export async function traceRun(store: Store, runId: RunId): Promise<RunTrace | undefined> {
  if ((await store.journal.find(runId)) === undefined) return undefined;
  const fold = new Fold();
  for await (const commit of store.journal.read(runId)) fold.add(commit);
  const events: Event[] = [];
  for await (const event of store.events.read(runId)) events.push(event);
  const end = events.findLast((event) => event.type === "run_end");
  const task = events.findLast((event) => event.type === "task_end" && event.taskId === root);
  const account = fold.ledger.accounts[root];
  const tasks = Object.values(fold.headcount?.tasks ?? {});
  return {
    runId,
    events,
    chain: await store.events.verify(runId),
    receipts: fold.receipts,
    output: task?.type === "task_end" ? (task.data.output ?? null) : null,
    status: end?.type === "run_end" ? end.data.status : "unfinished",
    money: {
      caps: account?.caps ?? uncapped,
      spent: account?.spent ?? nothing,
      lost: account?.lost ?? nothing,
      reserved: account?.reserved ?? nothing,
      totalled: fold.totalled,
    },
    seats: {
      cap: fold.headcount?.budget.maxAgents ?? 0,
      most: fold.mostSeats,
      left: tasks.map(({ taskId }) => taskId).filter((taskId) => taskId !== root),
    },
    open: [...fold.open],
  };
}

/** Computes the seats, money and tasks of a run from its commits with the kernel's state machines. */
class Fold {
  ledger: Ledger = openLedger();
  headcount: Headcount | undefined;
  mostSeats = 0;
  totalled = nothing;
  readonly open = new Set<TaskId>();
  readonly receipts = new Set<string>();

  add({ tasks = [], steps = [], headcount = [], ledger = [], usage = [] }: Commit): void {
    for (const change of tasks) {
      if (change.type === "create") {
        const { taskId, parentId, supervision } = change.task;
        this.open.add(taskId);
        if (parentId === null) {
          this.headcount ??= openHeadcount(
            supervision.spawnBudget,
            taskId,
            supervision.priority ?? Priority.NORMAL,
          );
        }
      }
      if (change.type === "end") this.open.delete(change.taskId);
      if (change.type === "reopen") this.open.add(change.taskId);
    }
    for (const { outcome } of steps) if (outcome.kind === "ok") collectReceipts(outcome.value, this.receipts);
    this.#countSeats();
    for (const command of headcount) {
      if (this.headcount === undefined) break;
      seatHeadcount(this.headcount, command);
      this.#countSeats();
    }
    for (const command of ledger) this.ledger = stepLedger(this.ledger, command).state;
    for (const { inputTokens, outputTokens, lostTokens, nanoUsd, turns } of usage)
      this.totalled = {
        tokens: this.totalled.tokens + inputTokens + outputTokens + lostTokens,
        nanoUsd: this.totalled.nanoUsd + nanoUsd,
        turns: this.totalled.turns + turns,
      };
  }

  #countSeats(): void {
    if (this.headcount !== undefined) this.mostSeats = Math.max(this.mostSeats, this.headcount.taken);
  }
}

/** Adds every string stored under the key `receipt`, at any depth, to `into`. */
function collectReceipts(value: JsonValue, into: Set<string>): void {
  if (typeof value !== "object" || value === null) return;
  for (const [name, inner] of Object.entries(value)) {
    if (name === "receipt" && typeof inner === "string") into.add(inner);
    else collectReceipts(inner, into);
  }
}
