import { randomInt } from "node:crypto";
import {
  Fault,
  type Clock,
  type Commit,
  type Lease,
  type MaybePromise,
  type RunId,
  type RunRecord,
} from "../../../../kernel/index.ts";
import type { CommitText } from "./commit-row.ts";
import type { Database } from "./database.ts";
import type { GroupCommit, Write } from "./group-commit.ts";
import { runKeyColumns, type RunKey } from "./run-row.ts";

/** Where a run's journal ends: what the next commit follows on from. */
export interface Position {
  /** Of the next commit. */
  number: number;
  /** Of the next event. */
  seq: number;
  /** Of the chain, of the last commit (E1). */
  link: string;
}

/**
 * A run that was claimed along with its creation: all there is of it, for the owner to begin with. The commit itself where nobody has
 * anything of it that can be changed, else its text.
 */
interface Beginning {
  readonly run: RunRecord;
  readonly first: Commit | CommitText;
}

/**
 * A run that this process owns, as far as it knows. Only the owner adds commits, through one store at a time (the holder), and every
 * commit is fenced by epoch and holder: its position stays right for as long as its commits are taken.
 */
export interface OwnedRun extends RunKey {
  readonly epoch: number;
  readonly workerId: string;
  position?: Position | undefined;
  /** Until it is read. */
  beginning?: Beginning | undefined;
  /** The database's version when a commit was last taken: while it is the same, the next one would be. */
  takenAt?: number;
}

export interface TablesOptions {
  readonly database: Database;
  readonly writer: GroupCommit;
  readonly clock: Clock;
}

const keyOfRun = `SELECT ${runKeyColumns} FROM runs WHERE run_id = ?`;
const keyAndOwner = `SELECT ${runKeyColumns}, epoch, owner FROM runs WHERE run_id = ?`;

/** What the SQLite store's contracts share. */
export class Tables {
  readonly database: Database;
  /** Nothing is kept here of a run that nobody in this process owns. */
  readonly owned = new Map<RunId, OwnedRun>();
  readonly listeners = new Set<(runId?: RunId) => void>();
  /** This store, among all that have the file open. */
  readonly holder = randomInt(2 ** 47);
  readonly #writer: GroupCommit;
  readonly #clock: Clock;
  #lastTick = 0;
  #isClosed = false;

  constructor({ database, writer, clock }: TablesOptions) {
    this.database = database;
    this.#writer = writer;
    this.#clock = clock;
  }

  /** Microseconds, to order what became ready: never the same twice in one process. */
  tick(): number {
    this.#lastTick = Math.max(this.#lastTick + 1, this.#clock.now() * 1_000);
    return this.#lastTick;
  }

  /** Someone may have something to do. */
  announce(runId?: RunId): void {
    for (const tell of this.listeners) queueMicrotask(() => tell(runId));
  }

  /** Reads synchronously if no other connection holds a lock. */
  read<Result>(work: () => Result): MaybePromise<Result> {
    if (this.#isClosed) return Promise.reject(this.closed());
    return this.database.patiently(work);
  }

  write<Result>(write: Write<Result>): Promise<Result> {
    if (this.#isClosed) return Promise.reject(this.closed());
    return this.#writer.write(write);
  }

  /** Whether it may be worth trying to write something at once: where several runs are at work, their writes had better go together. */
  get writesNow(): boolean {
    return !this.#isClosed && this.owned.size === 1 && this.#writer.isFree();
  }

  /** As `GroupCommit.writeNow`. */
  writeNow<Result extends object>(work: () => Result, bytes: number): Result | undefined {
    return this.#writer.writeNow(work, bytes);
  }

  /** Nothing is taken on any more; what was, is finished. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#writer.settled();
  }

  find(runId: RunId): RunKey | undefined {
    return this.database.get<RunKey>(keyOfRun, runId);
  }

  run(runId: RunId): RunKey {
    const key = this.find(runId);
    if (key === undefined) throw this.missing(runId);
    return key;
  }

  missing(runId: RunId): Fault {
    return new Fault("not_found", `there is no run ${runId} in this store`);
  }

  /** J3: the run, if the lease holds; as this process knows it, or else as the file says. */
  owner(lease: Lease): OwnedRun {
    const known = this.owned.get(lease.runId);
    if (known?.epoch === lease.epoch && known.workerId === lease.workerId) return known;
    return this.ownerNow(lease);
  }

  /** J3: as the file says. */
  ownerNow(lease: Lease): OwnedRun {
    const { runId, epoch, workerId } = lease;
    const row = this.database.get<RunKey & { readonly epoch: number; readonly owner: string | null }>(
      keyAndOwner,
      runId,
    );
    if (row === undefined || row.epoch !== epoch || row.owner !== workerId) {
      const known = this.owned.get(runId);
      if (known?.epoch === epoch && known.workerId === workerId) this.owned.delete(runId);
      throw new Fault("lease_lost", `worker ${workerId} does not own ${runId} at epoch ${epoch} any more`, {
        details: { runId, epoch, now: row?.epoch ?? null },
      });
    }
    const { id, agentId, sessionId } = row;
    const owned: OwnedRun = { id, runId, agentId, sessionId, epoch, workerId };
    this.owned.set(runId, owned);
    return owned;
  }

  closed(): Fault {
    return new Fault("closed", `the store at ${this.database.path} was closed`);
  }
}
