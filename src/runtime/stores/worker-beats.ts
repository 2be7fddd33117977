import { Fault, type Clock, type EventLoop } from "../../kernel/index.ts";

/** Maximum difference between the clock of this machine and that of the store, in milliseconds. */
const mostSkewMs = 5_000;

/** A worker that is registered without interruption. A worker that is registered again has another object. */
export interface Registration {
  /**
   * Random number that distinguishes this registration from others of the same name. Only signs of life of this
   * registration contain it.
   */
  readonly incarnation: number;
  /** Time at which the last sign of life that the store confirmed was sent, by both clocks of the machine. */
  confirmed: Moment;
}

interface Moment {
  /** Epoch milliseconds. */
  readonly wall: number;
  /** Milliseconds of a clock that is never adjusted. It stops while the machine sleeps. */
  readonly monotonic: number;
}

const never: Moment = { wall: -Infinity, monotonic: -Infinity };

/** The last sign of life of a worker. */
export interface Beat {
  readonly incarnation: number;
  /** The time of the store as text. It is only compared for equality. */
  readonly at: string;
  /** What names the process of the worker. */
  readonly process: string | null;
}

/** What is known about the worker that had the same name before. */
export interface FormerWorker {
  /** Number of the former worker's registration. `null` if it has no registration any more. */
  readonly incarnation: number | null;
  /** What names its process. */
  readonly process: string | null;
}

/** The registrations of workers, in a store that judges them by its own clock. */
export interface BeatTable {
  /** Where the store is, for messages. */
  readonly address: string;
  /** Returns the time of the store's clock, in epoch milliseconds. */
  now(): Promise<number | undefined>;
  lastBeat(workerId: string): Promise<Beat | undefined>;
  /** Registers a worker, unless another registration of the name is valid. Returns whether it did so. */
  register(workerId: string, incarnation: number): Promise<boolean>;
  /** Registers a worker, unless any registration of the name exists. Returns whether it did so. */
  registerAgain(workerId: string, incarnation: number): Promise<boolean>;
  /**
   * Sends a sign of life (beat), without repeating it. Returns the time of the store, or `undefined` if the
   * registration is lost.
   */
  beat(workerId: string, incarnation: number): Promise<number | undefined>;
  /** L7: records that a worker that was considered dead is alive. */
  withdraw(workerId: string, incarnation: number): Promise<void>;
  unregister(workerId: string, incarnation: number): Promise<void>;
  /** Whether the process with this name is known to have ended. */
  hasEnded(process: string | null): boolean;
}

export interface WorkerBeatsOptions {
  readonly table: BeatTable;
  readonly clock: Clock;
  readonly eventLoop: Pick<EventLoop, "elapsed">;
  /**
   * Calls the function at an interval in milliseconds that does not depend on changes of the clock, until the
   * returned function is called.
   */
  readonly every: (ms: number, call: () => void) => () => void;
  /** Returns the random number of a new registration. */
  readonly incarnation: () => number;
  /**
   * Time after its last sign of life after which a worker of this process counts as dead, by the store's clock, in
   * milliseconds. It is part of the registration.
   */
  readonly leaseMs: number;
  /** Called with the name of a worker whose sign of life failed because its registration is lost. */
  readonly onLost: (workerId: string) => void;
  /** Called with the name of a worker that has registered (`true`) or unregistered (`false`). */
  readonly onHeld?: (workerId: string, isHeld: boolean) => void;
}

/**
 * Sends signs of life (beats) for the workers of this process. Each worker has a row with the time of its last
 * beat, by the store's clock. The process sends three beats per lease duration.
 */
export class WorkerBeats {
  readonly #options: WorkerBeatsOptions;
  readonly #held = new Map<string, Registration>();
  #cancelBeat: (() => void) | undefined;
  #clockFault: Fault | undefined;

  constructor(options: WorkerBeatsOptions) {
    this.#options = options;
  }

  /**
   * Registers a worker. Returns the registration that it replaces, or `undefined` if this process has already
   * registered the worker. If a worker of this name may be alive, it waits for the next sign of life of that
   * worker, or until its lease has expired, unless its process is known to have ended. Rejects with
   * `already_exists` if that worker is alive.
   */
  async take(workerId: string): Promise<FormerWorker | undefined> {
    if (this.#held.has(workerId)) return undefined;
    await this.#checkClock();
    const { leaseMs, table, onHeld } = this.#options;
    const incarnation = this.#options.incarnation();
    const first = await table.lastBeat(workerId);
    if (first !== undefined && table.hasEnded(first.process))
      await table.unregister(workerId, first.incarnation);
    for (let last = first; ; last = await table.lastBeat(workerId)) {
      if (last !== undefined && first !== undefined && last.at !== first.at) throw alreadyExists(workerId);
      const confirmed = this.#now();
      const isRegistered = await table.register(workerId, incarnation);
      if (this.#held.has(workerId)) return undefined;
      if (isRegistered) {
        this.#held.set(workerId, { incarnation, confirmed });
        onHeld?.(workerId, true);
        this.#cancelBeat ??= this.#options.every(leaseMs / 3, this.#beat);
        return { incarnation: last?.incarnation ?? null, process: last?.process ?? null };
      }
      await this.#pause(Math.min(250, leaseMs / 8));
    }
  }

  /** Whether the clock of this machine differs too much from that of the store, according to the last sign of life. */
  get hasWrongClock(): boolean {
    return this.#clockFault !== undefined;
  }

  /** Throws `invalid_argument` if the clock is wrong. */
  refuseWrongClock(): void {
    if (this.#clockFault !== undefined) throw this.#clockFault;
  }

  /** Whether this process has registered the worker. */
  holds(workerId: string): boolean {
    return this.#held.has(workerId);
  }

  /**
   * Returns the current registration of the worker. Read it before the statement that finds out which runs the
   * worker owns.
   */
  registration(workerId: string): Registration | undefined {
    return this.#held.get(workerId);
  }

  /**
   * Whether the worker certainly still owns the runs that it owned under its current registration, so that the
   * store need not be asked. This is the case if its last confirmed sign of life is younger than two thirds of the
   * lease duration by both clocks, because then no other worker can have taken over the runs.
   */
  isFresh(workerId: string): boolean {
    const held = this.#held.get(workerId);
    if (held === undefined) return false;
    const { wall, monotonic } = this.#now();
    const limit = (this.#options.leaseMs * 2) / 3;
    const elapsed = wall - held.confirmed.wall;
    return elapsed >= 0 && elapsed < limit && monotonic - held.confirmed.monotonic < limit;
  }

  /**
   * L12: registers the worker again if its registration was lost, and then rejects with `store_unavailable`, because other workers
   * may have taken over its runs. Rejects with `already_exists` if another worker has registered under its name.
   */
  async keep(workerId: string): Promise<void> {
    const held = this.#held.get(workerId);
    if (held === undefined) return;
    const { leaseMs, table, onHeld } = this.#options;
    const last = await table.lastBeat(workerId);
    if (last?.incarnation === held.incarnation || this.#held.get(workerId) !== held) return;
    // J3: beats of the old registration find no row, so that they never confirm what the worker owned before. The number is the
    // same if the statement has to be repeated by the next call.
    const incarnation = held.incarnation + 1;
    // A row that a failed call has left may be old. The next beat confirms it.
    const confirmed = last === undefined ? this.#now() : never;
    const isNew = last === undefined && (await table.registerAgain(workerId, incarnation));
    const isRegistered = isNew || (await table.lastBeat(workerId))?.incarnation === incarnation;
    // L7: the worker was taken for dead, and lives.
    await table.withdraw(workerId, held.incarnation);
    // The worker was dismissed, or a call at the same time has registered it and reports that.
    if (this.#held.get(workerId) !== held) return;
    if (!isRegistered) {
      this.#held.delete(workerId);
      onHeld?.(workerId, false);
      throw alreadyExists(workerId);
    }
    this.#held.set(workerId, { incarnation, confirmed });
    throw new Fault(
      "store_unavailable",
      `worker ${workerId} was registered again: its registration had expired or was deleted, and other workers may have taken over its runs; a worker must reach the database at least every ${leaseMs} ms`,
      { details: { workerId } },
    );
  }

  async drop(workerId: string): Promise<void> {
    const held = this.#held.get(workerId);
    if (held === undefined) return;
    this.#held.delete(workerId);
    this.#options.onHeld?.(workerId, false);
    await this.#options.table.unregister(workerId, held.incarnation);
  }

  /** Unregisters all workers of this process. */
  async close(): Promise<void> {
    this.#cancelBeat?.();
    for (const workerId of this.#held.keys()) await this.drop(workerId);
  }

  readonly #beat = (): void => {
    for (const [workerId, held] of this.#held)
      // The next beat tries again. Until then the age of the last confirmed beat tells what is certain.
      this.#beatOnce(workerId, held).catch(() => undefined);
  };

  async #beatOnce(workerId: string, held: Registration): Promise<void> {
    const sent = this.#now();
    const there = await this.#options.table.beat(workerId, held.incarnation);
    if (there !== undefined) this.#clockFault = this.#findClockFault(sent.wall, there);
    if (this.#held.get(workerId) !== held) return;
    if (there === undefined) this.#options.onLost(workerId);
    else held.confirmed = sent;
  }

  /** Throws if a worker is registered on a machine whose clock is wrong. */
  async #checkClock(): Promise<void> {
    const before = this.#options.clock.now();
    const there = await this.#options.table.now();
    this.#clockFault = there === undefined ? undefined : this.#findClockFault(before, there);
    this.refuseWrongClock();
  }

  /**
   * Returns a fault if the clocks of this machine and of the store differ too much, because workers compare the
   * times that others stored with their own clock. The store has read its clock at some time between `before` and
   * now.
   */
  #findClockFault(before: number, there: number): Fault | undefined {
    const { clock, table } = this.#options;
    const skewMs = there < before ? there - before : Math.max(0, there - clock.now());
    if (Math.abs(skewMs) <= mostSkewMs) return undefined;
    return new Fault(
      "invalid_argument",
      `the clock of this machine differs by ${Math.round(Math.abs(skewMs) / 1_000)} s from that of the store at ${table.address}; synchronise both clocks, for example with NTP`,
      { details: { skewMs } },
    );
  }

  #now(): Moment {
    const { clock, eventLoop } = this.#options;
    return { wall: clock.now(), monotonic: eventLoop.elapsed() };
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#options.every(ms, () => {
        cancel();
        resolve();
      });
    });
  }
}

function alreadyExists(workerId: string): Fault {
  return new Fault(
    "already_exists",
    `a worker named ${workerId} is already running; use a different worker id for each process`,
    { details: { workerId } },
  );
}
