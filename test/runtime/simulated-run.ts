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

/** The most a simulated call may use. */
interface Call {
  readonly taskId: TaskId;
  readonly bound: { readonly tokens: number; readonly nanoUsd: number };
}

export const nanoPerToken = 2;
const root = formatTaskId(0);
const units = ["tokens", "nanoUsd"] as const;
const [agent, ids] = [{ id: formatAgentId({ name: "any" }), run: async () => null }, sequentialIds("s")];

/**
 * A run without its code: seats, money and the calls that are out, moved as the runtime moves them. What is done goes into a draft; a
 * flush makes it durable, and only then is a call made (B3). A crash throws the draft away and folds what is durable; what was out may
 * have been billed up to its bound. Every move is checked against the promises.
 */
export class SimulatedRun {
  state: RunState;
  /** What a provider has charged, whoever heard of it. */
  readonly billed = { tokens: 0, nanoUsd: 0 };
  readonly problems: string[] = [];
  /** Made and not answered. */
  readonly calls = new Map<string, Call>();
  /** Granted in the draft. */
  readonly #granted = new Map<string, Call>();
  readonly #commits: Commit[] = [];
  readonly #record: TaskRecord;
  #draft: { headcount: HeadcountCommand[]; ledger: LedgerCommand[]; tasks: TaskChange[] } = emptyDraft();
  #tasks = 0;
  #asked = 0;

  constructor(budget: Partial<ExecutionBudget>, spawnBudget: Partial<SpawnBudget>) {
    const { first } = newRun({ clock: new FakeClock(), ids }, agent, null, { budget, spawnBudget });
    const [created] = first.tasks ?? [];
    if (created?.type !== "create") throw new Error("a run begins with its root");
    this.#record = created.task;
    this.#commits.push(first);
    this.state = this.#rebuilt();
  }

  get tasks(): readonly TaskId[] {
    return Object.keys(this.state.headcount.tasks) as TaskId[];
  }

  spawn(parentId: TaskId, priority: Priority, budget: Partial<ExecutionBudget>): void {
    const taskId = formatTaskId(++this.#tasks);
    const outcome = this.#seat({ type: "acquire", taskId, parentId, priority });
    if (outcome.kind === "refused") return;
    const supervision = { ...this.#record.supervision, priority };
    const create: TaskChange = { type: "create", task: { ...this.#record, taskId, parentId, supervision } };
    this.state.apply({ tasks: [create] }, 0);
    this.#draft.tasks.push(create);
    this.#book({ type: "open", taskId, parentId, budget: executionBudget(budget), priority });
    this.#settlePausing();
  }

  /** H7: only with a seat. */
  ask(taskId: TaskId, inputTokens: number, outputTokens: number): void {
    if (this.state.headcount.tasks[taskId]?.status !== "seated") return;
    this.#asked++;
    const command: ReserveCommand = {
      type: "reserve",
      id: `c${this.#asked}`,
      taskId,
      attempt: 1,
      input: { tokens: inputTokens, costUsd: (inputTokens * nanoPerToken) / 1e9 },
      output: { maxTokens: outputTokens, usdPerToken: nanoPerToken / 1e9 },
    };
    this.#book(command);
  }

  /** How a call that is out ends. `share` of its bound, in tenths, is what it used. */
  answer(id: string, end: "settle" | "lose" | "refund", share: number): void {
    const call = this.calls.get(id);
    if (call === undefined) return;
    this.calls.delete(id);
    const tokens = end === "refund" ? 0 : Math.floor((call.bound.tokens * share) / 10);
    this.#bill(tokens);
    const costUsd = (tokens * nanoPerToken) / 1e9;
    this.#book(end === "settle" ? { type: "settle", id, tokens, costUsd } : { type: end, id });
    if (end === "settle") this.#seat({ type: "progress", taskId: call.taskId });
    this.#settlePausing();
  }

  suspend(taskId: TaskId): void {
    if (!this.#isOut(taskId)) this.#seat({ type: "suspend", taskId });
  }

  wake(taskId: TaskId): void {
    this.#seat({ type: "wake", taskId });
  }

  reprioritize(taskId: TaskId, priority: Priority): void {
    this.#book({ type: "reprioritize", taskId, priority });
    this.#seat({ type: "reprioritize", taskId, priority });
    this.#settlePausing();
  }

  topUp(taskId: TaskId, maxTokens: number): void {
    this.#book({ type: "topUp", taskId, add: { maxTokens, maxCostUsd: (maxTokens * nanoPerToken) / 1e9 } });
  }

  /** What it has out is lost to it, and billed all the same. H4: it frees its seat, whoever crashed. */
  end(taskId: TaskId, share: number): void {
    if (taskId === root) return;
    for (const { id } of this.state.ledger.waiting.filter((each) => each.taskId === taskId))
      this.#book({ type: "withdraw", id });
    for (const { id } of this.state.ledger.open.filter((each) => each.taskId === taskId)) {
      this.#bill(Math.floor(((this.calls.get(id)?.bound.tokens ?? 0) * share) / 10));
      this.calls.delete(id);
      this.#granted.delete(id);
      this.#book({ type: "lose", id });
    }
    this.#book({ type: "close", taskId });
    this.#seat({ type: "release", taskId });
    this.#settlePausing();
  }

  /** J5: a task that had ended goes on, if there is a seat for it; with the purse it had, or a new one. */
  resume(parentId: TaskId, priority: Priority): void {
    const ended = [...this.state.tasks.keys()].find(
      (taskId) => this.state.headcount.tasks[taskId] === undefined,
    );
    if (ended === undefined) return;
    if (this.#seat({ type: "acquire", taskId: ended, parentId, priority }).kind === "refused") return;
    const reopen: TaskChange = { type: "reopen", taskId: ended };
    this.state.apply({ tasks: [reopen] }, 0);
    this.#draft.tasks.push(reopen);
    if (this.state.ledger.accounts[ended] === undefined)
      this.#book({ type: "open", taskId: ended, parentId, budget: executionBudget(), priority });
    this.#settlePausing();
  }

  /** B3: what was granted is durable, and goes out if its task still has its seat. */
  flush(): void {
    this.#commits.push({ number: this.#commits.length, at: 0, ...this.#draft });
    this.#draft = emptyDraft();
    const granted = [...this.#granted];
    this.#granted.clear();
    for (const [id, call] of granted) {
      if (this.state.headcount.tasks[call.taskId]?.status !== "seated") this.#book({ type: "refund", id });
      else {
        this.wake(call.taskId);
        this.calls.set(id, call);
      }
    }
  }

  /** The next owner folds what is durable. What was out may have been answered, or not. */
  crash(share: number): void {
    const before = this.state;
    const isClean = this.#draft.headcount.length + this.#draft.ledger.length + this.#draft.tasks.length === 0;
    for (const { bound } of this.calls.values()) this.#bill(Math.floor((bound.tokens * share) / 10));
    this.calls.clear();
    this.#granted.clear();
    this.#draft = emptyDraft();
    this.state = this.#rebuilt();
    if (isClean && !same(standingOf(before), standingOf(this.state)))
      this.problems.push("what was folded is not what was there");
    this.#look();
    this.#book({ type: "crash" });
    this.#seat({ type: "crash" });
    if (this.state.ledger.open.length > 0) this.problems.push("something is open after a crash");
  }

  /** Nobody waits for ever: when all that is out has come back, everyone has been answered. */
  finish(): void {
    for (let round = 0; round < 100; round++) {
      this.flush();
      for (const id of this.calls.keys()) this.answer(id, "settle", 5);
      if (this.calls.size === 0 && this.#granted.size === 0) break;
    }
    if (this.state.ledger.waiting.length > 0) this.problems.push("a call waits for money that nobody holds");
    for (const taskId of this.tasks.toReversed()) this.end(taskId, 10);
    if (this.tasks.length !== 1) this.problems.push("a seat is taken by a task that ended");
    const { reserved } = this.state.ledger.accounts[root] ?? {};
    if (reserved === undefined || reserved.tokens + reserved.nanoUsd + reserved.turns !== 0)
      this.problems.push("something stays reserved");
  }

  #seat(command: HeadcountCommand): HeadcountOutcome {
    const before = copyHeadcount(this.state.headcount);
    const outcome = this.state.applySeat(command, 0);
    const after = this.state.headcount;
    if (outcome.kind !== "ignored" && outcome.kind !== "refused") this.#draft.headcount.push(command);
    this.problems.push(...brokenSeats({ before, after, command, outcome }));
    this.#look();
    return outcome;
  }

  #book(command: LedgerCommand): LedgerOutcome {
    const before = this.state.ledger;
    const outcome = bookLedger(this.state.ledger, command);
    if (outcome.applied) this.#draft.ledger.push(command);
    this.problems.push(...brokenMoney(before, this.state.ledger, false));
    if (outcome.overrun !== null) this.problems.push("a call within its bound is an overrun");
    for (const { id, kind } of outcome.decisions) {
      const hold = this.state.ledger.open.find((each) => each.id === id);
      if (kind === "granted" && hold !== undefined)
        this.#granted.set(id, { taskId: hold.taskId, bound: hold.held });
    }
    this.#look();
    return outcome;
  }

  /** H2: it gives its seat when it has nothing out, and not before. */
  #settlePausing(): void {
    for (const { taskId, status } of Object.values(this.state.headcount.tasks)) {
      if (status === "pausing" && !this.#isOut(taskId)) this.#seat({ type: "settle", taskId });
    }
  }

  #isOut(taskId: TaskId): boolean {
    for (const call of this.calls.values()) if (call.taskId === taskId) return true;
    return false;
  }

  #bill(tokens: number): void {
    this.billed.tokens += tokens;
    this.billed.nanoUsd += tokens * nanoPerToken;
  }

  /** What holds between the two: who has a call out has a seat, and whoever billed, the ledger knows, within the cap. */
  #look(): void {
    const { headcount, ledger } = this.state;
    for (const { taskId } of this.calls.values()) {
      const task = headcount.tasks[taskId];
      if (task === undefined || !holdsSeat(task)) this.problems.push(`${taskId} is in a call without a seat`);
    }
    const { spent, reserved, caps } = ledger.accounts[root] ?? {};
    if (spent === undefined || reserved === undefined || caps === undefined) return;
    for (const unit of units) {
      if (this.billed[unit] > spent[unit] + reserved[unit]) this.problems.push(`the ledger misses ${unit}`);
      if (this.billed[unit] > (caps[unit] ?? Infinity)) this.problems.push(`${unit} billed above the cap`);
    }
  }

  #rebuilt(): RunState {
    const state = new RunState("refuse");
    for (const commit of this.#commits) state.fold(commit);
    return state;
  }
}

function emptyDraft(): { headcount: HeadcountCommand[]; ledger: LedgerCommand[]; tasks: TaskChange[] } {
  return { headcount: [], ledger: [], tasks: [] };
}

function standingOf({ headcount, ledger }: RunState): unknown {
  return { headcount, ledger };
}
