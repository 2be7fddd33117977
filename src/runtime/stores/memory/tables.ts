import type { RunRow } from "./run-row.ts";
import {
  missingRun,
  canonicalJson,
  Fault,
  isInScope,
  type Commit,
  type Hash,
  type Lease,
  type Rest,
  type RunId,
  type SessionId,
  type StoreChange,
  type TenantScope,
} from "../../../kernel/index.ts";
import type { RunEnd } from "../run-end.ts";
import { OpenApprovals } from "./approvals.ts";
import { FlowQueues, gateOf } from "./flow-queue.ts";
import { ReadyRuns } from "./ready-runs.ts";

const ready: Rest = { kind: "ready" };
const settled = Promise.resolve();

/**
 * Data that the contracts of the memory store share. Each change is synchronous, so that no reader sees a partial
 * change.
 */
export class Tables {
  readonly runs = new Map<RunId, RunRow>();
  /** Ended runs in the order of their end. `collect` reads only this list. */
  readonly ended = new Set<RunRow>();
  readonly ready = new ReadyRuns();
  readonly flows = new FlowQueues({
    onAdmitted: (row) => {
      row.readyAt = this.tick();
      row.rest = ready;
      this.place(row);
      this.announce({ kind: "new", runId: row.record.runId, startAt: null });
    },
    onTimer: (runId, startAt) => this.announce({ kind: "new", runId, startAt }),
    isOwned: ({ owner }) => owner !== null && this.workers.has(owner),
  });
  readonly approvals = new OpenApprovals();
  /** Runs of each session in the order of creation. */
  readonly ofSession = new Map<SessionId, RunRow[]>();
  /** S5: runs of each session that have not ended, in the order of creation or reopening. */
  readonly unfinished = new Map<SessionId, Set<RunRow>>();
  /** S5: the unfinished compaction of each session. */
  readonly #compacting = new Map<SessionId, RunRow>();
  /** S5: the run that got the mail of a submission, by the id of the mail. */
  readonly submitted = new Map<string, RunRow>();
  readonly workers = new Set<string>();
  readonly listeners = new Set<(change: StoreChange) => void>();
  /** Counter that orders runs by the time at which they became ready. */
  #ticks = 0;
  /** K5: number of changes of runs. */
  lastChange = 0;
  /** The changes since the listeners were last called. */
  #changes: StoreChange[] | undefined;

  /** K1: records how the run ended, or with `null` that it was reopened. */
  setEnd(row: RunRow, end: RunEnd | null): void {
    row.end = end;
    if (end === null) {
      this.ended.delete(row);
      this.addUnfinished(row);
      this.flows.take(row);
    } else {
      this.ended.add(row);
      this.removeUnfinished(row);
      this.leaveFlow(row);
    }
  }

  /** L17: frees the place of a run that has ended or was deleted. */
  leaveFlow(row: RunRow): void {
    if (row.gates.length === 0) return;
    const isAnyNext = this.flows.leave(row);
    const next = isAnyNext ? this.flows.nextAfter(row) : undefined;
    if (next !== undefined) this.announce({ kind: "new", runId: next, startAt: null });
  }

  addUnfinished(row: RunRow): void {
    const { sessionId } = row.record;
    const unfinished = this.unfinished.get(sessionId);
    if (unfinished === undefined) this.unfinished.set(sessionId, new Set([row]));
    else unfinished.add(row);
    if (row.record.kind === "compaction") this.#compacting.set(sessionId, row);
  }

  removeUnfinished(row: RunRow): void {
    const { sessionId } = row.record;
    const unfinished = this.unfinished.get(sessionId);
    unfinished?.delete(row);
    if (unfinished?.size === 0) this.unfinished.delete(sessionId);
    if (this.#compacting.get(sessionId) === row) this.#freeHeld(row);
  }

  /** S5: whether a compaction of the session, apart from this run, is unfinished. */
  #isExcluded(row: RunRow): boolean {
    if (this.#compacting.size === 0) return false;
    const compaction = this.#compacting.get(row.record.sessionId);
    return compaction !== undefined && compaction !== row;
  }

  /**
   * S5: called when the compaction of a session has ended or was deleted, so that workers may claim the other runs.
   */
  #freeHeld({ record: { sessionId } }: RunRow): void {
    this.#compacting.delete(sessionId);
    for (const row of this.ofSession.get(sessionId) ?? []) {
      if (!row.isHeld) continue;
      row.readyAt = this.tick();
      this.place(row);
      this.announce({ kind: "new", runId: row.record.runId, startAt: wakeTime(row) });
    }
  }

  /** K5: the summary of the run has changed. */
  noteChange(row: RunRow): void {
    row.change = ++this.lastChange;
  }

  tick(): number {
    return ++this.#ticks;
  }

  /** Calls the listeners in a microtask. */
  announce(change: StoreChange): void {
    if (this.#changes === undefined) {
      this.#changes = [change];
      void settled.then(this.#tell);
    } else this.#changes.push(change);
  }

  readonly #tell = (): void => {
    const changes = this.#changes ?? [];
    this.#changes = undefined;
    for (const change of changes) for (const tell of this.listeners) tell(change);
  };

  /**
   * L2: updates whether workers may claim the run. Called after a change of its owner, its state or its mailbox, or
   * of the registered workers.
   */
  place(row: RunRow): void {
    this.noteChange(row);
    const { owner, rest, mail } = row;
    const isAtRest = owner === null ? row.isLive : !this.workers.has(owner);
    row.isHeld = isAtRest && this.#isExcluded(row);
    if (row.gates.length > 0 && this.#placeQueued(row)) return;
    if (row.isHeld) this.ready.remove(row);
    else if (isAtRest && (owner !== null || rest.kind === "ready" || mail.length > 0)) this.ready.add(row);
    else if (isAtRest && rest.kind === "suspended" && rest.wakeAt !== null)
      this.ready.addSleeping(row, rest.wakeAt);
    else this.ready.remove(row);
  }

  /**
   * L17: places a run that its limits have not admitted. With mail or an owner, the run keeps its turn in the
   * queue, and the method returns `false`, because workers may then claim the run like other runs.
   */
  #placeQueued(row: RunRow): boolean {
    const { owner, rest, mail } = row;
    if (gateOf(row) === undefined || row.isHeld || !row.isLive) {
      this.flows.remove(row);
      return false;
    }
    const hasWork = owner !== null || mail.length > 0;
    if (!hasWork && row.epoch === 0 && rest.kind === "suspended" && rest.wakeAt !== null)
      this.flows.addSleeping(row, rest.wakeAt);
    else this.flows.add(row);
    if (!hasWork) this.ready.remove(row);
    return !hasWork;
  }

  /** S6: returns the row of a run. Throws `not_found` if the run does not exist in the scope. */
  run(runId: RunId, scope?: TenantScope): RunRow {
    const row = this.runs.get(runId);
    if (row === undefined || !isInScope(row.record, scope)) throw missingRun(runId);
    return row;
  }

  /** J3: returns the row of the run. Throws `lease_lost` if the lease is not the current one. */
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

/** Returns the time at which a suspended run becomes ready. `null` if it is already ready. */
function wakeTime({ rest, mail }: RunRow): number | null {
  return rest.kind === "suspended" && mail.length === 0 ? rest.wakeAt : null;
}

/** E1: returns the hash that represents the events of a commit in the chain. */
export function eventsContent({ events = [] }: Commit, hash: Hash): string {
  return hash(canonicalJson(events));
}
