import {
  attempt,
  type ClaimOptions,
  type Lease,
  type Leases,
  type Rest,
  type RunId,
} from "../../../kernel/index.ts";
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
      row.owner = null;
      row.rest = ready;
      row.readyAt = this.#tables.tick();
      this.#tables.place(row);
    }
  }

  async dismiss(workerId: string): Promise<void> {
    this.#tables.workers.delete(workerId);
    for (const row of this.#ownedBy(workerId)) this.#tables.place(row);
  }

  #ownedBy(workerId: string): readonly RunRow[] {
    return [...this.#tables.runs.values()].filter(({ isLive, owner }) => isLive && owner === workerId);
  }

  claim(options: ClaimOptions): readonly Lease[] {
    const { workerId, limit, now } = options;
    const rows = this.#tables.ready.take(limit, now, (row) => isWanted(row, options));
    return rows.length === 0 ? none : rows.map((row) => this.#take(row, workerId));
  }

  async seize(runId: RunId, workerId: string): Promise<Lease | undefined> {
    const row = this.#tables.runs.get(runId);
    if (row === undefined || !row.isLive) return undefined;
    const lease = this.#take(row, workerId);
    this.#tables.announce(runId);
    return lease;
  }

  async check(lease: Lease): Promise<void> {
    this.#tables.owned(lease);
  }

  release(lease: Lease, rest: Rest): Promise<never> | undefined {
    return attempt(() => this.#release(lease, rest));
  }

  #release(lease: Lease, rest: Rest): undefined {
    const row = this.#tables.owned(lease);
    row.owner = null;
    row.rest = rest;
    if (rest.kind === "ended" && row.mail.length === 0) row.isLive = false;
    if (rest.kind === "ended" && row.end === null)
      this.#tables.setEnd(row, { status: "completed", at: row.commits.at(-1)?.at ?? 0 });
    row.readyAt = this.#tables.tick();
    this.#tables.place(row);
    // A run that is suspended or ended without mail concerns no listener.
    if (row.line !== undefined) this.#tables.announce(lease.runId);
    return undefined;
  }

  #take(row: RunRow, workerId: string): Lease {
    row.epoch++;
    row.owner = workerId;
    row.rest = ready;
    this.#tables.place(row);
    return { runId: row.record.runId, epoch: row.epoch, workerId };
  }
}

const ready: Rest = { kind: "ready" };
const none: readonly Lease[] = [];

function isWanted({ record }: RunRow, { agents, except }: ClaimOptions): boolean {
  const { runId, agentId, agentVersion } = record;
  if (except?.includes(runId) === true) return false;
  return (
    agents?.some(
      (hosted) =>
        hosted.agentId === agentId && (hosted.version === undefined || hosted.version === agentVersion),
    ) ?? true
  );
}
