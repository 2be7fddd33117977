import {
  bookLedger,
  executionBudget,
  formatAgentId,
  formatTaskId,
  copyHeadcount,
  holdsSeat,
  type Priority,
  type Commit,
  type ExecutionBudget,
  type HeadcountCommand,
  type HeadcountOutcome,
  type LedgerCommand,
  type LedgerOutcome,
  type ReserveCommand,
  type SpawnBudget,
  type TaskChange,
  type TaskId,
  type TaskRecord,
} from "../../src/kernel/index.ts";
import { newRun } from "../../src/runtime/journal/new-run.ts";
import { RunState } from "../../src/runtime/journal/run-state.ts";
import { FakeClock, sequentialIds } from "../../src/testing/index.ts";
import { brokenPromises as brokenMoney, same } from "../kernel/limits/money-promises.ts";
import { brokenPromises as brokenSeats } from "../kernel/limits/seat-promises.ts";

/** A simulated call and the upper bound of its cost. */
interface Call {
  readonly taskId: TaskId;
  readonly bound: { readonly tokens: number; readonly nanoUsd: number };
}

export const nanoPerToken = 2;
const root = formatTaskId(0);
const units = ["tokens", "nanoUsd"] as const;
const [agent, ids] = [{ id: formatAgentId({ name: "any" }), run: async () => null }, sequentialIds("s")];

/**
 * A run without agent code: its seats, its ledger and its calls in flight, which change as the runtime changes them.
 * Changes are collected in a draft. A flush makes the draft durable, and a call starts only after it (B3). A crash
 * discards the draft and applies the durable commits again; the provider may have billed the calls in flight up to their
 * bounds. Every change is checked against the promises.
 */
export class SimulatedRun {
  state: RunState;
  /** What the provider has charged, whether or not the run knows it. */
  readonly billed = { tokens: 0, nanoUsd: 0 };
  readonly problems: string[] = [];
  /** Calls in flight, by reservation id. */
  readonly calls = new Map<string, Call>();
  /** Calls whose reservation is granted and not durable yet. */
  readonly #granted = new Map<string, Call>();
  readonly #commits: Commit[] = [];
  readonly #record: TaskRecord;
  #draft: { headcount: HeadcountCommand[]; ledger: LedgerCommand[]; tasks: TaskChange[] } = emptyDraft();
  #tasks = 0;
  #reservations = 0;

  constructor(budget: Partial<ExecutionBudget>, spawnBudget: Partial<SpawnBudget>) {
    const { first } = newRun({ clock: new FakeClock(), ids }, agent, null, { budget, spawnBudget });
    const [created] = first.tasks ?? [];
    if (created?.type !== "create") throw new Error("the first commit of a run must create its root task");
    this.#record = created.task;
    this.#commits.push(first);
    this.state = this.#fold();
  }

  get tasks(): readonly TaskId[] {
    return Object.keys(this.state.headcount.tasks) as TaskId[];
  }

  spawn(parentId: TaskId, priority: Priority, budget: Partial<ExecutionBudget>): void {
    const taskId = formatTaskId(++this.#tasks);
    const outcome = this.#applySeat({ type: "acquire", taskId, parentId, priority });
    if (outcome.kind === "refused") return;
    const supervision = { ...this.#record.supervision, priority };
    const create: TaskChange = { type: "create", task: { ...this.#record, taskId, parentId, supervision } };
    this.state.apply({ tasks: [create] }, 0);
    this.#draft.tasks.push(create);
    this.#applyLedger({ type: "open", taskId, parentId, budget: executionBudget(budget), priority });
    this.#settlePausing();
  }

  /** H7: reserves a call, if the task holds a seat. */
  call(taskId: TaskId, inputTokens: number, outputTokens: number): void {
    if (this.state.headcount.tasks[taskId]?.status !== "seated") return;
    this.#reservations++;
    const command: ReserveCommand = {
      type: "reserve",
      id: `c${this.#reservations}`,
      taskId,
      attempt: 1,
      input: { tokens: inputTokens, costUsd: (inputTokens * nanoPerToken) / 1e9 },
      output: { maxTokens: outputTokens, usdPerToken: nanoPerToken / 1e9 },
    };
    this.#applyLedger(command);
  }

  /** Ends a call in flight. `share` is the part of its bound that it has used, in tenths. */
  endCall(id: string, end: "settle" | "lose" | "refund", share: number): void {
    const call = this.calls.get(id);
    if (call === undefined) return;
    this.calls.delete(id);
    const tokens = end === "refund" ? 0 : Math.floor((call.bound.tokens * share) / 10);
    this.#bill(tokens);
    const costUsd = (tokens * nanoPerToken) / 1e9;
    this.#applyLedger(end === "settle" ? { type: "settle", id, tokens, costUsd } : { type: end, id });
    if (end === "settle") this.#applySeat({ type: "progress", taskId: call.taskId });
    this.#settlePausing();
  }

  suspend(taskId: TaskId): void {
    if (!this.#hasCall(taskId)) this.#applySeat({ type: "suspend", taskId });
  }

  wake(taskId: TaskId): void {
    this.#applySeat({ type: "wake", taskId });
  }

  reprioritize(taskId: TaskId, priority: Priority): void {
    this.#applyLedger({ type: "reprioritize", taskId, priority });
    this.#applySeat({ type: "reprioritize", taskId, priority });
    this.#settlePausing();
  }

  topUp(taskId: TaskId, maxTokens: number): void {
    this.#applyLedger({
      type: "topUp",
      taskId,
      add: { maxTokens, maxCostUsd: (maxTokens * nanoPerToken) / 1e9 },
    });
  }

  /** Ends a task. Its calls in flight are charged in full, and the provider bills them. H4: the task frees its seat. */
  end(taskId: TaskId, share: number): void {
    if (taskId === root) return;
    for (const { id } of this.state.ledger.waiting.filter((each) => each.taskId === taskId))
      this.#applyLedger({ type: "withdraw", id });
    for (const { id } of this.state.ledger.open.filter((each) => each.taskId === taskId)) {
      this.#bill(Math.floor(((this.calls.get(id)?.bound.tokens ?? 0) * share) / 10));
      this.calls.delete(id);
      this.#granted.delete(id);
      this.#applyLedger({ type: "lose", id });
    }
    this.#applyLedger({ type: "close", taskId });
    this.#applySeat({ type: "release", taskId });
    this.#settlePausing();
  }

  /** J5: resumes an ended task if there is a seat for it, with the account it had or a new one. */
  resume(parentId: TaskId, priority: Priority): void {
    const ended = [...this.state.tasks.keys()].find(
      (taskId) => this.state.headcount.tasks[taskId] === undefined,
    );
    if (ended === undefined) return;
    if (this.#applySeat({ type: "acquire", taskId: ended, parentId, priority }).kind === "refused") return;
    const reopen: TaskChange = { type: "reopen", taskId: ended };
    this.state.apply({ tasks: [reopen] }, 0);
    this.#draft.tasks.push(reopen);
    if (this.state.ledger.accounts[ended] === undefined)
      this.#applyLedger({ type: "open", taskId: ended, parentId, budget: executionBudget(), priority });
    this.#settlePausing();
  }

  /** B3: makes the draft durable, and starts the granted calls whose tasks still hold a seat. */
  flush(): void {
    this.#commits.push({ number: this.#commits.length, at: 0, ...this.#draft });
    this.#draft = emptyDraft();
    const granted = [...this.#granted];
    this.#granted.clear();
    for (const [id, call] of granted) {
      if (this.state.headcount.tasks[call.taskId]?.status !== "seated")
        this.#applyLedger({ type: "refund", id });
      else {
        this.wake(call.taskId);
        this.calls.set(id, call);
      }
    }
  }

  /** Crashes: the next owner folds the durable commits. The provider may have billed the calls in flight. */
  crash(share: number): void {
    const before = this.state;
    const isClean = this.#draft.headcount.length + this.#draft.ledger.length + this.#draft.tasks.length === 0;
    for (const { bound } of this.calls.values()) this.#bill(Math.floor((bound.tokens * share) / 10));
    this.calls.clear();
    this.#granted.clear();
    this.#draft = emptyDraft();
    this.state = this.#fold();
    if (isClean && !same(comparable(before), comparable(this.state)))
      this.problems.push("the folded state differs from the state before the crash");
    this.#check();
    this.#applyLedger({ type: "crash" });
    this.#applySeat({ type: "crash" });
    if (this.state.ledger.open.length > 0) this.problems.push("a reservation is open after a crash");
  }

  /** Ends all calls and tasks. No reservation may wait when no call is in flight. */
  finish(): void {
    for (let round = 0; round < 100; round++) {
      this.flush();
      for (const id of this.calls.keys()) this.endCall(id, "settle", 5);
      if (this.calls.size === 0 && this.#granted.size === 0) break;
    }
    if (this.state.ledger.waiting.length > 0)
      this.problems.push("a reservation waits although no other reservation is open");
    for (const taskId of this.tasks.toReversed()) this.end(taskId, 10);
    if (this.tasks.length !== 1) this.problems.push("a task that has ended holds a seat");
    const { reserved } = this.state.ledger.accounts[root] ?? {};
    if (reserved === undefined || reserved.tokens + reserved.nanoUsd + reserved.turns !== 0)
      this.problems.push("an amount stays reserved after all calls have ended");
  }

  #applySeat(command: HeadcountCommand): HeadcountOutcome {
    const before = copyHeadcount(this.state.headcount);
    const outcome = this.state.applySeat(command, 0);
    const after = this.state.headcount;
    if (outcome.kind !== "ignored" && outcome.kind !== "refused") this.#draft.headcount.push(command);
    this.problems.push(...brokenSeats({ before, after, command, outcome }));
    this.#check();
    return outcome;
  }

  #applyLedger(command: LedgerCommand): LedgerOutcome {
    const before = this.state.ledger;
    const outcome = bookLedger(this.state.ledger, command);
    if (outcome.applied) this.#draft.ledger.push(command);
    this.problems.push(...brokenMoney(before, this.state.ledger, false));
    if (outcome.overrun !== null) this.problems.push("a call within its bound is reported as an overrun");
    for (const { id, kind } of outcome.decisions) {
      const hold = this.state.ledger.open.find((each) => each.id === id);
      if (kind === "granted" && hold !== undefined)
        this.#granted.set(id, { taskId: hold.taskId, bound: hold.held });
    }
    this.#check();
    return outcome;
  }

  /** H2: a pausing task gives up its seat once it has no call in flight. */
  #settlePausing(): void {
    for (const { taskId, status } of Object.values(this.state.headcount.tasks)) {
      if (status === "pausing" && !this.#hasCall(taskId)) this.#applySeat({ type: "settle", taskId });
    }
  }

  #hasCall(taskId: TaskId): boolean {
    for (const call of this.calls.values()) if (call.taskId === taskId) return true;
    return false;
  }

  #bill(tokens: number): void {
    this.billed.tokens += tokens;
    this.billed.nanoUsd += tokens * nanoPerToken;
  }

  /**
   * Checks seats and money: a task with a call in flight has a seat, and the ledger covers what was billed, within the
   * cap.
   */
  #check(): void {
    const { headcount, ledger } = this.state;
    for (const { taskId } of this.calls.values()) {
      const task = headcount.tasks[taskId];
      if (task === undefined || !holdsSeat(task)) this.problems.push(`${taskId} is in a call without a seat`);
    }
    const { spent, reserved, caps } = ledger.accounts[root] ?? {};
    if (spent === undefined || reserved === undefined || caps === undefined) return;
    for (const unit of units) {
      if (this.billed[unit] > spent[unit] + reserved[unit])
        this.problems.push(`the ledger does not cover the billed ${unit}`);
      if (this.billed[unit] > (caps[unit] ?? Infinity)) this.problems.push(`${unit} billed above the cap`);
    }
  }

  #fold(): RunState {
    const state = new RunState("refuse");
    for (const commit of this.#commits) state.fold(commit);
    return state;
  }
}

function emptyDraft(): { headcount: HeadcountCommand[]; ledger: LedgerCommand[]; tasks: TaskChange[] } {
  return { headcount: [], ledger: [], tasks: [] };
}

function comparable({ headcount, ledger }: RunState): unknown {
  return { headcount, ledger };
}
