import { hostname } from "node:os";
import { setImmediate } from "node:timers/promises";
import {
  andThen,
  Fault,
  runStatuses,
  startsLater,
  takesRun,
  type AgentVersion,
  type ClaimOptions,
  type EnlistOptions,
  type Lease,
  type Leases,
  type LostOwner,
  type MaybePromise,
  type ReadyOptions,
  type Rest,
  type RunId,
  type RunRecord,
  type RunSpend,
} from "../../../kernel/index.ts";
import { ownedRun } from "../owned-run.ts";
import type { RunEnd } from "../run-end.ts";
import {
  type ReadyRuns,
  findReadyRuns,
  hasDueRun,
  mostWoken,
  readyRunIds,
  wakeDueRuns,
} from "./ready-runs.ts";
import { Turns } from "./ready-turns.ts";
import type { DeltaBoard } from "./tail/delta-board.ts";
import { admitDueRuns, atOnce, checkTime, leaveGates, storeOwnedFlow } from "../sql/flow-queue.ts";
import { freeHeldRuns } from "../sql/held-runs.ts";
import { get, type Work } from "../sql/work.ts";
import { isChangedHere, sqliteText } from "./db/dialect.ts";
import { leaseOf, RunState, spendText, type RunKey, type TakenRun } from "../codec/stored-run.ts";
import { isExcluded, runKeyColumns } from "../sql/run-row.ts";
import type { OwnedRun, Tables } from "./db/tables.ts";
import type { WorkerLocks } from "./db/worker-lock.ts";

const lastCommit = "(SELECT max(number) FROM commits WHERE run = runs.id)";

/** L7: SQL for the number of recoveries of a run since its last commit. */
const recoveriesNow = `iif(recoveries > 0 AND recovered_at = ${lastCommit}, recoveries, 0)`;

/** Finds the workers that died while they owned runs, and recovers these runs. */
class DeadWorkers {
  readonly #tables: Tables;
  readonly #locks: WorkerLocks;

  constructor(tables: Tables, locks: WorkerLocks) {
    this.#tables = tables;
    this.#locks = locks;
  }

  /** Returns the dead workers that own runs. */
  find(): string[] {
    const owners = this.#owners();
    this.#locks.forgetAllBut(new Set(owners));
    return owners.filter((owner) => this.#locks.isGone(owner));
  }

  /**
   * L7: makes several runs of a dead worker, or one of them, ready and counts their recovery. Returns their number.
   */
  recover(workerId: string, id: number | null = null): number {
    const { owned } = this.#tables;
    const now = this.#tables.tick();
    // The lock of a worker ends with its process.
    const lost = {
      workerId,
      registration: null,
      host: hostname(),
      at: Math.floor(now / 1_000),
      hasEnded: true,
    };
    for (const run of owned.values())
      if (run.workerId === workerId && (id === null || run.id === id)) owned.delete(run.runId);
    return this.#tables.database.run(
      `UPDATE runs SET owner = NULL, holder = NULL, state = ${RunState.READY}, ready_at = ?2, wake_at = ${checkTime}, ${isChangedHere},
         recoveries_in_all = recoveries_in_all + 1,
         recoveries = iif(recovered_at = ${lastCommit}, recoveries + 1, 1),
         lost = iif(recovered_at = ${lastCommit}, ifnull(lost, ?4), ?4), lost_at = ?5, recovered_at = ${lastCommit}
       WHERE id IN (SELECT id FROM runs WHERE owner = ?1 AND (?3 IS NULL OR id = ?3) LIMIT ${mostWoken})`,
      workerId,
      now,
      id,
      JSON.stringify(lost satisfies LostOwner),
      lost.at,
    );
  }

  #owners(): string[] {
    const owners: string[] = [];
    for (;;) {
      const row = this.#tables.database.get<{ readonly owner: string }>(
        "SELECT owner FROM runs WHERE owner > ? ORDER BY owner LIMIT 1",
        owners.at(-1) ?? "",
      );
      if (row === undefined) return owners;
      owners.push(row.owner);
    }
  }
}

/** The outcome of a release. */
export interface ReleasedRun {
  /** Whether listeners must be notified, because the run is ready, or a caller waits until its mail is consumed. */
  readonly concernsOthers: boolean;
  /** Whether a worker may claim the run now. */
  readonly isReady: boolean;
}

/** What a claim will probably find, read before the transaction. */
interface Outlook {
  /** Dead workers that still own runs. */
  readonly gone: readonly string[];
  readonly isAnyoneDue: boolean;
  readonly ready: ReadyRuns;
}

const none: readonly Lease[] = [];

/** A run that an engine asks for by its id. */
interface OneRun {
  readonly id: number;
  readonly runId: RunId;
  readonly agentId: AgentVersion["agentId"];
  readonly agentVersion: string | null;
  readonly state: number;
  readonly wakeAt: number | null;
  readonly owner: string | null;
  /** L17: the limit in whose queue the run waits. `null` if the run is admitted. */
  readonly gate: string | null;
  /** L21: the machine whose workers may claim the run. `null` if any worker may. */
  readonly host: string | null;
}

const oneRun = `SELECT id, run_id AS runId, agent_id AS agentId, agent_version AS agentVersion, state, wake_at AS wakeAt, owner, gate, host
  FROM runs WHERE run_id = ?`;

function isReadyAt({ state, wakeAt, gate }: OneRun, now: number): boolean {
  return state === RunState.READY || (gate === null && isDue({ wakeAt }, now));
}

function isDue({ wakeAt }: Pick<OneRun, "wakeAt">, now: number): boolean {
  return wakeAt !== null && wakeAt <= now;
}

const takeRun = (which: string): string =>
  `UPDATE runs SET epoch = epoch + 1, owner = ?1, holder = ?3, state = ${RunState.OWNED}, wake_at = NULL, ${isChangedHere}
   WHERE ${which} RETURNING ${runKeyColumns}, epoch,
     ${recoveriesNow} AS recoveries, lost, lost_at AS lostAt, gate`;
const takeReady = takeRun("id = ?2");
const seizeAny = takeRun(`run_id = ?2 AND state <> ${RunState.ENDED}`);

/**
 * SQL that checks whether any run is ready. With the condition `agent_id > ''`, which is always true, SQLite uses
 * the partial index.
 */
const isAnyoneWaiting = `SELECT 1 WHERE EXISTS (SELECT 1 FROM runs WHERE state = ${RunState.READY} AND agent_id > '')
  OR EXISTS (SELECT 1 FROM runs WHERE wake_at <= $1)`;

const countWaiting = `SELECT count(*) AS count FROM (SELECT 1 FROM runs WHERE state = ${RunState.READY}
  UNION ALL SELECT 1 FROM runs WHERE wake_at <= ?1 AND gate IS NULL LIMIT ?2)`;
const nextWake = "SELECT wake_at AS at FROM runs WHERE wake_at > ? ORDER BY wake_at LIMIT 1";

/** SQL that checks whether the run has unread mail. It returns no row if the run never had any mail. */
const mailOfRun = `SELECT EXISTS (SELECT 1 FROM mail WHERE run = ?1) AS waits FROM mail_ids WHERE run = ?1 LIMIT 1`;
const releaseRun = (more: string): string =>
  `UPDATE runs SET owner = NULL, holder = NULL, state = ?4, wake_at = ?5, ready_at = ?6, ${isChangedHere} ${more}
   WHERE id = ?1 AND epoch = ?2 AND owner = ?3`;
/**
 * L7: SQL that sets the number of recoveries to zero, because the run was released. Not used if the run was not
 * even loaded.
 */
const inOrder = ", recoveries = 0, lost = NULL";
const releaseUnloaded = releaseRun("");
const releaseAsItIs = releaseRun(inOrder);
const releaseEnded = releaseRun(`${inOrder}, ended = ?7, ended_at = ?8, spent = ifnull(?9, spent)`);
const excludedRun = sqliteText(`SELECT 1 FROM {runs} WHERE id = $1 AND ${isExcluded}`);
/** SQL that marks a run as ended whose owner released it as ended although no commit contains `run_end`. */
const endUntold = `UPDATE runs SET ended = 0, ended_at = ?2, ${isChangedHere} WHERE id = ?1 AND ended IS NULL`;

export class SqliteLeases implements Leases {
  readonly #tables: Tables;
  readonly #locks: WorkerLocks;
  readonly #deltas: DeltaBoard;
  readonly #deadWorkers: DeadWorkers;
  readonly #turns = new Turns();
  readonly #onLost = new Map<string, NonNullable<EnlistOptions["onLost"]>>();

  constructor(tables: Tables, locks: WorkerLocks, deltas: DeltaBoard) {
    this.#tables = tables;
    this.#locks = locks;
    this.#deltas = deltas;
    this.#deadWorkers = new DeadWorkers(tables, locks);
    tables.goneOwners = () => tables.read(() => this.#deadWorkers.find());
  }

  /**
   * L6: registers a worker. If the worker's lock was free, a former worker of this name is dead, and its runs
   * become ready.
   */
  async enlist(workerId: string, { onLost }: EnlistOptions = {}): Promise<void> {
    if (onLost !== undefined) this.#onLost.set(workerId, onLost);
    if (!(await this.#locks.take(workerId))) return;
    while ((await this.#tables.write({ apply: () => this.#deadWorkers.recover(workerId) })) > 0)
      await setImmediate();
  }

  async dismiss(workerId: string): Promise<void> {
    this.#onLost.delete(workerId);
    this.#locks.drop(workerId);
    this.#tables.announce({ kind: "worker" });
  }

  claim(options: ClaimOptions): MaybePromise<readonly Lease[]> {
    this.#keep(options.workerId);
    const { only } = options;
    if (only !== undefined) return this.#claimOnly(options, only);
    return andThen(
      this.#tables.read(() => this.#look(options)),
      (seen) => this.#claim(options, seen),
    );
  }

  nextWakeAt(now: number): MaybePromise<number | null> {
    return this.#tables.read(
      () => this.#tables.database.get<{ readonly at: number }>(nextWake, now)?.at ?? null,
    );
  }

  isConfirmed(workerId: string): boolean {
    return this.#locks.holds(workerId);
  }

  countReady(now: number, limit: number): MaybePromise<number> {
    return this.#tables.read(
      () => this.#tables.database.get<{ readonly count: number }>(countWaiting, now, limit)?.count ?? 0,
    );
  }

  haveEnded(owners: readonly LostOwner[]): readonly boolean[] {
    return owners.map(({ hasEnded }) => hasEnded);
  }

  findReady(options: ReadyOptions): MaybePromise<readonly RunId[]> {
    return this.#tables.read(() =>
      readyRunIds(this.#tables.database, options, JSON.stringify(this.#deadWorkers.find())),
    );
  }

  #claim(options: ClaimOptions, seen: Outlook): MaybePromise<readonly Lease[]> {
    const { workerId, now } = options;
    const { gone, isAnyoneDue, ready } = seen;
    const wakesSome = gone.length > 0 || isAnyoneDue;
    // Most claims find nothing and need no write lock.
    if (!wakesSome && ready.count === 0) return none;
    return this.#tables
      .write({
        apply: () => {
          if (isAnyoneDue) this.#tables.now(admitDueRuns(now, () => this.#tables.tick()));
          for (const owner of gone) this.#deadWorkers.recover(owner);
          if (isAnyoneDue) wakeDueRuns(this.#tables.database, now);
          return this.#serve(options, wakesSome ? findReadyRuns(this.#tables.database, options) : ready);
        },
        committed: (runs) => {
          for (const run of runs) this.note(run, workerId);
        },
      })
      .then((runs) => runs.map((run) => leaseOf(run, workerId)));
  }

  /** L10: claims the ready ones among the given runs, in the given order. */
  #claimOnly(options: ClaimOptions, only: readonly RunId[]): MaybePromise<readonly Lease[]> {
    const { workerId, limit, now, agents, except, takeOver, host } = options;
    const wanted = [...new Set(only)].filter((runId) => except?.includes(runId) !== true);
    const mayTake = (run: OneRun, gone: ReadonlySet<string>): boolean => {
      const { runId, owner, state, gate } = run;
      if (isReadyAt(run, now)) return true;
      if (owner === null)
        return takeOver?.suspended === true && state === RunState.SUSPENDED && gate === null;
      // The lock of a worker ends with its process, so that a run is never owned by a process that has ended.
      if (takeOver !== undefined && !gone.has(owner)) throw ownedRun(runId, owner);
      return gone.has(owner);
    };
    const find = (): readonly OneRun[] => {
      const gone = new Set(this.#deadWorkers.find());
      return wanted
        .flatMap((runId) => this.#tables.database.get<OneRun>(oneRun, runId) ?? [])
        .filter((run) => agents === undefined || takesRun(agents, run))
        .filter((run) => host === undefined || (run.host ?? host) === host)
        .filter((run) => mayTake(run, gone))
        .slice(0, limit);
    };
    /** L17: finds the runs whose limits must be checked. */
    const findQueued = (): readonly RunId[] =>
      wanted.filter((runId) => {
        const run = this.#tables.database.get<OneRun>(oneRun, runId);
        return run !== undefined && run.gate !== null && isDue(run, now);
      });
    const look = (): { readonly ready: readonly OneRun[]; readonly queued: readonly RunId[] } => ({
      ready: find(),
      queued: findQueued(),
    });
    return andThen(this.#tables.read(look), ({ ready, queued }) => {
      if (ready.length === 0 && queued.length === 0) return none;
      return this.#tables
        .write({
          apply: () => {
            this.#tables.now(admitDueRuns(now, () => this.#tables.tick(), queued));
            return find().flatMap((run) => {
              if (run.owner !== null) this.#deadWorkers.recover(run.owner, run.id);
              return this.#take(takeReady, workerId, run.id) ?? [];
            });
          },
          committed: (runs) => {
            for (const run of runs) this.note(run, workerId);
          },
        })
        .then((runs) => runs.map((run) => leaseOf(run, workerId)));
    });
  }

  /** L12: notifies a worker if its registration was lost. */
  #keep(workerId: string): void {
    try {
      // If the whole store was deleted, its lock files are not created again.
      if (!this.#locks.holds(workerId)) this.#tables.database.verify({ isNew: true });
      this.#locks.keep(workerId);
    } catch (error) {
      const onLost = this.#onLost.get(workerId);
      const fault = Fault.from(error);
      const isFinal = fault.code !== "store_unavailable";
      if (isFinal) this.#onLost.delete(workerId);
      onLost?.(fault);
      if (isFinal || onLost === undefined) throw fault;
    }
  }

  /** L12: notifies workers whose registration was lost and that claim no runs at the moment. */
  keepRegistered(): void {
    for (const workerId of this.#onLost.keys()) this.#keep(workerId);
  }

  /** L12: notifies all workers that the store is lost, and with it their registrations. */
  lose(fault: Fault): void {
    const told = [...this.#onLost.values()];
    this.#onLost.clear();
    for (const onLost of told) onLost(fault);
  }

  async seize(runId: RunId, workerId: string): Promise<Lease | undefined> {
    const run = await this.#tables.write({
      apply: () => this.#take(seizeAny, workerId, runId),
      committed: (found) => {
        if (found === undefined) return;
        this.note(found, workerId);
        this.#tables.announce({ kind: "seized", runId });
      },
    });
    return run === undefined ? undefined : leaseOf(run, workerId);
  }

  async check(lease: Lease): Promise<void> {
    const known = this.#tables.owned.get(lease.runId);
    await this.#tables.read(() => {
      const { database } = this.#tables;
      const holds =
        known !== undefined &&
        database.get(
          "SELECT 1 FROM runs WHERE id = ? AND epoch = ? AND owner = ?",
          known.id,
          lease.epoch,
          lease.workerId,
        ) !== undefined;
      if (!holds) this.#tables.now(this.#tables.ownerNow(lease));
    });
  }

  async release(lease: Lease, rest: Rest): Promise<void> {
    await this.#tables.write({
      apply: () => {
        const run = this.#tables.ownerOf(lease);
        // Throws `lease_lost`.
        return this.leaveNow(run, rest) ?? this.#tables.now(this.#tables.ownerNow(lease));
      },
      committed: (released) => {
        if ("concernsOthers" in released) this.released(lease.runId, released);
      },
    });
  }

  /**
   * Releases the run inside the journal's transaction. `end` is how the run ended, and `spent` what it has used, if
   * this is not stored yet. Returns `undefined` if the lease is lost.
   */
  leaveNow(run: OwnedRun, rest: Rest, end?: RunEnd, spent?: RunSpend): ReleasedRun | undefined {
    const { database } = this.#tables;
    const { id, runId, epoch, workerId } = run;
    const now = this.#tables.tick();
    if (rest.kind === "queued") this.#tables.now(storeOwnedFlow(run, rest.flow));
    const mail = database.get<{ readonly waits: number }>(mailOfRun, id);
    // L3: unread mail makes the run ready. S5: unless a compaction of its session has to end first.
    const isOver = rest.kind === "ended" || end !== undefined;
    const hasFlow = run.flowText != null || rest.kind === "queued";
    const isLimited = !isOver && hasFlow && this.#isQueued(id);
    const isQueued = mail?.waits !== 1 && isLimited;
    const rested = mail?.waits === 1 ? this.#readyState(id) : stateOf(rest);
    const state = isQueued ? RunState.QUEUED : rested;
    const due = state === RunState.SUSPENDED && "wakeAt" in rest ? rest.wakeAt : null;
    const wakeAt = isLimited && state !== RunState.HELD ? atOnce : due;
    const left = [id, epoch, workerId, state, wakeAt, now] as const;
    const count =
      end === undefined
        ? database.run(rest.kind === "unloaded" ? releaseUnloaded : releaseAsItIs, ...left)
        : database.run(releaseEnded, ...left, runStatuses.indexOf(end.status), end.at, spendText(spent));
    if (count === 0) return undefined;
    this.#tables.owned.delete(runId);
    if (rest.kind === "ended") this.#deltas.clearNow(run);
    if (rest.kind === "ended" && end === undefined) database.run(endUntold, id, Math.floor(now / 1_000));
    if (isOver) {
      this.#tables.now(freeHeldRuns(run.sessionId, this.#tables.tick()));
      this.#tables.now(leaveGates(run));
    }
    // L17: a claim checks the limits of a queued run.
    const isReady = state === RunState.READY || isQueued;
    return { concernsOthers: state !== RunState.ENDED || mail !== undefined, isReady };
  }

  /** L17: whether the limits of the run have not admitted it yet. */
  #isQueued(id: number): boolean {
    return (
      this.#tables.database.get("SELECT 1 FROM runs WHERE id = ? AND gate IS NOT NULL", id) !== undefined
    );
  }

  #readyState(id: number): number {
    return this.#tables.database.get(excludedRun, id) === undefined ? RunState.READY : RunState.HELD;
  }

  /** Called after the release is durable. */
  released(runId: RunId, { concernsOthers, isReady }: ReleasedRun): void {
    this.#deltas.forget(runId);
    if (concernsOthers) this.#tables.announce({ kind: "released", runId, isReady });
  }

  /** L5: whether a claim would select this new run. Call inside the transaction that creates it. */
  *wouldClaim(record: RunRecord, { agents, except, now }: ClaimOptions): Work<boolean> {
    if (startsLater(record)) return false;
    const isWanted = agents === undefined || takesRun(agents, record);
    if (!isWanted || except?.includes(record.runId) === true) return false;
    return (yield* get(isAnyoneWaiting, now)) === undefined;
  }

  /** Whether a dead worker still owns runs. */
  hasLeftBehind(): boolean {
    return this.#deadWorkers.find().length > 0;
  }

  #look(options: ClaimOptions): Outlook {
    const { database } = this.#tables;
    return {
      gone: this.#deadWorkers.find(),
      isAnyoneDue: hasDueRun(database, options.now),
      ready: findReadyRuns(database, options),
    };
  }

  /** L5: claims runs in turn, starting after those that were served last. */
  #serve({ workerId }: ClaimOptions, { agents, count }: ReadyRuns): TakenRun[] {
    const served: TakenRun[] = [];
    while (served.length < count) {
      const next = this.#turns.next(this.#tables.database, agents);
      const run = next === undefined ? undefined : this.#take(takeReady, workerId, next.id);
      if (next === undefined || run === undefined) break;
      this.#turns.note(next);
      served.push(run);
    }
    return served;
  }

  /** L1: claims the run, and deletes the deltas of the former owner. */
  #take(sql: string, workerId: string, which: string | number): TakenRun | undefined {
    const { database, holder } = this.#tables;
    const run = database.get<TakenRun>(sql, workerId, which, holder);
    if (run === undefined) return undefined;
    this.#tables.owned.delete(run.runId);
    if (run.epoch > 1) database.run("DELETE FROM deltas WHERE run = ?", run.id);
    return run;
  }

  /** Called after the claim is durable, so that this worker owns the run. */
  note(
    { id, runId, agentId, sessionId, tenantId, userId, flowText, epoch }: TakenRun,
    workerId: string,
  ): void {
    const key: RunKey = { id, runId, agentId, sessionId, tenantId, userId, flowText: flowText ?? null };
    this.#tables.owned.set(runId, { ...key, epoch, workerId });
    this.#deltas.forget(runId);
  }
}

function stateOf({ kind }: Rest): number {
  if (kind === "ready" || kind === "queued") return RunState.READY;
  return kind === "ended" ? RunState.ENDED : RunState.SUSPENDED;
}
