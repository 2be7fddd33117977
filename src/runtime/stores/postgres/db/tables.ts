import {
  Fault,
  isInScope,
  missingRun,
  type Clock,
  type Lease,
  type RunId,
  type StoreChange,
  type TenantScope,
} from "../../../../kernel/index.ts";
import type { Position } from "../../codec/commit-draft.ts";
import type { RunKey } from "../../codec/stored-run.ts";
import type { Database } from "./database.ts";
import type { Queries } from "./queries.ts";
import { runKeyColumns } from "./run-row.ts";
import type { Registration } from "./worker-beats.ts";

/**
 * A run that this store owns, as far as it knows. Only the owner appends commits, and every commit is fenced by epoch and
 * owner. Therefore the position is correct as long as commits succeed.
 */
export interface OwnedRun extends RunKey {
  readonly epoch: number;
  readonly workerId: string;
  /** The registration of the worker under which it certainly owned the run. */
  registration?: Registration | undefined;
  position?: Position | undefined;
  /** Place of the last mail that a poll has announced. */
  announcedMail?: number;
}

export interface TablesOptions {
  readonly database: Database;
  readonly clock: Clock;
}

const keyOfRun = `SELECT ${runKeyColumns} FROM {runs} WHERE run_id = $1`;
const keyAndOwner = `SELECT ${runKeyColumns}, epoch, owner FROM {runs} WHERE run_id = $1`;

/** Data and operations that the contracts of the PostgreSQL store share. */
export class Tables {
  readonly database: Database;
  /** The runs that this store owns. */
  readonly owned = new Map<RunId, OwnedRun>();
  readonly listeners = new Set<(change: StoreChange) => void>();
  readonly #clock: Clock;
  #lastTick = 0;

  constructor({ database, clock }: TablesOptions) {
    this.database = database;
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

  find(queries: Queries, runId: RunId): Promise<RunKey | undefined> {
    return queries.get<RunKey>(keyOfRun, runId);
  }

  /** S6: returns the key of a run. Rejects with `not_found` if the run does not exist in the scope. */
  async run(queries: Queries, runId: RunId, scope?: TenantScope): Promise<RunKey> {
    const key = await this.find(queries, runId);
    if (key === undefined || !isInScope(key, scope)) throw missingRun(runId);
    return key;
  }

  /**
   * J3: returns the run if the lease is current, from memory if this store knows the lease, otherwise from the database.
   */
  async owner(queries: Queries, lease: Lease): Promise<OwnedRun> {
    return this.known(lease) ?? (await this.ownerNow(queries, lease));
  }

  /** Returns the run if this store believes that the lease is current. */
  known({ runId, epoch, workerId }: Lease): OwnedRun | undefined {
    const known = this.owned.get(runId);
    return known?.epoch === epoch && known.workerId === workerId ? known : undefined;
  }

  /** J3: returns the run if the database says that the lease is current. Rejects with `lease_lost`. */
  async ownerNow(queries: Queries, lease: Lease): Promise<OwnedRun> {
    const { runId, epoch, workerId } = lease;
    const row = await queries.get<RunKey & { readonly epoch: number; readonly owner: string | null }>(
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
    const { id, agentId, sessionId, tenantId, userId } = row;
    const owned: OwnedRun = { id, runId, agentId, sessionId, tenantId, userId, epoch, workerId };
    this.owned.set(runId, owned);
    return owned;
  }
}
