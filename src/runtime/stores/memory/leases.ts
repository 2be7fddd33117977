import {
  attempt,
  takesRun,
  type ClaimOptions,
  type Lease,
  type Leases,
  type LostOwner,
  type ReadyOptions,
  type Rest,
  type RunId,
} from "../../../kernel/index.ts";
import { ownedRun } from "../owned-run.ts";
import { gatesOf } from "../flow-gates.ts";
import { gateOf } from "./flow-queue.ts";
import type { Tables } from "./tables.ts";
import type { RunRow } from "./run-row.ts";

export class MemoryLeases implements Leases {
  readonly #tables: Tables;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  async enlist(workerId: string): Promise<void> {
    if (this.#tables.workers.has(workerId)) return;
    this.#tables.workers.add(workerId);
    // L6: these runs belong to a dead worker of the same name.
    for (const row of this.#ownedBy(workerId)) {
      noteRecovery(row);
      row.owner = null;
      row.rest = ready;
      row.readyAt = this.#tables.tick();
      this.#tables.place(row);
    }
  }

  async dismiss(workerId: string): Promise<void> {
    this.#tables.workers.delete(workerId);
    for (const row of this.#ownedBy(workerId)) this.#tables.place(row);
    this.#tables.announce({ kind: "worker" });
  }

  #ownedBy(workerId: string): readonly RunRow[] {
    return [...this.#tables.runs.values()].filter(({ isLive, owner }) => isLive && owner === workerId);
  }

  claim(options: ClaimOptions): readonly Lease[] {
    const { workerId, limit, now, only, takeOver } = options;
    const { ready: line, runs, flows } = this.#tables;
    if (flows.isDue(now)) flows.admitDue(now);
    if (takeOver !== undefined) this.#refuseOwned(only ?? none, options);
    const woken = takeOver?.suspended === true ? this.#wakeSuspended(only ?? none, options) : none;
    const rows =
      only === undefined
        ? line.take(limit, now, (row) => isWanted(row, options))
        : line.takeThese(
            only.flatMap((runId) => runs.get(runId) ?? none),
            limit,
            now,
            (row) => isWanted(row, options),
          );
    for (const row of woken) if (!rows.includes(row)) this.#tables.place(row);
    return rows.length === 0 ? none : rows.map((row) => this.#claim(row, workerId));
  }

  /** L15: throws `run_owned` if a live worker owns one of these runs. */
  #refuseOwned(runIds: readonly RunId[], options: ClaimOptions): void {
    const { runs, workers } = this.#tables;
    for (const runId of runIds) {
      const row = runs.get(runId);
      if (row?.isLive !== true || row.owner === null || !isWanted(row, options)) continue;
      if (workers.has(row.owner)) throw ownedRun(runId, row.owner);
    }
  }

  /** L15: makes the suspended runs among the given runs ready. */
  #wakeSuspended(runIds: readonly RunId[], options: ClaimOptions): readonly RunRow[] {
    const { runs, ready: line } = this.#tables;
    const rows = runIds
      .flatMap((runId) => runs.get(runId) ?? none)
      .filter(
        (row) =>
          row.line === undefined &&
          row.isLive &&
          !row.isHeld &&
          gateOf(row) === undefined &&
          isWanted(row, options),
      );
    for (const row of rows) line.add(row);
    return rows;
  }

  async seize(runId: RunId, workerId: string): Promise<Lease | undefined> {
    const row = this.#tables.runs.get(runId);
    if (row === undefined || !row.isLive) return undefined;
    const lease = this.#take(row, workerId);
    this.#tables.announce({ kind: "seized", runId });
    return lease;
  }

  async check(lease: Lease): Promise<void> {
    this.#tables.owned(lease);
  }

  release(lease: Lease, rest: Rest): Promise<never> | undefined {
    return attempt(() => this.#release(lease, rest));
  }

  nextWakeAt(now: number): number | null {
    const { ready: line, flows } = this.#tables;
    const [one, other] = [line.nextWakeAt(now), flows.nextWakeAt(now)];
    return one === null || other === null ? (one ?? other) : Math.min(one, other);
  }

  isConfirmed(workerId: string): boolean {
    return this.#tables.workers.has(workerId);
  }

  countReady(now: number, limit: number): number {
    return Math.min(limit, this.#tables.ready.count(now));
  }

  /**
   * Returns whether the processes of these owners have ended. In a memory store, a worker is lost only when its
   * registration is removed.
   */
  haveEnded(owners: readonly LostOwner[]): readonly boolean[] {
    return owners.map(({ hasEnded }) => hasEnded);
  }

  findReady({ agents, now, limit, after }: ReadyOptions): readonly RunId[] {
    const { ready: line, runs, flows } = this.#tables;
    line.count(now);
    if (flows.isDue(now)) flows.admitDue(now);
    const rows = [...runs.values()];
    const from = after === undefined ? 0 : rows.findIndex(({ record }) => record.runId === after) + 1;
    return rows
      .slice(from)
      .filter((row) => row.line !== undefined && (agents === undefined || takesRun(agents, row.record)))
      .slice(0, limit)
      .map(({ record }) => record.runId);
  }

  #release(lease: Lease, rest: Rest): undefined {
    const row = this.#tables.owned(lease);
    row.owner = null;
    row.rest = restingAs(rest);
    if (rest.kind === "queued") {
      row.record = { ...row.record, flow: rest.flow };
      Object.assign(row, { gates: gatesOf(row.record), passed: 0 });
    }
    if (rest.kind !== "unloaded") Object.assign(row, { recoveries: 0, lostOwner: null });
    if (rest.kind === "ended" && row.mail.length === 0) row.isLive = false;
    if (rest.kind === "ended" && row.end === null)
      this.#tables.setEnd(row, { status: "completed", at: row.commits.at(-1)?.at ?? 0 });
    row.readyAt = this.#tables.tick();
    this.#tables.place(row);
    // A run that is suspended or ended without mail concerns no listener.
    if (row.line !== undefined || row.isQueued)
      this.#tables.announce({ kind: "released", runId: lease.runId, isReady: true });
    return undefined;
  }

  #claim(row: RunRow, workerId: string): Lease {
    // A ready run that has an owner was left by a dead worker.
    if (row.owner !== null) noteRecovery(row);
    return this.#take(row, workerId);
  }

  #take(row: RunRow, workerId: string): Lease {
    row.epoch++;
    row.owner = workerId;
    row.rest = ready;
    this.#tables.place(row);
    const { epoch, record, recoveries, lostOwner, recoveredAt, commits } = row;
    const { runId } = record;
    const isInRow = recoveries > 0 && recoveredAt === commits.length;
    const queued = gateOf(row) === undefined ? undefined : ({ isQueued: true } as const);
    if (!isInRow || lostOwner === null) return { runId, epoch, workerId, ...queued };
    return { runId, epoch, workerId, recoveries, lostOwner, lostAt: lostOwner.at, ...queued };
  }
}

/**
 * L7: counts a recovery. If the run has a new commit since the last recovery, the count starts again. The time is
 * that of the last commit.
 */
function noteRecovery(row: RunRow): void {
  const isInRow = row.recoveredAt === row.commits.length;
  const workerId = row.owner ?? "";
  const at = row.commits.at(-1)?.at ?? 0;
  const lost: LostOwner = { workerId, registration: null, host: null, at, hasEnded: true };
  row.lostOwner = (isInRow ? row.lostOwner : null) ?? lost;
  row.recoveries = isInRow ? row.recoveries + 1 : 1;
  row.recoveredAt = row.commits.length;
  row.record = { ...row.record, recoveries: row.record.recoveries + 1 };
}

const ready: Rest = { kind: "ready" };

/**
 * Returns the state in which a released run is stored. Its limits and the reason of its release are stored
 * separately.
 */
function restingAs(rest: Rest): Rest {
  if (rest.kind === "unloaded") return { kind: "suspended", wakeAt: rest.wakeAt };
  return rest.kind === "queued" ? ready : rest;
}

const none: readonly never[] = [];

function isWanted({ record }: RunRow, { agents, except, host }: ClaimOptions): boolean {
  if (except?.includes(record.runId) === true) return false;
  if (host !== undefined && (record.host ?? host) !== host) return false;
  return agents === undefined || takesRun(agents, record);
}
