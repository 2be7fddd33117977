import { Fault } from "../../../kernel/index.ts";
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

/** A transaction takes no more writes on after so long, and the event loop waits no longer for its next turn. */
const longestTurnMs = 4;

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
  /** When this turn of the event loop began, as far as it is ours. */
  #turnBegan: number | undefined;
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
    if (this.#turnLasts()) queueMicrotask(() => process.nextTick(this.#flush));
    else setImmediate(this.#flush);
  }

  /** Whether this turn may go on; a loop of writes alone would otherwise keep timers and sockets waiting. */
  #turnLasts(): boolean {
    const now = performance.now();
    if (this.#turnBegan === undefined) {
      this.#turnBegan = now;
      setImmediate(() => {
        this.#turnBegan = undefined;
      });
    }
    return now - this.#turnBegan < longestTurnMs;
  }

  readonly #flush = (): void => {
    this.#scheduled = false;
    this.#flushing = true;
    let wait: BusyWait | undefined;
    const next = (): void => {
      if (this.#writeOnce()) wait = undefined;
      else {
        wait ??= new BusyWait();
        this.#refuseOverdue();
      }
      if (this.#queue.length === 0) this.#rest();
      else if (wait === undefined) setImmediate(next);
      else void wait.pause().then(next);
    };
    next();
  };

  #rest(): void {
    this.#flushing = false;
    const idle = this.#idle;
    this.#idle = [];
    for (const tell of idle) tell();
  }

  /** False: the file is locked, and everything still waits. */
  #writeOnce(): boolean {
    const waiting = this.#queue;
    this.#queue = [];
    try {
      const outcomes = this.#writeTogether(waiting);
      if (outcomes.length < waiting.length) this.#queue = [...waiting.slice(outcomes.length), ...this.#queue];
      this.#settle(waiting, outcomes);
      return true;
    } catch (error) {
      for (const each of waiting) takeBack(each);
      if (isBusy(error)) {
        this.#queue = [...waiting, ...this.#queue];
        return false;
      }
      return this.#writeApart(waiting, error);
    }
  }

  /** What went wrong may be the matter of one of them: each gets a transaction of its own. */
  #writeApart(waiting: readonly Waiting[], reason: unknown): boolean {
    const [only] = waiting;
    if (waiting.length === 1 && only !== undefined) {
      only.reject(sqliteFault(reason, this.#database.path));
      return true;
    }
    for (const [index, each] of waiting.entries()) {
      try {
        this.#settle([each], this.#writeTogether([each]));
      } catch (error) {
        takeBack(each);
        if (isBusy(error)) {
          this.#queue = [...waiting.slice(index), ...this.#queue];
          return false;
        }
        each.reject(sqliteFault(error, this.#database.path));
      }
    }
    return true;
  }

  /** As many as fit into one turn, from the first on. */
  #writeTogether(waiting: readonly Waiting[]): Outcome[] {
    const [only] = waiting;
    if (waiting.length === 1 && only?.write.isOneStatement?.() === true) return [attempt(only)];
    return this.#database.transaction("IMMEDIATE", () => {
      const outcomes: Outcome[] = [];
      const version = waiting.length > 1 ? this.#database.version() : undefined;
      const end = performance.now() + longestTurnMs;
      for (const each of waiting) {
        outcomes.push(attempt(each, version));
        if (performance.now() > end) break;
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
