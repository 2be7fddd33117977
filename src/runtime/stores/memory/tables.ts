import type { RunRow } from "./run-row.ts";
import {
  canonicalJson,
  Fault,
  type Commit,
  type Hash,
  type Lease,
  type RunId,
  type SessionId,
} from "../../../kernel/index.ts";
import { CompactingMap } from "../../process/compacting-map.ts";
import type { RunEnd } from "../run-end.ts";
import { ReadyRuns } from "./ready-runs.ts";

/** What the memory store's contracts share. Everything happens at once between two awaits, so nothing is half done. */
export class Tables {
  readonly runs = new CompactingMap<RunId, RunRow>();
  /** Those that have ended, in the order in which they did: whoever collects looks at no others. */
  readonly ended = new CompactingMap<RunRow, RunRow>();
  readonly ready = new ReadyRuns();
  /** In the order of their creation. */
  readonly ofSession = new CompactingMap<SessionId, RunRow[]>();
  /** S5: by the id of its mail, the run that has a submission. */
  readonly submitted = new Map<string, RunRow>();
  readonly workers = new Set<string>();
  readonly listeners = new Set<(runId?: RunId) => void>();
  /** Counts, to order what became ready. */
  #ticks = 0;
  /** Changed since listeners were last told; few times in a row the same. */
  #changed: (RunId | undefined)[] | undefined;

  /** K1. */
  setEnd(row: RunRow, end: RunEnd | null): void {
    row.end = end;
    if (end === null) this.ended.delete(row);
    else this.ended.set(row, row);
  }

  tick(): number {
    return ++this.#ticks;
  }

  /** Someone may have something to do. */
  announce(runId?: RunId): void {
    const changed = this.#changed;
    if (changed === undefined) {
      this.#changed = [runId];
      queueMicrotask(this.#tell);
    } else if (changed.at(-1) !== runId) changed.push(runId);
  }

  readonly #tell = (): void => {
    const changed = this.#changed ?? [];
    this.#changed = undefined;
    for (const runId of changed) for (const tell of this.listeners) tell(runId);
  };

  /** L2: for whoever changes the owner, the rest or the mail of a run, or who is at work. */
  place(row: RunRow): void {
    const { owner, rest, mail } = row;
    const isAtRest = owner === null ? row.isLive : !this.workers.has(owner);
    if (isAtRest && (owner !== null || rest.kind === "ready" || mail.length > 0)) this.ready.add(row);
    else if (isAtRest && rest.kind === "suspended" && rest.wakeAt !== null)
      this.ready.addSleeping(row, rest.wakeAt);
    else this.ready.remove(row);
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
