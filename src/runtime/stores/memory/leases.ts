import type { ClaimOptions, Lease, Leases, Rest, RunId } from "../../../kernel/index.ts";
import type { RunRow, Tables } from "./tables.ts";

export class MemoryLeases implements Leases {
  readonly #tables: Tables;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  async enlist(workerId: string): Promise<void> {
    this.#tables.workers.add(workerId);
  }

  async dismiss(workerId: string): Promise<void> {
    this.#tables.workers.delete(workerId);
  }

  async claim({ workerId, limit, now }: ClaimOptions): Promise<readonly Lease[]> {
    const leases: Lease[] = [];
    for (const row of this.#tables.runs.values()) {
      if (leases.length === limit) break;
      if (this.#isReady(row, now)) leases.push(take(row, workerId));
    }
    return leases;
  }

  async seize(runId: RunId, workerId: string): Promise<Lease | undefined> {
    const row = this.#tables.runs.get(runId);
    return row === undefined || row.rest.kind === "ended" ? undefined : take(row, workerId);
  }

  async check(lease: Lease): Promise<void> {
    this.#tables.owned(lease);
  }

  async release(lease: Lease, rest: Rest): Promise<void> {
    const row = this.#tables.owned(lease);
    row.owner = null;
    row.rest = rest;
  }

  #isReady({ owner, rest, mail }: RunRow, now: number): boolean {
    if (rest.kind === "ended") return false;
    if (owner !== null) return !this.#tables.workers.has(owner);
    if (rest.kind === "ready" || mail.length > 0) return true;
    return rest.wakeAt !== null && rest.wakeAt <= now;
  }
}

function take(row: RunRow, workerId: string): Lease {
  row.epoch++;
  row.owner = workerId;
  return { runId: row.record.runId, epoch: row.epoch, workerId };
}
