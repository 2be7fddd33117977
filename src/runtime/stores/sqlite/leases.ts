import { setImmediate } from "node:timers/promises";
import type { ClaimOptions, HostedAgent, Lease, Leases, Rest, RunId } from "../../../kernel/index.ts";
import type { DeltaBoard } from "./delta-board.ts";
import { runKeyColumns, RunState, type RunKey } from "./run-row.ts";
import type { Tables } from "./tables.ts";
import type { WorkerLocks } from "./worker-lock.ts";

/** At most so many runs of a worker that is gone, and so many whose time has come, become ready in one claim. */
const mostWoken = 256;

interface ReadyRun {
  readonly id: number;
  readonly priority: number;
  readonly readyAt: number;
}

interface Taken extends RunKey {
  readonly epoch: number;
}

/** What is asked of the ready runs of an agent. */
class ReadyQueries {
  readonly any: string;
  readonly nextTenant: string;
  readonly best: string;

  constructor(but: string) {
    const ready = `FROM runs WHERE state = ${RunState.READY} AND agent_id = ? AND (? OR agent_version IS ?) ${but}`;
    this.any = `SELECT 1 ${ready} LIMIT 1`;
    this.nextTenant = `SELECT tenant ${ready} AND tenant > ? ORDER BY tenant LIMIT 1`;
    this.best = `SELECT id, priority, ready_at AS readyAt ${ready} AND tenant = ? ORDER BY priority DESC, ready_at LIMIT 1`;
  }
}

const allReady = new ReadyQueries("");
/** To look into a list takes longer than all the rest, and most often it is empty. */
const allReadyBut = new ReadyQueries("AND run_id NOT IN (SELECT value FROM json_each(?))");

/** An agent whose runs are wanted, but for some. */
class ReadyAgent {
  readonly agentId: HostedAgent["agentId"];
  readonly queries: ReadyQueries;
  /** What its runs are compared with. */
  readonly values: readonly (string | number | null)[];

  /** `others`: those that are not wanted, as JSON, if there are any. */
  constructor({ agentId, version }: HostedAgent, others: string | undefined) {
    this.agentId = agentId;
    this.queries = others === undefined ? allReady : allReadyBut;
    const values = [agentId, version === undefined ? 1 : 0, version ?? null];
    this.values = others === undefined ? values : [...values, others];
  }
}

const nextReadyAgent = `SELECT agent_id AS agentId FROM runs WHERE state = ${RunState.READY} AND agent_id > ? ORDER BY agent_id LIMIT 1`;
const takeRun = (which: string): string =>
  `UPDATE runs SET epoch = epoch + 1, owner = ?1, holder = ?3, state = ${RunState.OWNED}, wake_at = NULL
   WHERE ${which} RETURNING ${runKeyColumns}, epoch`;
const takeReady = takeRun("id = ?2");
const seizeAny = takeRun(`run_id = ?2 AND state <> ${RunState.ENDED}`);

export class SqliteLeases implements Leases {
  readonly #tables: Tables;
  readonly #locks: WorkerLocks;
  readonly #deltas: DeltaBoard;
  /** L5: the tenant served last by this process; the next in order has its turn. */
  #lastTenant = "";

  constructor(tables: Tables, locks: WorkerLocks, deltas: DeltaBoard) {
    this.#tables = tables;
    this.#locks = locks;
    this.#deltas = deltas;
  }

  /** Whoever had the name before is gone, or the lock could not be had: the runs of that one are left behind. */
  async enlist(workerId: string): Promise<void> {
    if (!(await this.#locks.take(workerId))) return;
    while ((await this.#tables.write({ apply: () => this.#leaveBehind(workerId) })) > 0) await setImmediate();
  }

  async dismiss(workerId: string): Promise<void> {
    this.#locks.drop(workerId);
    this.#tables.announce();
  }

  async claim(options: ClaimOptions): Promise<readonly Lease[]> {
    const gone = await this.#tables.read(() => this.#gone());
    // Most who look find nothing: they need not wait for the right to write.
    if (gone.length === 0 && !(await this.#tables.read(() => this.#hasReady(options)))) return [];
    return this.#tables
      .write({
        apply: () => {
          for (const workerId of gone) this.#leaveBehind(workerId);
          if (this.#isAnyoneDue(options.now)) this.#wake(options.now);
          return this.#serve(options);
        },
        committed: (runs) => {
          for (const run of runs) this.#note(run, options.workerId);
        },
      })
      .then((runs) => runs.map(({ runId, epoch }) => ({ runId, epoch, workerId: options.workerId })));
  }

  async seize(runId: RunId, workerId: string): Promise<Lease | undefined> {
    const run = await this.#tables.write({
      apply: () => this.#take(seizeAny, workerId, runId),
      committed: (found) => {
        if (found === undefined) return;
        this.#note(found, workerId);
        this.#tables.announce(runId);
      },
    });
    return run === undefined ? undefined : { runId, epoch: run.epoch, workerId };
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
      if (!holds) this.#tables.ownerNow(lease);
    });
  }

  release(lease: Lease, rest: Rest): Promise<void> {
    return this.#tables.write({
      apply: () => this.#release(lease, rest),
      committed: () => {
        this.#deltas.forget(lease.runId);
        this.#tables.announce(lease.runId);
      },
    });
  }

  /** Whether a worker is gone whose runs nobody has taken up yet. */
  hasLeftBehind(): boolean {
    return this.#gone().length > 0;
  }

  /** The owners of runs who are gone, each asked once. */
  #gone(): string[] {
    const owners = this.#owners();
    this.#locks.forgetAllBut(new Set(owners));
    return owners.filter((owner) => this.#locks.isGone(owner));
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

  #hasReady(options: ClaimOptions): boolean {
    return this.#isAnyoneDue(options.now) || this.#readyAgents(options).length > 0;
  }

  #isAnyoneDue(now: number): boolean {
    return this.#tables.database.get("SELECT 1 FROM runs WHERE wake_at <= ? LIMIT 1", now) !== undefined;
  }

  /** How many of its runs became ready. */
  #leaveBehind(workerId: string): number {
    const { owned } = this.#tables;
    for (const run of owned.values()) if (run.workerId === workerId) owned.delete(run.runId);
    return this.#tables.database.run(
      `UPDATE runs SET owner = NULL, holder = NULL, state = ${RunState.READY}, ready_at = ?2
       WHERE id IN (SELECT id FROM runs WHERE owner = ?1 LIMIT ${mostWoken})`,
      workerId,
      this.#tables.tick(),
    );
  }

  #wake(now: number): void {
    this.#tables.database.run(
      `UPDATE runs SET state = ${RunState.READY}, ready_at = wake_at * 1000, wake_at = NULL
       WHERE id IN (SELECT id FROM runs WHERE wake_at <= ? ORDER BY wake_at LIMIT ${mostWoken})`,
      now,
    );
  }

  /** L5: one of each tenant, from the one after the last served, and so round again. */
  #serve(options: ClaimOptions): Taken[] {
    const { workerId, limit } = options;
    const served: Taken[] = [];
    const agents = this.#readyAgents(options);
    while (served.length < limit) {
      const tenant = this.#nextTenant(agents, this.#lastTenant) ?? this.#nextTenant(agents, "");
      if (tenant === undefined) break;
      this.#lastTenant = tenant;
      const best = this.#best(agents, tenant);
      const run = best === undefined ? undefined : this.#take(takeReady, workerId, best.id);
      if (run !== undefined) served.push(run);
    }
    return served;
  }

  #readyAgents({ agents, except = [] }: ClaimOptions): readonly ReadyAgent[] {
    const { database } = this.#tables;
    const others = except.length === 0 ? undefined : JSON.stringify(except);
    if (agents !== undefined) {
      return agents
        .map((hosted) => new ReadyAgent(hosted, others))
        .filter(({ queries, values }) => database.get(queries.any, ...values) !== undefined);
    }
    const all: ReadyAgent[] = [];
    for (;;) {
      const next = database.get<HostedAgent>(nextReadyAgent, all.at(-1)?.agentId ?? "");
      if (next === undefined) return all;
      all.push(new ReadyAgent(next, others));
    }
  }

  #nextTenant(agents: readonly ReadyAgent[], after: string): string | undefined {
    let first: string | undefined;
    for (const { queries, values } of agents) {
      const row = this.#tables.database.get<{ readonly tenant: string }>(
        queries.nextTenant,
        ...values,
        after,
      );
      if (row !== undefined && (first === undefined || isBefore(row.tenant, first))) first = row.tenant;
    }
    return first;
  }

  #best(agents: readonly ReadyAgent[], tenant: string): ReadyRun | undefined {
    let best: ReadyRun | undefined;
    for (const { queries, values } of agents) {
      const run = this.#tables.database.get<ReadyRun>(queries.best, ...values, tenant);
      if (run !== undefined && (best === undefined || comesBefore(run, best))) best = run;
    }
    return best;
  }

  /** L1. What a former owner was showing is void. */
  #take(sql: string, workerId: string, which: string | number): Taken | undefined {
    const { database, holder } = this.#tables;
    const run = database.get<Taken>(sql, workerId, which, holder);
    if (run === undefined) return undefined;
    this.#tables.owned.delete(run.runId);
    database.run("DELETE FROM deltas WHERE run = ?", run.id);
    return run;
  }

  /** L3: mail that was not consumed makes it ready. */
  #release(lease: Lease, rest: Rest): void {
    const { database } = this.#tables;
    const { id, epoch, workerId } = this.#tables.owner(lease);
    const isReady =
      rest.kind === "ready" || database.get("SELECT 1 FROM mail WHERE run = ? LIMIT 1", id) !== undefined;
    const left = rest.kind === "ended" ? RunState.ENDED : RunState.SUSPENDED;
    const state = isReady ? RunState.READY : left;
    const released = database.run(
      `UPDATE runs SET owner = NULL, holder = NULL, state = ?2, wake_at = ?3, ready_at = ?4
       WHERE id = ?1 AND epoch = ?5 AND owner = ?6`,
      id,
      state,
      state === RunState.SUSPENDED && rest.kind === "suspended" ? rest.wakeAt : null,
      this.#tables.tick(),
      epoch,
      workerId,
    );
    // Says that it is lost.
    if (released === 0) this.#tables.ownerNow(lease);
    this.#tables.owned.delete(lease.runId);
    if (rest.kind !== "ended") return;
    database.run("DELETE FROM deltas WHERE run = ?", id);
    database.run(
      "UPDATE runs SET ended = 0, ended_at = ?2 WHERE id = ?1 AND ended IS NULL",
      id,
      Math.floor(this.#tables.tick() / 1_000),
    );
  }

  #note({ id, runId, agentId, sessionId, epoch }: Taken, workerId: string): void {
    this.#tables.owned.set(runId, { id, runId, agentId, sessionId, epoch, workerId });
    this.#deltas.forget(runId);
  }
}

function comesBefore(one: ReadyRun, other: ReadyRun): boolean {
  if (one.priority !== other.priority) return one.priority > other.priority;
  return one.readyAt < other.readyAt;
}

/** In SQLite's order of texts, which is not that of JavaScript. */
function isBefore(one: string, other: string): boolean {
  return Buffer.compare(Buffer.from(one), Buffer.from(other)) < 0;
}
