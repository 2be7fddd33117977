import { randomInt } from "node:crypto";
import {
  missingRun,
  Fault,
  isInScope,
  type Clock,
  type Commit,
  type Lease,
  type MaybePromise,
  type RunId,
  type RunRecord,
  type StoreChange,
  type TenantScope,
} from "../../../../kernel/index.ts";
import type { Position } from "../../codec/commit-draft.ts";
import type { CommitText } from "../../codec/commit-row.ts";
import type { Database } from "./database.ts";
import type { GroupCommit, Write } from "./group-commit.ts";
import type { RunKey } from "../../codec/stored-run.ts";
import { runKeyColumns } from "./run-row.ts";

/**
 * The content of a run that was created and claimed in one transaction, for its owner to start with. It holds the
 * commit itself if no caller can change it, otherwise its text.
 */
interface Beginning {
  readonly run: RunRecord;
  readonly first: Commit | CommitText;
}

/**
 * A run that this store owns, as far as it knows. Only the owner appends commits, through one store at a time (the
 * holder), and every commit is fenced by epoch and holder. Therefore the position is correct as long as commits
 * succeed.
 */
export interface OwnedRun extends RunKey {
  readonly epoch: number;
  readonly workerId: string;
  position?: Position | undefined;
  /** What a run starts with. It is present until the owner has read it. */
  beginning?: Beginning | undefined;
  /**
   * Version of the database when a commit last passed the fence. While the version is the same, the fence still holds.
   */
  takenAt?: number;
}

export interface TablesOptions {
  readonly database: Database;
  readonly writer: GroupCommit;
  readonly clock: Clock;
}

const keyOfRun = `SELECT ${runKeyColumns} FROM runs WHERE run_id = ?`;
const keyAndOwner = `SELECT ${runKeyColumns}, epoch, owner FROM runs WHERE run_id = ?`;

/** Data and operations that the contracts of the SQLite store share. */
export class Tables {
  readonly database: Database;
  /** The runs that this store owns. */
  readonly owned = new Map<RunId, OwnedRun>();
  readonly listeners = new Set<(change: StoreChange) => void>();
  /** Random id of this store among all that have the file open. */
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

  /**
   * Returns the time in microseconds, never the same value twice in one process. It orders runs by the time at which
   * they became ready.
   */
  tick(): number {
    this.#lastTick = Math.max(this.#lastTick + 1, this.#clock.now() * 1_000);
    return this.#lastTick;
  }

  /** Calls the listeners in microtasks. */
  announce(change: StoreChange): void {
    for (const tell of this.listeners) queueMicrotask(() => tell(change));
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

  /** Whether a commit may be written synchronously. If several runs are active, their commits are grouped instead. */
  get writesNow(): boolean {
    return !this.#isClosed && this.owned.size === 1 && this.#writer.isFree();
  }

  /** See `GroupCommit.writeNow`. */
  writeNow<Result extends object>(work: () => Result, bytes: number): Result | undefined {
    return this.#writer.writeNow(work, bytes);
  }

  /** Refuses new calls and waits for queued writes. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#writer.settled();
  }

  find(runId: RunId): RunKey | undefined {
    return this.database.get<RunKey>(keyOfRun, runId);
  }

  /** S6: returns the key of a run. Throws `not_found` if the run does not exist in the scope. */
  run(runId: RunId, scope?: TenantScope): RunKey {
    const key = this.find(runId);
    if (key === undefined || !isInScope(key, scope)) throw missingRun(runId);
    return key;
  }

  /**
   * J3: returns the run if the lease is current, from memory if this store knows the lease, otherwise from the file.
   */
  owner(lease: Lease): OwnedRun {
    const known = this.owned.get(lease.runId);
    if (known?.epoch === lease.epoch && known.workerId === lease.workerId) return known;
    return this.ownerNow(lease);
  }

  /** J3: returns the run if the file says that the lease is current. Throws `lease_lost`. */
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
    const { id, agentId, sessionId, tenantId, userId } = row;
    const owned: OwnedRun = { id, runId, agentId, sessionId, tenantId, userId, epoch, workerId };
    this.owned.set(runId, owned);
    return owned;
  }

  closed(): Fault {
    return new Fault("closed", `the store at ${this.database.path} was closed`);
  }
}
