import { setImmediate } from "node:timers/promises";
import { Fault } from "../../../../kernel/index.ts";
import { objectArray } from "../../../process/object-array.ts";
import { EventLoopTurn } from "../../../process/event-loop-turn.ts";
import { BusyWait } from "./busy-wait.ts";
import type { Database } from "./database.ts";
import { isBusy, sqliteFault } from "./sqlite-fault.ts";

/** One change, whole or not at all. */
export interface Write<Result> {
  /**
   * Inside the transaction. Refuses with a fault, and only before it has changed anything, so that the others may stand. Among several,
   * it is told the database's version: while that stays the same, nobody but this store has written.
   */
  readonly apply: (version?: number) => Result;
  /** It is durable; those who wait are told after this. */
  readonly committed?: (result: Result) => void;
  /** What `apply` did was taken back. */
  readonly undone?: () => void;
  /** Whether `apply` is one statement, which needs no transaction around it. */
  readonly isOneStatement?: () => boolean;
  /** About how much it writes; little unless told. */
  readonly bytes?: number;
}

/** A write in the queue, of one shape for all of them: what goes through the queue was compiled for it. */
class Waiting<Result = unknown> {
  readonly since = performance.now();
  readonly bytes: number;
  readonly resolve: (result: Result) => void;
  readonly reject: (fault: Fault) => void;
  readonly #apply: Write<Result>["apply"];
  readonly #committed: Write<Result>["committed"];
  readonly #undone: Write<Result>["undone"];
  readonly #isOneStatement: Write<Result>["isOneStatement"];
  /** `apply` has been called and may have to be taken back. */
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
    return this.#isOneStatement?.call(undefined) ?? false;
  }

  /** A refusal is an outcome; anything else undoes the transaction. */
  attempt(version?: number): Outcome<Result> {
    this.#isTried = true;
    try {
      return { result: this.#apply.call(undefined, version) };
    } catch (error) {
      if (Fault.is(error)) return { fault: error };
      throw error;
    }
  }

  settle(result: Result): void {
    this.#committed?.call(undefined, result);
    this.resolve(result);
  }

  takeBack(): void {
    if (this.#isTried) this.#undone?.call(undefined);
    this.#isTried = false;
  }
}

type Outcome<Result = unknown> = { readonly result: Result } | { readonly fault: Fault };

/** Told of every transaction, and about how much was written in it. */
export interface WriteWatch {
  note(bytes: number): void;
}

/** What waits in a loop of writes alone gets its turn after so long. */
const longestTurnMs = 4;
/** A transaction takes no more on after so many writes, or so many bytes: it stands in the way of everything else. */
const mostWrites = 256;
const mostBytes = 1_000_000;

/** What follows it is a microtask, for less than `queueMicrotask` asks. */
const settled = Promise.resolve();

/**
 * The one door to the file. Writes that come in the same turn of the event loop, of whichever run, share a transaction, in the order
 * in which they came; each is then resolved or refused by itself. One that comes alone waits for nobody.
 */
export class GroupCommit {
  readonly #database: Database;
  readonly #watch: WriteWatch | undefined;
  #queue = objectArray<Waiting>();
  #flushing = false;
  #scheduled = false;
  /** A loop of writes alone would keep timers and sockets waiting. */
  readonly #turn = new EventLoopTurn(longestTurnMs);
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

  /** Nobody waits to write, and this turn of the event loop may go on. */
  isFree(): boolean {
    return !this.#scheduled && !this.#flushing && !this.#turn.isExhausted;
  }

  /** One statement, at once, when it is free; `undefined` if the file is locked, and then nothing was done. Throws faults only. */
  writeNow<Result extends object>(work: () => Result, bytes: number): Result | undefined {
    try {
      const result = work();
      this.#watch?.note(bytes);
      return result;
    } catch (error) {
      if (isBusy(error)) return undefined;
      throw Fault.is(error) ? error : sqliteFault(error, this.#database.path);
    }
  }

  /** Resolves when nothing is left to write. */
  settled(): Promise<void> {
    if (this.#queue.length === 0 && !this.#flushing) return Promise.resolve();
    return new Promise((resolve) => {
      this.#idle.push(resolve);
    });
  }

  #schedule(): void {
    if (this.#scheduled || this.#flushing) return;
    this.#scheduled = true;
    // From a microtask, a tick comes when all microtasks are done: whoever could write in this turn has.
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

  /** With what was too much for one transaction, or for which the file was locked. */
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

  /** False: the file is locked, and what could not be written still waits. */
  #writeOnce(): boolean {
    const waiting = this.#queue;
    this.#queue = objectArray();
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

  /** What went wrong may be the matter of one of them: each gets a transaction of its own. */
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

  /** What came of them, from the first on; or nothing was written, and why. */
  #tryTogether(waiting: readonly Waiting[]): Outcome[] | "busy" | Fault {
    try {
      return this.#writeTogether(waiting);
    } catch (error) {
      // The last first: each finds things as it left them.
      for (const each of waiting.toReversed()) each.takeBack();
      return isBusy(error) ? "busy" : sqliteFault(error, this.#database.path);
    }
  }

  /** As many as go into one transaction, from the first on. */
  #writeTogether(waiting: readonly Waiting[]): Outcome[] {
    const [only] = waiting;
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
