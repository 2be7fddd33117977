import { setImmediate } from "node:timers/promises";
import { Fault } from "../../../kernel/index.ts";
import { LoopTurn } from "../../loop-turn.ts";
import { BusyWait } from "./busy-wait.ts";
import type { Database } from "./database.ts";
import { isBusy, sqliteFault } from "./sqlite-fault.ts";

/** One change, whole or not at all. */
export interface Write<Result> {
  /**
   * Inside the transaction. Refuses with a fault, and only before it has changed anything, so that the others may stand. Among several,
   * it is told the database's version: while that stays the same, nobody but this store has written.
   */
  apply(version?: number): Result;
  /** It is durable; those who wait are told after this. */
  committed?(result: Result): void;
  /** What `apply` did was taken back. */
  undone?(): void;
  /** Whether `apply` is one statement, which needs no transaction around it. */
  isOneStatement?(): boolean;
  /** About how much it writes; little unless told. */
  readonly bytes?: number;
}

interface Waiting<Result = unknown> {
  readonly since: number;
  /** `apply` has been called and may have to be taken back. */
  isTried: boolean;
  readonly write: Write<Result>;
  readonly resolve: (result: Result) => void;
  readonly reject: (fault: Fault) => void;
}

type Outcome = { readonly result: unknown } | { readonly fault: Fault };

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
  readonly #onWritten: (bytes: number) => void;
  #queue: Waiting[] = [];
  #flushing = false;
  #scheduled = false;
  /** A loop of writes alone would keep timers and sockets waiting. */
  readonly #turn = new LoopTurn(longestTurnMs);
  #idle: (() => void)[] = [];

  /** `onWritten` is told of every transaction, and about how much was written in it. */
  constructor(database: Database, onWritten: (bytes: number) => void) {
    this.#database = database;
    this.#onWritten = onWritten;
  }

  write<Result>(write: Write<Result>): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      const waiting: Waiting<Result> = { since: performance.now(), isTried: false, write, resolve, reject };
      this.#queue.push(waiting as Waiting);
      this.#schedule();
    });
  }

  /** Nobody waits to write, and this turn of the event loop may go on. */
  isFree(): boolean {
    return !this.#scheduled && !this.#flushing && !this.#turn.isLong;
  }

  /** One statement, at once, when it is free; `undefined` if the file is locked, and then nothing was done. Throws faults only. */
  writeNow<Result extends object>(work: () => Result, bytes: number): Result | undefined {
    try {
      const result = work();
      this.#onWritten(bytes);
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
    if (this.#turn.isLong) globalThis.setImmediate(this.#flush);
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
      for (const each of waiting.toReversed()) takeBack(each);
      return isBusy(error) ? "busy" : sqliteFault(error, this.#database.path);
    }
  }

  /** As many as go into one transaction, from the first on. */
  #writeTogether(waiting: readonly Waiting[]): Outcome[] {
    const [only] = waiting;
    if (waiting.length === 1 && only?.write.isOneStatement?.() === true) return [attempt(only)];
    return this.#database.transaction("IMMEDIATE", () => {
      const outcomes: Outcome[] = [];
      const version = waiting.length > 1 ? this.#database.version() : undefined;
      let bytes = 0;
      for (const each of waiting) {
        outcomes.push(attempt(each, version));
        bytes += each.write.bytes ?? 0;
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
      bytes += each.write.bytes ?? 0;
      each.write.committed?.(outcome.result);
      each.resolve(outcome.result);
    }
    this.#onWritten(bytes);
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

/** A refusal is an outcome; anything else undoes the transaction. */
function attempt(each: Waiting, version?: number): Outcome {
  each.isTried = true;
  try {
    return { result: each.write.apply(version) };
  } catch (error) {
    if (Fault.is(error)) return { fault: error };
    throw error;
  }
}

function takeBack(each: Waiting): void {
  if (each.isTried) each.write.undone?.();
  each.isTried = false;
}
