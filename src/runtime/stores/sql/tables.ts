import {
  Fault,
  isInScope,
  missingRun,
  type Clock,
  type Lease,
  type MaybePromise,
  type RunId,
  type StoreChange,
  type TenantScope,
} from "../../../kernel/index.ts";
import type { Position } from "../codec/commit-draft.ts";
import type { RunKey } from "../codec/stored-run.ts";
import type { Dialect } from "./dialect.ts";
import { runKeyColumns } from "./run-row.ts";
import { get, type Work } from "./work.ts";

/** A run that this store owns, as far as it knows. */
export interface OwnedRun extends RunKey {
  readonly epoch: number;
  readonly workerId: string;
  position?: Position | undefined;
}

const keyOfRun = `SELECT ${runKeyColumns} FROM {runs} WHERE run_id = $1`;
const keyAndOwner = `SELECT ${runKeyColumns}, epoch, owner FROM {runs} WHERE run_id = $1`;

/** Data and operations that the contracts of a SQL store share. */
export abstract class SqlTables<Owned extends OwnedRun = OwnedRun> {
  /** The runs that this store owns. */
  readonly owned = new Map<RunId, Owned>();
  readonly listeners = new Set<(change: StoreChange) => void>();
  readonly dialect: Dialect;
  /**
   * Returns the owners of runs whose process has ended or whose lease has expired. The leases of the store set this
   * function.
   */
  goneOwners: () => MaybePromise<readonly string[]> = () => [];
  readonly #clock: Clock;
  #lastTick = 0;

  constructor(dialect: Dialect, clock: Clock) {
    this.dialect = dialect;
    this.#clock = clock;
  }

  /**
   * Returns a text that changes with every write to the database by any process. `undefined` if the database does
   * not support this.
   */
  version(): MaybePromise<string | undefined> {
    return undefined;
  }

  /** Reads with statements that may see different states of the database. The work may be repeated. */
  abstract query<Result>(work: () => Work<Result>): MaybePromise<Result>;

  /** Reads with statements that see one state of the database. The work may be repeated. */
  abstract snapshot<Result>(work: () => Work<Result>): MaybePromise<Result>;

  /**
   * Runs the work in one transaction. The work may be repeated from the start, but if the promise resolves, it has
   * taken effect once. It may throw a fault only before its first change. `bytes` is the approximate size of what
   * it writes. Default: 0.
   */
  abstract transact<Result>(work: () => Work<Result>, bytes?: number): Promise<Result>;

  /**
   * Returns the time in microseconds. In one process, each call returns a greater value. It orders runs by the time
   * at which they became ready.
   */
  tick(): number {
    this.#lastTick = Math.max(this.#lastTick + 1, this.#clock.now() * 1_000);
    return this.#lastTick;
  }

  /** Calls the listeners in microtasks. */
  announce(change: StoreChange): void {
    for (const tell of this.listeners) queueMicrotask(() => tell(change));
  }

  find(runId: RunId): Work<RunKey | undefined> {
    return get<RunKey>(keyOfRun, runId);
  }

  /** S6: returns the key of a run. Throws `not_found` if the run does not exist in the scope. */
  *run(runId: RunId, scope?: TenantScope): Work<RunKey> {
    const key = yield* this.find(runId);
    if (key === undefined || !isInScope(key, scope)) throw missingRun(runId);
    return key;
  }

  /** Returns the run if this store believes that the lease is the current one. */
  known({ runId, epoch, workerId }: Lease): Owned | undefined {
    const known = this.owned.get(runId);
    return known?.epoch === epoch && known.workerId === workerId ? known : undefined;
  }

  /**
   * J3: returns the run if the lease is the current one. If this store knows the lease, it answers from memory,
   * otherwise from the database.
   */
  *owner(lease: Lease): Work<Owned> {
    return this.known(lease) ?? (yield* this.ownerNow(lease));
  }

  /** J3: returns the run if the lease is the current one according to the database. Otherwise throws `lease_lost`. */
  *ownerNow(lease: Lease): Work<Owned> {
    const { runId, epoch, workerId } = lease;
    const row = yield* get<RunKey & { readonly epoch: number; readonly owner: string | null }>(
      keyAndOwner,
      runId,
    );
    if (row === undefined || row.epoch !== epoch || row.owner !== workerId) {
      if (this.known(lease) !== undefined) this.owned.delete(runId);
      throw new Fault("lease_lost", `worker ${workerId} does not own ${runId} at epoch ${epoch} any more`, {
        details: { runId, epoch, now: row?.epoch ?? null },
      });
    }
    const known = this.known(lease);
    if (known !== undefined) return known;
    const { id, agentId, sessionId, tenantId, userId, flowText } = row;
    // The members that a dialect adds are optional.
    const owned = { id, runId, agentId, sessionId, tenantId, userId, flowText, epoch, workerId } as Owned;
    this.owned.set(runId, owned);
    return owned;
  }
}
