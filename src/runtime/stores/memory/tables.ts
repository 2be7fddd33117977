import {
  canonicalJson,
  Fault,
  type Commit,
  type Delta,
  type Event,
  type Hash,
  type Lease,
  type PlacedMail,
  type Rest,
  type RunId,
  type RunRecord,
  type SessionId,
} from "../../../kernel/index.ts";
import type { RunEnd } from "../run-end.ts";
import type { ShownDeltas } from "./shown-deltas.ts";

export interface RunRow {
  readonly record: RunRecord;
  /** Counts runs in the order of their creation, from 1. */
  readonly place: number;
  /** K1: how it ended, while it has. */
  end: RunEnd | null;
  readonly commits: Commit[];
  readonly events: Event[];
  /** By number, of commits that retention erased: what stands for them in the chain. */
  readonly erasedContents: Map<number, string>;
  /** Not consumed yet. */
  mail: PlacedMail[];
  readonly mailIds: Set<string>;
  readonly deltas: ShownDeltas;
  epoch: number;
  owner: string | null;
  rest: Rest;
  /** When it last became ready, by `Tables.tick`. */
  readyAt: number;
  readonly watchers: Set<RunWatcher>;
}

/** Told of a run what becomes of it, as it does. */
export interface RunWatcher {
  seeCommit(events: readonly Event[]): void;
  seeDelta(delta: Delta): void;
  /** The run is no longer there. */
  seeRemoval(): void;
}

/** What the memory store's contracts share. Everything happens at once between two awaits, so nothing is half done. */
export class Tables {
  readonly runs = new Map<RunId, RunRow>();
  /** Those that have not ended, or have mail: whoever looks for work looks at no others. */
  readonly live = new Set<RunRow>();
  /** In the order of their creation. */
  readonly ofSession = new Map<SessionId, Set<RunRow>>();
  /** S5: by the id of its mail, the run that has a submission. */
  readonly submitted = new Map<string, RunRow>();
  readonly workers = new Set<string>();
  readonly listeners = new Set<(runId?: RunId) => void>();
  /** When a run of each tenant was last claimed. */
  readonly tenantServed = new Map<string | null, number>();
  /** Counts, to order what became ready. */
  #ticks = 0;

  tick(): number {
    return ++this.#ticks;
  }

  /** Someone may have something to do. */
  announce(runId?: RunId): void {
    for (const tell of this.listeners) queueMicrotask(() => tell(runId));
  }

  run(runId: RunId): RunRow {
    const row = this.runs.get(runId);
    if (row === undefined) throw new Fault("not_found", `there is no run ${runId} in this store`);
    return row;
  }

  /** J3: the row, if the lease holds. */
  owned({ runId, epoch, workerId }: Lease): RunRow {
    const row = this.runs.get(runId);
    if (row === undefined || row.epoch !== epoch || row.owner !== workerId) {
      throw new Fault("lease_lost", `worker ${workerId} does not own ${runId} at epoch ${epoch} any more`, {
        details: { runId, epoch, now: row?.epoch ?? null },
      });
    }
    return row;
  }
}

/** E1: what stands for a commit in the chain. */
export function eventsContent({ events = [] }: Commit, hash: Hash): string {
  return hash(canonicalJson(events));
}
