import type { ClaimOptions, Lease, Leases, Rest, RunId } from "../../../kernel/index.ts";
import type { RunRow, Tables } from "./tables.ts";

export class MemoryLeases implements Leases {
  readonly #tables: Tables;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  async enlist(workerId: string): Promise<void> {
    if (this.#tables.workers.has(workerId)) return;
    this.#tables.workers.add(workerId);
    // L6: they are of another who had this name.
    for (const row of this.#tables.live) {
      if (row.owner !== workerId) continue;
      row.owner = null;
      row.rest = { kind: "ready" };
      row.readyAt = this.#tables.tick();
    }
  }

  async dismiss(workerId: string): Promise<void> {
    this.#tables.workers.delete(workerId);
  }

  async claim(options: ClaimOptions): Promise<readonly Lease[]> {
    const { workerId, limit, now } = options;
    const ready = [...this.#tables.live].filter((row) => this.#isReady(row, now) && isWanted(row, options));
    return this.#inTurn(ready)
      .slice(0, limit)
      .map((row) => {
        this.#tables.tenantServed.set(row.record.tenantId, this.#tables.tick());
        return take(row, workerId);
      });
  }

  async seize(runId: RunId, workerId: string): Promise<Lease | undefined> {
    const row = this.#tables.runs.get(runId);
    if (row === undefined || !this.#tables.live.has(row)) return undefined;
    const lease = take(row, workerId);
    this.#tables.announce(runId);
    return lease;
  }

  async check(lease: Lease): Promise<void> {
    this.#tables.owned(lease);
  }

  async release(lease: Lease, rest: Rest): Promise<void> {
    const row = this.#tables.owned(lease);
    row.owner = null;
    row.rest = rest;
    if (rest.kind === "ended" && row.mail.length === 0) this.#tables.live.delete(row);
    if (rest.kind === "ended") row.end ??= { status: "completed", at: row.commits.at(-1)?.at ?? 0 };
    row.readyAt = this.#tables.tick();
    this.#tables.announce(lease.runId);
  }

  /** L5: one of each tenant, the one served longest ago first, and so round again. */
  #inTurn(ready: readonly RunRow[]): readonly RunRow[] {
    const served = this.#tables.tenantServed;
    const rows = ready.toSorted(
      (one, other) => other.record.priority - one.record.priority || one.readyAt - other.readyAt,
    );
    const tenants = [...Map.groupBy(rows, ({ record }) => record.tenantId)].toSorted(
      ([one], [other]) => (served.get(one) ?? 0) - (served.get(other) ?? 0),
    );
    const rounds = Math.max(0, ...tenants.map(([, own]) => own.length));
    return Array.from({ length: rounds }, (_, round) =>
      tenants.flatMap(([, own]) => own.slice(round, round + 1)),
    ).flat();
  }

  #isReady({ owner, rest, mail }: RunRow, now: number): boolean {
    if (owner !== null) return !this.#tables.workers.has(owner);
    if (rest.kind === "ready" || mail.length > 0) return true;
    return rest.kind === "suspended" && rest.wakeAt !== null && rest.wakeAt <= now;
  }
}

function isWanted({ record }: RunRow, { agents, except = [] }: ClaimOptions): boolean {
  const { runId, agentId, agentVersion } = record;
  if (except.includes(runId)) return false;
  return (
    agents?.some(
      (hosted) =>
        hosted.agentId === agentId && (hosted.version === undefined || hosted.version === agentVersion),
    ) ?? true
  );
}

function take(row: RunRow, workerId: string): Lease {
  row.epoch++;
  row.owner = workerId;
  row.rest = { kind: "ready" };
  return { runId: row.record.runId, epoch: row.epoch, workerId };
}
