import type { EventLoop } from "../../kernel/index.ts";

/** A log with records that are not written yet. */
export interface FlushableLog {
  /** Writes the records. */
  writeIdle(): void;
}

/** A log's place in the queue of `IdleFlusher`. */
export class IdleWait {
  /** Number of the turn of the event loop in which the place was queued. */
  readonly turn: number;
  #log: FlushableLog | undefined;

  constructor(log: FlushableLog, turn: number) {
    this.#log = log;
    this.turn = turn;
  }

  get isPending(): boolean {
    return this.#log !== undefined;
  }

  /** Takes the same place again after `cancel`, in the turn in which it was queued. */
  renew(log: FlushableLog): void {
    this.#log = log;
  }

  /**
   * Removes the log from the queue. Call it when other code writes the records. Without the reference from the
   * queue, which is an old object, a fast garbage collection can free a run that ends within one turn of the event
   * loop. `npm run bench -- loop`, row "1,000 runs of 10 turns at once".
   */
  cancel(): void {
    this.#log = undefined;
  }

  end(): void {
    const log = this.#log;
    this.#log = undefined;
    log?.writeIdle();
  }
}

/** Writes the records of logs that no other code has written in a full turn of the event loop. */
export class IdleFlusher {
  readonly eventLoop: EventLoop;
  /** Logs that were added in the current turn of the event loop. */
  #added: IdleWait[] = [];
  /** Logs that were added in the turn before. */
  #waiting: IdleWait[] = [];
  #turn = 0;

  constructor(eventLoop: EventLoop) {
    this.eventLoop = eventLoop;
  }

  /**
   * Calls `writeIdle` of the log after one full turn of the event loop, unless the wait is cancelled before. `last`
   * is the latest wait of the log, which must not be pending. It is used again within one turn, because an agent
   * with a memory store may take many turns of its loop in one turn of the event loop.
   */
  add(log: FlushableLog, last?: IdleWait): IdleWait {
    if (last?.turn === this.#turn) {
      last.renew(log);
      return last;
    }
    if (this.#added.length === 0 && this.#waiting.length === 0) this.eventLoop.nextTurn(this.#endTurn);
    const wait = new IdleWait(log, this.#turn);
    this.#added.push(wait);
    return wait;
  }

  /**
   * Called first at the end of the turn in which a log was added. The log waits one more turn, so that a task which
   * becomes idle in that turn records this in the same commit.
   */
  readonly #endTurn = (): void => {
    const due = this.#waiting;
    this.#turn++;
    this.#waiting = this.#added;
    this.#added = [];
    if (this.#waiting.length > 0) this.eventLoop.nextTurn(this.#endTurn);
    for (const wait of due) wait.end();
  };
}
