import { randomInt } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { Fault } from "../../../../kernel/index.ts";
import { systemClock } from "../../../process/system-sources.ts";
import type { Database } from "./database.ts";
import { hasEnded, processName } from "./worker-process.ts";

/** Maximum difference between the clock of this machine and that of the database. */
const mostSkewMs = 5_000;

/** A worker that is registered without interruption. A worker that is registered again has another object. */
export interface Registration {
  /** Random number that distinguishes this registration from others of the same name. Only its beats have it. */
  readonly incarnation: number;
  /** When the last beat that the database confirmed was sent, by both clocks of the machine. */
  confirmed: Moment;
}

interface Moment {
  /** Epoch milliseconds. */
  readonly wall: number;
  /** Milliseconds of a clock that is never set. It stops while the machine sleeps. */
  readonly monotonic: number;
}

const never: Moment = { wall: -Infinity, monotonic: -Infinity };

/** SQL of whether a worker's lease is valid. Each worker is judged by the lease that it registered with, whatever lease the judge has. */
export const isBeating = "beat_at > clock_timestamp() - lease_ms * interval '1 millisecond'";

const register = `INSERT INTO {workers} AS known (worker_id, incarnation, beat_at, lease_ms, process)
  VALUES ($1, $2, clock_timestamp(), $3, $4)
  ON CONFLICT (worker_id) DO UPDATE
  SET incarnation = excluded.incarnation, beat_at = excluded.beat_at, lease_ms = excluded.lease_ms, process = excluded.process
  WHERE known.beat_at <= clock_timestamp() - known.lease_ms * interval '1 millisecond'
    OR known.incarnation = excluded.incarnation RETURNING 1`;
const timeNow = "extract(epoch FROM clock_timestamp())::float8 * 1000 AS now";
const beat = `UPDATE {workers} SET beat_at = clock_timestamp() WHERE worker_id = $1 AND incarnation = $2 RETURNING ${timeNow}`;
const registerAgain = `INSERT INTO {workers} (worker_id, incarnation, beat_at, lease_ms, process)
  VALUES ($1, $2, clock_timestamp(), $3, $4)
  ON CONFLICT (worker_id) DO NOTHING`;
const lastBeat = "SELECT incarnation, beat_at::text AS at, process FROM {workers} WHERE worker_id = $1";
const unregister = "DELETE FROM {workers} WHERE worker_id = $1 AND incarnation = $2";
const withdraw = `INSERT INTO {lost_workers} (worker_id, incarnation, beat_at, lease_ms, process, ended, withdrawn)
  VALUES ($1, $2, clock_timestamp(), $3, $4, false, true)
  ON CONFLICT (worker_id, incarnation) DO UPDATE SET ended = false, withdrawn = true`;

/** The clock of the database, in epoch milliseconds. */
interface DatabaseTime {
  readonly now: number;
}

interface Beat {
  readonly incarnation: number;
  /** As text, because it is only compared with itself. */
  readonly at: string;
  /** What names the process of the worker. */
  readonly process: string | null;
}

/** What is known about the worker that had a name before. */
export interface FormerWorker {
  /** Its registration. `null` if it has none any more. */
  readonly incarnation: number | null;
  /** What names its process. */
  readonly process: string | null;
}

export interface WorkerBeatsOptions {
  readonly database: Database;
  /** Time after its last beat at which a worker of this process counts as dead, by the database's clock. It is part of the registration. */
  readonly leaseMs: number;
  /** Called with the name of a worker whose beat found that its registration is lost. */
  readonly onLost: (workerId: string) => void;
}

/**
 * Shows that the workers of this process are alive: each has a row with the time of its last beat, by the database's clock. The
 * process sends three beats per lease.
 */
export class WorkerBeats {
  readonly #options: WorkerBeatsOptions;
  readonly #held = new Map<string, Registration>();
  #timer: NodeJS.Timeout | undefined;
  #clockFault: Fault | undefined;

  constructor(options: WorkerBeatsOptions) {
    this.#options = options;
  }

  /**
   * Registers a worker. Returns the registration that it replaces, and `undefined` if this process has registered it already. If a worker of this name may be alive, waits
   * for its next beat, or until its lease has expired, unless its process is known to have ended. Rejects with `already_exists` if it
   * is alive.
   */
  async take(workerId: string): Promise<FormerWorker | undefined> {
    if (this.#held.has(workerId)) return undefined;
    await this.#checkClock();
    const { leaseMs, database } = this.#options;
    const incarnation = randomInt(2 ** 47);
    const first = await this.#lastBeat(workerId);
    if (first !== undefined && hasEnded(first.process))
      await database.statements.run(unregister, workerId, first.incarnation);
    for (let last = first; ; last = await this.#lastBeat(workerId)) {
      if (last !== undefined && first !== undefined && last.at !== first.at) throw alreadyExists(workerId);
      const confirmed = now();
      const count = await database.statements.run(register, workerId, incarnation, leaseMs, processName());
      if (this.#held.has(workerId)) return undefined;
      if (count > 0) {
        this.#held.set(workerId, { incarnation, confirmed });
        database.workers.add(workerId);
        this.#timer ??= setInterval(this.#beat, leaseMs / 3).unref();
        return { incarnation: last?.incarnation ?? null, process: last?.process ?? null };
      }
      await pause(Math.min(250, leaseMs / 8));
    }
  }

  /** Whether the clock of this machine differs too much from that of the database, according to the last beat. */
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

  /** The current registration of the worker. Read it before the statement that says which runs the worker owns. */
  registration(workerId: string): Registration | undefined {
    return this.#held.get(workerId);
  }

  /**
   * Whether runs that the worker owned under its current registration are certainly still its own, without asking the database:
   * its last confirmed beat is younger than two thirds of the lease by both clocks, so that no other worker can have taken over.
   */
  isFresh(workerId: string): boolean {
    const held = this.#held.get(workerId);
    if (held === undefined) return false;
    const { wall, monotonic } = now();
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
    const { leaseMs, database } = this.#options;
    const { statements } = database;
    const last = await this.#lastBeat(workerId);
    if (last?.incarnation === held.incarnation || this.#held.get(workerId) !== held) return;
    // J3: beats of the old registration find no row, so that they never confirm what the worker owned before. The number is the
    // same if the statement has to be repeated by the next call.
    const incarnation = held.incarnation + 1;
    // A row that a failed call has left may be old. The next beat confirms it.
    const confirmed = last === undefined ? now() : never;
    const count =
      last === undefined
        ? await statements.run(registerAgain, workerId, incarnation, leaseMs, processName())
        : 0;
    const isRegistered = count > 0 || (await this.#lastBeat(workerId))?.incarnation === incarnation;
    // L7: the worker was taken for dead, and lives.
    await statements.run(withdraw, workerId, held.incarnation, leaseMs, processName());
    // The worker was dismissed, or a call at the same time has registered it and reports that.
    if (this.#held.get(workerId) !== held) return;
    if (!isRegistered) {
      this.#held.delete(workerId);
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
    this.#options.database.workers.delete(workerId);
    await this.#options.database.statements.run(unregister, workerId, held.incarnation);
  }

  /** Unregisters all workers of this process. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    for (const workerId of this.#held.keys()) await this.drop(workerId);
  }

  readonly #beat = (): void => {
    for (const [workerId, held] of this.#held)
      // The next beat tries again. Until then the age of the last confirmed beat tells what is certain.
      this.#beatOnce(workerId, held).catch(() => undefined);
  };

  async #beatOnce(workerId: string, held: Registration): Promise<void> {
    const sent = now();
    const { rows } = await this.#options.database.once(beat, workerId, held.incarnation);
    const [answer] = rows as readonly DatabaseTime[];
    if (answer !== undefined) this.#clockFault = this.#findClockFault(sent.wall, answer);
    if (this.#held.get(workerId) !== held) return;
    if (answer === undefined) this.#options.onLost(workerId);
    else held.confirmed = sent;
  }

  #lastBeat(workerId: string): Promise<Beat | undefined> {
    return this.#options.database.statements.get<Beat>(lastBeat, workerId);
  }

  /** Refuses to register a worker on a machine whose clock is wrong. */
  async #checkClock(): Promise<void> {
    const before = systemClock.now();
    const answer = await this.#options.database.statements.get<DatabaseTime>(`SELECT ${timeNow}`);
    this.#clockFault = answer && this.#findClockFault(before, answer);
    this.refuseWrongClock();
  }

  /**
   * Workers compare the times that others stored with their own clock, so clocks must not differ much. The database has looked at its
   * clock at some time between `before` and now.
   */
  #findClockFault(before: number, { now: there }: DatabaseTime): Fault | undefined {
    const skewMs = there < before ? there - before : Math.max(0, there - systemClock.now());
    if (Math.abs(skewMs) <= mostSkewMs) return undefined;
    return new Fault(
      "invalid_argument",
      `the clock of this machine differs by ${Math.round(Math.abs(skewMs) / 1_000)} s from that of the store at ${this.#options.database.address}; synchronise both clocks, for example with NTP`,
      { details: { skewMs } },
    );
  }
}

function now(): Moment {
  return { wall: systemClock.now(), monotonic: performance.now() };
}

function alreadyExists(workerId: string): Fault {
  return new Fault(
    "already_exists",
    `a worker named ${workerId} is already running; use a different worker id for each process`,
    { details: { workerId } },
  );
}
