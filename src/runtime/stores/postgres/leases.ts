import {
  type AgentId,
  type ClaimOptions,
  type EnlistOptions,
  Fault,
  type Lease,
  type Leases,
  type LostOwner,
  type ReadyOptions,
  type Rest,
  type RunId,
  type RunRecord,
  type RunSpend,
  runStatuses,
  startsLater,
  takesRun,
} from "../../../kernel/index.ts";
import { leaseOf, type RunKey, RunState, spendText, type TakenRun } from "../codec/stored-run.ts";
import { ownedRun } from "../owned-run.ts";
import type { RunEnd } from "../run-end.ts";
import type { Queries } from "./db/queries.ts";
import { isChanged, isExcluded, runKeyColumns } from "../sql/run-row.ts";
import type { OwnedRun, Tables } from "./db/tables.ts";
import type { Transaction } from "./db/transaction.ts";
import { WorkerBeats, type Registration } from "../worker-beats.ts";
import { beatTable, isBeating } from "./db/beat-table.ts";
import { randomInt } from "node:crypto";
import { systemClock, systemEventLoop } from "../../process/system-sources.ts";
import { hasEnded } from "./db/worker-process.ts";
import {
  deadOwners,
  goneOwners,
  knownEnds,
  recoverDead,
  recoverEnded,
  recoverFormer,
  recoveriesNow,
} from "./dead-workers.ts";
import { admitDueRuns, atOnce, checkTime, gateLocks, leaveGates, storeOwnedFlow } from "../sql/flow-queue.ts";
import { freeHeldRuns } from "../sql/held-runs.ts";
import { get, type Work } from "../sql/work.ts";
import { hasDueRun, readyAgents, readyRunIds, wakeDueRuns, wantedAgents } from "./ready-runs.ts";
import { Turns } from "./ready-turns.ts";
import { sessionLock } from "../sql/session-rows.ts";
import type { DeltaBoard } from "./tail/delta-board.ts";

/** A transaction that claimed runs for a worker if it has committed, which is not known. */
interface Doubt {
  readonly workerId: string;
  /** The server's id of the transaction. */
  readonly transaction: string;
  readonly runs: readonly { readonly runId: RunId; readonly epoch: number }[];
}

const outcome = "SELECT pg_xact_status($1::xid8) AS status";
/**
 * SQL that frees the stray runs of a worker. A run has the given epoch only if the transaction that claimed it has
 * committed.
 */
const free = `UPDATE {runs} AS runs SET owner = NULL, state = ${RunState.READY}, ready_at = $2, wake_at = ${checkTime}, ${isChanged}
  FROM unnest($3::text[], $4::bigint[]) AS stray (run_id, epoch)
  WHERE runs.run_id = stray.run_id AND runs.epoch = stray.epoch AND owner = $1`;

/** Stray runs, which a claim may have taken although its commit got no answer. */
class StrayRuns {
  readonly #tables: Tables;
  readonly #doubts = new Set<Doubt>();

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  note(doubt: Doubt): void {
    if (doubt.runs.length > 0) this.#doubts.add(doubt);
  }

  /** Makes the stray runs of a worker ready. It does not change a run that another claim of the worker has taken. */
  async free(workerId: string): Promise<void> {
    const { statements } = this.#tables.database;
    for (const doubt of this.#doubts) {
      if (doubt.workerId !== workerId) continue;
      const { transaction, runs } = doubt;
      const status = (await statements.get<{ readonly status: string | null }>(outcome, transaction))?.status;
      // The server has not noticed yet that the connection is lost. The next claim asks again.
      if (status === "in progress") continue;
      const [runIds, epochs] = [runs.map(({ runId }) => runId), runs.map(({ epoch }) => epoch)];
      if (status === "committed") await statements.run(free, workerId, this.#tables.tick(), runIds, epochs);
      this.#doubts.delete(doubt);
    }
  }
}

/** What a claim will probably find, read before its transaction. */
interface Outlook {
  /** Dead workers that still own runs. */
  readonly gone: readonly string[];
  readonly isAnyoneDue: boolean;
  /** Agents that have ready runs. */
  readonly ready: readonly AgentId[];
}

/** A run that an engine asks for by its id. */
interface OneRun {
  readonly id: number;
  readonly agentId: AgentId;
  readonly agentVersion: string | null;
  readonly runId: RunId;
  readonly owner: string | null;
  /** L21: the machine whose workers may claim the run. `null` if any worker may. */
  readonly host: string | null;
  /** Whether the lease of the owner is valid. */
  readonly isAlive: boolean;
  /** The registration of the owner, with the process that made it. `null` if there is none. */
  readonly incarnation: number | null;
  readonly process: string | null;
}

const none: readonly Lease[] = [];

/** L17: SQL condition that limits of the runs for which an engine asks must be checked. */
const queuedOnly = `SELECT 1 FROM {runs} WHERE run_id = ANY($1::text[]) AND gate IS NOT NULL AND wake_at <= $2 LIMIT 1`;

const look = `SELECT ARRAY(${deadOwners}) AS gone, ${hasDueRun} AS "isAnyoneDue", ARRAY(${readyAgents}) AS ready`;
const findOnly = `SELECT runs.id, run_id AS "runId", agent_id AS "agentId", agent_version AS "agentVersion", owner, host,
    incarnation, process, coalesce(${isBeating}, false) AS "isAlive"
  FROM unnest($1::text[]) WITH ORDINALITY AS wanted (name, index) JOIN {runs} AS runs ON run_id = wanted.name
    LEFT JOIN {workers} ON worker_id = owner
  WHERE state = ${RunState.READY} OR owner IS NOT NULL
    OR (gate IS NULL AND (wake_at <= $2 OR ($3 AND state = ${RunState.SUSPENDED})))
  ORDER BY wanted.index`;

/** Returns SQL that takes runs. L1: it skips a row that another worker is about to take. */
const takeRun = (which: string): string =>
  `UPDATE {runs} AS runs SET epoch = epoch + 1, owner = $1, state = ${RunState.OWNED}, wake_at = NULL, ${isChanged}
   WHERE id = (SELECT id FROM {runs} WHERE ${which})
   RETURNING ${runKeyColumns}, epoch, ${recoveriesNow} AS recoveries, lost, lost_at AS "lostAt", gate`;
const takeReady = takeRun(`id = $2 AND state = ${RunState.READY} FOR UPDATE SKIP LOCKED`);
const takeDue = takeRun(`id = $2 AND owner IS NULL AND state <> ${RunState.ENDED} FOR UPDATE SKIP LOCKED`);
const seizeAny = takeRun(`run_id = $2 AND state <> ${RunState.ENDED} FOR UPDATE`);

const isAnyoneWaiting = `SELECT 1 WHERE EXISTS (SELECT 1 FROM {runs} WHERE state = ${RunState.READY})
  OR EXISTS (SELECT 1 FROM {runs} WHERE wake_at <= $1)`;
const nextWake = "SELECT wake_at AS at FROM {runs} WHERE wake_at > $1 ORDER BY wake_at LIMIT 1";
const countWaiting = `SELECT count(*)::int AS count FROM (SELECT 1 FROM {runs} WHERE state = ${RunState.READY}
  UNION ALL SELECT 1 FROM {runs} WHERE wake_at <= $1 AND gate IS NULL LIMIT $2) AS waiting`;
const isOwner = "SELECT 1 FROM {runs} WHERE run_id = $1 AND epoch = $2 AND owner = $3";

const lockOwned = `SELECT 1 FROM {runs} WHERE id = $1 AND epoch = $2 AND owner = $3 FOR NO KEY UPDATE`;
const mailOfRun = `SELECT EXISTS (SELECT 1 FROM {mail} WHERE run = $1) AS waits,
  EXISTS (SELECT 1 FROM {mail_ids} WHERE run = $1) AS had, ${isExcluded} AS "isHeld", gate IS NOT NULL AS "isQueued" FROM {runs} AS runs WHERE id = $1`;
const releaseRun = (more: string): string =>
  `UPDATE {runs} SET owner = NULL, state = $2, wake_at = $3, ready_at = $4, ${isChanged} ${more} WHERE id = $1`;
/**
 * L7: SQL that sets the number of recoveries to zero, because the run was released. Not used if the run was not
 * even loaded.
 */
const inOrder = ", recoveries = 0, lost = NULL";
const releaseUnloaded = releaseRun("");
const releaseAsItIs = releaseRun(inOrder);
const releaseEnded = releaseRun(`${inOrder}, ended = $5, ended_at = $6, spent = coalesce($7, spent)`);
/** SQL that marks a run as ended whose owner released it as ended although no commit contains `run_end`. */
const endUntold = `UPDATE {runs} SET ended = 0, ended_at = $2, ${isChanged} WHERE id = $1 AND ended IS NULL`;

export interface PostgresLeasesOptions {
  readonly tables: Tables;
  readonly deltas: DeltaBoard;
  /** Time after its last sign of life after which a worker of this store counts as dead, in milliseconds. */
  readonly leaseMs: number;
}

export class PostgresLeases implements Leases {
  readonly #tables: Tables;
  readonly #deltas: DeltaBoard;
  readonly #beats: WorkerBeats;
  readonly #turns = new Turns();
  readonly #onLost = new Map<string, NonNullable<EnlistOptions["onLost"]>>();
  readonly #strays: StrayRuns;

  constructor({ tables, deltas, leaseMs }: PostgresLeasesOptions) {
    this.#tables = tables;
    this.#deltas = deltas;
    this.#strays = new StrayRuns(tables);
    const onLost = (workerId: string): void => {
      // `onLost` of the worker got the fault, or the next claim rejects with it.
      this.#keep(workerId).catch(() => undefined);
    };
    const { database } = tables;
    this.#beats = new WorkerBeats({
      table: beatTable(database, leaseMs),
      clock: systemClock,
      eventLoop: systemEventLoop,
      every: (ms, call) => {
        const timer = setInterval(call, ms).unref();
        return () => clearInterval(timer);
      },
      incarnation: () => randomInt(2 ** 47),
      leaseMs,
      onLost,
      onHeld: (workerId, isHeld) =>
        void (isHeld ? database.workers.add(workerId) : database.workers.delete(workerId)),
    });
    tables.goneOwners = async () => {
      const found = await goneOwners(tables.database.statements);
      return found.filter((owner) => !this.#beats.holds(owner));
    };
  }

  /** L6: registers a worker and makes the runs of a former worker of this name ready. */
  async enlist(workerId: string, { onLost }: EnlistOptions = {}): Promise<void> {
    if (onLost !== undefined) this.#onLost.set(workerId, onLost);
    const former = await this.#beats.take(workerId);
    if (former === undefined) return;
    const recover = (): Promise<number> =>
      this.#tables.database.write((transaction) =>
        recoverFormer(this.#tables, transaction, workerId, former),
      );
    while ((await recover()) > 0);
  }

  async dismiss(workerId: string): Promise<void> {
    this.#onLost.delete(workerId);
    await this.#beats.drop(workerId);
    await this.#tables.database.write(async (transaction) => transaction.announce({ kind: "worker" }));
  }

  async claim(options: ClaimOptions): Promise<readonly Lease[]> {
    const { workerId, now, only } = options;
    this.#beats.refuseWrongClock();
    await this.#keep(workerId);
    await this.#strays.free(workerId);
    if (only !== undefined) return this.#claimOnly(options, only);
    const seen = await this.#look(this.#tables.database.statements, now);
    // Most claims find nothing and need no transaction.
    if (!(seen.isAnyoneDue || seen.gone.length > 0 || seen.ready.length > 0)) return none;
    return this.#take(workerId, async (transaction) => {
      if (seen.isAnyoneDue) await transaction.do(admitDueRuns(now, () => this.#tables.tick()));
      for (const owner of seen.gone) await recoverDead(this.#tables, transaction, { workerId: owner });
      if (seen.isAnyoneDue) await wakeDueRuns(transaction, now);
      const woke = seen.isAnyoneDue || seen.gone.length > 0;
      const { ready } = woke ? await this.#look(transaction, now) : seen;
      return this.#serve(transaction, options, ready);
    });
  }

  async nextWakeAt(now: number): Promise<number | null> {
    return (await this.#tables.database.statements.get<{ readonly at: number }>(nextWake, now))?.at ?? null;
  }

  isConfirmed(workerId: string): boolean {
    return this.#beats.isFresh(workerId);
  }

  async countReady(now: number, limit: number): Promise<number> {
    const { statements } = this.#tables.database;
    return (await statements.get<{ readonly count: number }>(countWaiting, now, limit))?.count ?? 0;
  }

  haveEnded(owners: readonly LostOwner[]): Promise<readonly boolean[]> {
    return knownEnds(this.#tables.database.statements, owners);
  }

  findReady(options: ReadyOptions): Promise<readonly RunId[]> {
    return readyRunIds(this.#tables.database.statements, options);
  }

  async #look(queries: Queries, now: number): Promise<Outlook> {
    const seen = await queries.get<Outlook>(look, now);
    const { gone = [], isAnyoneDue = false, ready = [] } = seen ?? {};
    // A worker of this process is alive, even if its beats were late and no other worker has noticed.
    return { gone: gone.filter((owner) => !this.#beats.holds(owner)), isAnyoneDue, ready };
  }

  /** L10: claims the ready ones among the given runs, in the given order. */
  async #claimOnly(options: ClaimOptions, only: readonly RunId[]): Promise<readonly Lease[]> {
    const { workerId, limit, now, agents, except, takeOver, host } = options;
    const wanted = [...new Set(only)].filter((runId) => except?.includes(runId) !== true);
    const mayTake = (run: OneRun): boolean => {
      const { owner, isAlive, runId } = run;
      // A worker of this process is alive, even if its beats were late and no other worker has noticed.
      if (owner === null || !(isAlive || this.#beats.holds(owner))) return true;
      if (takeOver === undefined) return false;
      if (takeOver.ended && !this.#beats.holds(owner) && hasEnded(run.process)) return true;
      throw ownedRun(runId, owner);
    };
    const find = async (queries: Queries): Promise<readonly OneRun[]> => {
      const isAnySuspended = takeOver?.suspended === true;
      const found = await queries.all<OneRun>(findOnly, wanted, now, isAnySuspended);
      return found
        .filter((run) => agents === undefined || takesRun(agents, run))
        .filter((run) => host === undefined || (run.host ?? host) === host)
        .filter(mayTake);
    };
    const { statements } = this.#tables.database;
    const isAnyQueued = (await statements.get(queuedOnly, wanted, now)) !== undefined;
    if (!isAnyQueued && (await find(statements)).length === 0) return none;
    return this.#take(workerId, async (transaction) => {
      if (isAnyQueued) await transaction.do(admitDueRuns(now, () => this.#tables.tick(), wanted));
      const taken: TakenRun[] = [];
      for (const { id, runId, owner, isAlive, incarnation } of await find(transaction)) {
        if (taken.length >= limit) break;
        if (owner !== null && isAlive && incarnation !== null)
          await recoverEnded(this.#tables, transaction, { workerId: owner, incarnation, id });
        else if (owner !== null) await recoverDead(this.#tables, transaction, { workerId: owner, id });
        const run = await this.#takeOne(transaction, takeDue, workerId, id);
        if (run !== undefined) taken.push(run);
        // Another worker was faster, or the owner has sent a beat.
        else if (takeOver !== undefined) throw ownedRun(runId, owner ?? "that took it first");
      }
      return taken;
    });
  }

  async #take(
    workerId: string,
    work: (transaction: Transaction) => Promise<readonly TakenRun[]>,
  ): Promise<readonly Lease[]> {
    const registration = this.#beats.registration(workerId);
    const runs = await this.#tables.database.write(work, (transaction, taken) =>
      this.doubt({ workerId, transaction, runs: taken }),
    );
    for (const run of runs) this.#note(run, workerId, registration);
    return runs.map((run) => leaseOf(run, workerId));
  }

  /** Records that a transaction with an unknown outcome may have claimed runs for a worker. */
  doubt(doubt: Doubt): void {
    this.#strays.note(doubt);
  }

  /** L12: notifies the worker if its registration was lost. */
  async #keep(workerId: string): Promise<void> {
    try {
      await this.#beats.keep(workerId);
    } catch (error) {
      const onLost = this.#onLost.get(workerId);
      const fault = Fault.from(error);
      const isFinal = fault.code !== "store_unavailable";
      if (isFinal) this.#onLost.delete(workerId);
      onLost?.(fault);
      if (isFinal || onLost === undefined) throw fault;
    }
  }

  async seize(runId: RunId, workerId: string): Promise<Lease | undefined> {
    const registration = this.#beats.registration(workerId);
    const run = await this.#tables.database.write(async (transaction) => {
      const taken = await this.#takeOne(transaction, seizeAny, workerId, runId);
      if (taken !== undefined) transaction.announce({ kind: "seized", runId });
      return taken;
    });
    if (run === undefined) return undefined;
    this.#note(run, workerId, registration);
    return leaseOf(run, workerId);
  }

  /**
   * J3: checks a lease. It answers from memory while the last confirmed sign of life of the worker is so recent
   * that no other worker can have taken over the run. `seize` does not wait for this, but notifies the process of
   * the owner. After a lost registration, the database is queried for each run.
   */
  async check(lease: Lease): Promise<void> {
    const { runId, epoch, workerId } = lease;
    const registration = this.#beats.registration(workerId);
    const known = this.#tables.known(lease);
    if (known !== undefined && known.registration === registration && this.#beats.isFresh(workerId)) return;
    const { statements } = this.#tables.database;
    const row = await statements.get(isOwner, runId, epoch, workerId);
    if (row === undefined) await statements.do(this.#tables.ownerNow(lease));
    else if (known !== undefined) known.registration = registration;
  }

  async release(lease: Lease, rest: Rest): Promise<void> {
    await this.#tables.database.write(async (transaction) => {
      const run = await transaction.do(this.#tables.owner(lease));
      await transaction.lock(sessionLock(run.sessionId), ...gateLocks(run));
      // Rejects with `lease_lost`.
      if (!(await this.leave(transaction, run, rest))) await transaction.do(this.#tables.ownerNow(lease));
    });
    this.released(lease);
  }

  /**
   * Releases the run inside the journal's transaction, which holds the lock of its session. `end` is how the run
   * ended, and `spent` what it has used, if this is not stored yet. Returns `false` if the lease is lost.
   */
  async leave(
    transaction: Transaction,
    run: OwnedRun,
    rest: Rest,
    { end, spent }: { readonly end?: RunEnd | undefined; readonly spent?: RunSpend | undefined } = {},
  ): Promise<boolean> {
    const { id, runId, epoch, workerId } = run;
    // Mail that arrives later waits for the lock and finds the run released.
    if ((await transaction.get(lockOwned, id, epoch, workerId)) === undefined) return false;
    const now = this.#tables.tick();
    if (rest.kind === "queued") await transaction.do(storeOwnedFlow(run, rest.flow));
    const mail = await transaction.get<{
      readonly waits: boolean;
      readonly had: boolean;
      readonly isHeld: boolean;
      readonly isQueued: boolean;
    }>(mailOfRun, id);
    // L3: unread mail makes the run ready. S5: unless a compaction of its session has to end first.
    const woken = mail?.isHeld === true ? RunState.HELD : RunState.READY;
    const isOver = rest.kind === "ended" || end !== undefined;
    const isLimited = !isOver && mail?.isQueued === true;
    const isQueued = mail?.waits !== true && isLimited;
    const left = mail?.waits === true ? woken : stateOf(rest);
    const state = isQueued ? RunState.QUEUED : left;
    const due = state === RunState.SUSPENDED && "wakeAt" in rest ? rest.wakeAt : null;
    const wakeAt = isLimited && state !== RunState.HELD ? atOnce : due;
    const release = rest.kind === "unloaded" ? releaseUnloaded : releaseAsItIs;
    if (end === undefined) await transaction.run(release, id, state, wakeAt, now);
    else {
      const status = runStatuses.indexOf(end.status);
      await transaction.run(releaseEnded, id, state, wakeAt, now, status, end.at, spendText(spent));
    }
    if (rest.kind === "ended") await this.#deltas.clear(transaction, run);
    if (rest.kind === "ended" && end === undefined)
      await transaction.run(endUntold, id, Math.floor(now / 1_000));
    if (isOver) {
      await transaction.do(freeHeldRuns(run.sessionId, this.#tables.tick()));
      await transaction.do(leaveGates(run));
    }
    if (state !== RunState.ENDED || mail?.had === true) {
      // L17: a claim checks the limits of a queued run.
      const isReady = state === RunState.READY || isQueued;
      transaction.announce({ kind: "released", runId, isReady }, { everywhere: isReady });
    }
    return true;
  }

  /** Called after the release is durable. */
  released(lease: Lease): void {
    if (this.#tables.known(lease) !== undefined) this.#tables.owned.delete(lease.runId);
    this.#deltas.forget(lease.runId);
  }

  /** Returns the current registration of a worker. Read it before the worker owns a run. */
  registration(workerId: string): Registration | undefined {
    return this.#beats.registration(workerId);
  }

  /** L5: whether a claim would select this new run. Call inside the transaction that creates it. */
  *wouldClaim(record: RunRecord, { agents, except, now }: ClaimOptions): Work<boolean> {
    if (startsLater(record) || this.#beats.hasWrongClock) return false;
    const isWanted = agents === undefined || takesRun(agents, record);
    if (!isWanted || except?.includes(record.runId) === true) return false;
    return (yield* get(isAnyoneWaiting, now)) === undefined;
  }

  /** Whether a dead worker still owns runs. */
  async hasLeftBehind(): Promise<boolean> {
    return (await this.#tables.database.statements.get(`${deadOwners} LIMIT 1`)) !== undefined;
  }

  /** L5: claims runs in turn, starting after those that were served last. */
  async #serve(
    transaction: Transaction,
    { workerId, limit, agents, except = [], host }: ClaimOptions,
    ready: readonly AgentId[],
  ): Promise<readonly TakenRun[]> {
    const wanted = wantedAgents(ready, agents);
    const served: TakenRun[] = [];
    const skipped = [...except];
    while (served.length < limit && wanted.length > 0) {
      const next = await this.#turns.next(transaction, wanted, { except: skipped, host });
      if (next === undefined) break;
      const run = await this.#takeOne(transaction, takeReady, workerId, next.id);
      skipped.push(next.runId);
      if (run === undefined) continue;
      this.#turns.note(next);
      served.push(run);
    }
    return served;
  }

  /** L1: claims the run, and deletes the deltas of the former owner. */
  async #takeOne(
    queries: Queries,
    sql: string,
    workerId: string,
    which: string | number,
  ): Promise<TakenRun | undefined> {
    const run = await queries.get<TakenRun>(sql, workerId, which);
    if (run === undefined) return undefined;
    if (run.epoch > 1) await queries.run("DELETE FROM {deltas} WHERE run = $1", run.id);
    return run;
  }

  /** Called after the claim is durable, so that this worker owns the run. */
  #note(run: TakenRun, workerId: string, registration: Registration | undefined): void {
    const { id, runId, agentId, sessionId, tenantId, userId, epoch, flowText = null } = run;
    const key: RunKey = { id, runId, agentId, sessionId, tenantId, userId, flowText };
    this.#tables.owned.set(runId, { ...key, epoch, workerId, registration });
    this.#deltas.forget(runId);
  }

  /** Called when another process has seized the run. */
  forget(runId: RunId): void {
    this.#tables.owned.delete(runId);
  }

  /** Unregisters the workers of this store. */
  close(): Promise<void> {
    return this.#beats.close();
  }
}

function stateOf({ kind }: Rest): number {
  if (kind === "ready" || kind === "queued") return RunState.READY;
  return kind === "ended" ? RunState.ENDED : RunState.SUSPENDED;
}
