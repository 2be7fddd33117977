import { setImmediate } from "node:timers/promises";
import { Fault } from "../../../../kernel/index.ts";
import { EventLoopTurn } from "../../../process/event-loop-turn.ts";
import { systemEventLoop } from "../../../process/system-sources.ts";
import { BusyWait } from "./busy-wait.ts";
import type { Database } from "./database.ts";
import { isBusy, sqliteFault } from "./sqlite-fault.ts";

/** One atomic change. */
export interface Write<Result> {
  /**
   * Runs inside the transaction. It may throw a fault only before it has changed anything, because other writes
   * share the transaction. In a shared transaction it gets the version of the database: while the version is
   * unchanged, no other connection has written.
   */
  readonly apply: (version?: number) => Result;
  /** Called once the change is durable, before its promise resolves. */
  readonly committed?: (result: Result) => void;
  /** Called if the changes of `apply` were rolled back. */
  readonly undone?: () => void;
  /** Whether `apply` runs only one statement, which needs no explicit transaction. */
  readonly isOneStatement?: () => boolean;
  /** Approximate number of bytes written. Default: 0. */
  readonly bytes?: number;
}

/** A queued write. */
class Waiting<Result = unknown> {
  readonly since = performance.now();
  readonly bytes: number;
  readonly resolve: (result: Result) => void;
  readonly reject: (fault: Fault) => void;
  readonly #apply: Write<Result>["apply"];
  readonly #committed: Write<Result>["committed"];
  readonly #undone: Write<Result>["undone"];
  readonly #isOneStatement: Write<Result>["isOneStatement"];
  /** Whether `apply` was called, so that it may have to be rolled back. */
  #isTried = false;

  constructor(
    { bytes = 0, apply, committed, undone, isOneStatement }: Write<Result>,
    resolve: (result: Result) => void,
    reject: (fault: Fault) => void,
  ) {
    this.bytes = bytes;
    this.resolve = resolve;
    this.reject = reject;
    this.#apply = apply;
    this.#committed = committed;
    this.#undone = undone;
    this.#isOneStatement = isOneStatement;
  }

  get isOneStatement(): boolean {
    return this.#isOneStatement?.() ?? false;
  }

  /** Runs the write. If it throws a fault, the fault is its outcome. Any other error rolls back the transaction. */
  attempt(version?: number): Outcome<Result> {
    this.#isTried = true;
    try {
      return { result: this.#apply(version) };
    } catch (error) {
      if (Fault.is(error)) return { fault: error };
      throw error;
    }
  }

  settle(result: Result): void {
    this.#committed?.(result);
    this.resolve(result);
  }

  takeBack(): void {
    if (this.#isTried) this.#undone?.();
    this.#isTried = false;
  }
}

type Outcome<Result = unknown> = { readonly result: Result } | { readonly fault: Fault };

/** Receives the approximate size of every transaction. */
export interface WriteWatch {
  note(bytes: number): void;
}

/** Maximum duration of a turn of the event loop in which the process only writes, in milliseconds. */
const longestTurnMs = 4;
/** Maximum number of writes and of bytes in one transaction, because a transaction blocks the event loop. */
const mostWrites = 256;
const mostBytes = 1_000_000;

/** A resolved promise, whose `then` queues a microtask and allocates less memory than `queueMicrotask`. */
const settled = Promise.resolve();

/**
 * Groups writes. Writes of any run that are queued in the same turn of the event loop share one transaction, in order;
 * each then resolves or rejects on its own. A single write is not delayed.
 */
export class GroupCommit {
  readonly #database: Database;
  readonly #watch: WriteWatch | undefined;
  #queue: Waiting[] = [];
  #flushing = false;
  #scheduled = false;
  /**
   * Measures the turn of the event loop, so that timers and network events are handled even if there is always
   * something to write.
   */
  readonly #turn = new EventLoopTurn(systemEventLoop, longestTurnMs);
  #idle: (() => void)[] = [];

  constructor(database: Database, watch?: WriteWatch) {
    this.#database = database;
    this.#watch = watch;
  }

  write<Result>(write: Write<Result>): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      this.#queue.push(new Waiting(write, resolve, reject) as unknown as Waiting);
      this.#schedule();
    });
  }

  /** Whether no write is queued and the current turn of the event loop is not exhausted. */
  isFree(): boolean {
    return !this.#scheduled && !this.#flushing && !this.#turn.isExhausted;
  }

  /**
   * Runs one statement synchronously. Call only if `isFree()`. Returns `undefined`, with nothing written, if the file
   * is locked. Throws faults only.
   */
  writeNow<Result extends object>(work: () => Result, bytes: number): Result | undefined {
    try {
      this.#database.verify();
      const result = work();
      this.#watch?.note(bytes);
      return result;
    } catch (error) {
      if (isBusy(error)) return undefined;
      throw Fault.is(error) ? error : sqliteFault(error, this.#database.path);
    }
  }

  /** Resolves when the queue is empty. */
  settled(): Promise<void> {
    if (this.#queue.length === 0 && !this.#flushing) return Promise.resolve();
    return new Promise((resolve) => {
      this.#idle.push(resolve);
    });
  }

  #schedule(): void {
    if (this.#scheduled || this.#flushing) return;
    this.#scheduled = true;
    // A tick queued from a microtask runs after all microtasks: every write of this turn is in the queue by then.
    if (this.#turn.isExhausted) globalThis.setImmediate(this.#flush);
    else void settled.then(this.#flushInTick);
  }

  readonly #flushInTick = (): void => process.nextTick(this.#flush);

  readonly #flush = (): void => {
    this.#scheduled = false;
    this.#flushing = true;
    const isWritten = this.#writeOnce();
    if (this.#queue.length === 0) this.#rest();
    else void this.#goOn(isWritten);
  };

  /** Writes what did not fit into the first transaction, or waits for the lock of another process and then writes. */
  async #goOn(isFirstWritten: boolean): Promise<void> {
    let isWritten = isFirstWritten;
    let wait: BusyWait | undefined;
    for (;;) {
      if (isWritten) wait = undefined;
      else this.#refuseOverdue();
      if (this.#queue.length === 0) break;
      if (isWritten) await setImmediate();
      else await (wait ??= new BusyWait()).pause();
      isWritten = this.#writeOnce();
    }
    this.#rest();
  }

  #rest(): void {
    this.#flushing = false;
    const idle = this.#idle;
    this.#idle = [];
    for (const tell of idle) tell();
  }

  /** Writes one transaction. Returns `false` if the file is locked; the writes then stay in the queue. */
  #writeOnce(): boolean {
    const waiting = this.#queue;
    this.#queue = [];
    const outcomes = this.#tryTogether(waiting);
    if (outcomes === "busy") {
      this.#queue = [...waiting, ...this.#queue];
      return false;
    }
    if (Fault.is(outcomes)) return this.#writeApart(waiting, outcomes);
    this.#settle(waiting, outcomes);
    if (outcomes.length < waiting.length) this.#queue = [...waiting.slice(outcomes.length), ...this.#queue];
    return true;
  }

  /** Tries each write in its own transaction, because one of several writes may have caused the error. */
  #writeApart(waiting: readonly Waiting[], together: Fault): boolean {
    for (const [index, each] of waiting.entries()) {
      const outcomes = waiting.length === 1 ? together : this.#tryTogether([each]);
      if (outcomes === "busy") {
        this.#queue = [...waiting.slice(index), ...this.#queue];
        return false;
      }
      if (Fault.is(outcomes)) each.reject(outcomes);
      else this.#settle([each], outcomes);
    }
    return true;
  }

  /** Writes one transaction. Returns the outcomes of its writes, or why nothing was written. */
  #tryTogether(waiting: readonly Waiting[]): Outcome[] | "busy" | Fault {
    try {
      return this.#writeTogether(waiting);
    } catch (error) {
      // In reverse order, so that each write restores the state it found.
      for (const each of waiting.toReversed()) each.takeBack();
      return isBusy(error) ? "busy" : sqliteFault(error, this.#database.path);
    }
  }

  /** Writes as many queued writes as fit into one transaction. */
  #writeTogether(waiting: readonly Waiting[]): Outcome[] {
    const [only] = waiting;
    this.#database.verify();
    if (waiting.length === 1 && only?.isOneStatement === true) return [only.attempt()];
    return this.#database.transaction("IMMEDIATE", () => {
      const outcomes: Outcome[] = [];
      const version = waiting.length > 1 ? this.#database.version() : undefined;
      let bytes = 0;
      for (const each of waiting) {
        outcomes.push(each.attempt(version));
        bytes += each.bytes;
        if (outcomes.length >= mostWrites || bytes >= mostBytes) break;
      }
      return outcomes;
    });
  }

  #settle(waiting: readonly Waiting[], outcomes: readonly Outcome[]): void {
    let bytes = 0;
    let index = 0;
    for (const outcome of outcomes) {
      const each = waiting[index++];
      if (each === undefined) continue;
      if ("fault" in outcome) {
        each.reject(outcome.fault);
        continue;
      }
      bytes += each.bytes;
      each.settle(outcome.result);
    }
    this.#watch?.note(bytes);
  }

  #refuseOverdue(): void {
    const { path, busyLimitMs } = this.#database;
    const latest = performance.now() - busyLimitMs;
    const overdue = this.#queue.filter(({ since }) => since <= latest);
    if (overdue.length === 0) return;
    this.#queue = this.#queue.filter(({ since }) => since > latest);
    const fault = new Fault(
      "store_unavailable",
      `the store at ${path} has been locked by another process for ${busyLimitMs} ms`,
      { details: { path, busyLimitMs } },
    );
    for (const each of overdue) each.reject(fault);
  }
}
