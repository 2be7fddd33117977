import { priorities, type Priority } from "../../../kernel/index.ts";
import type { RunRow } from "./tables.ts";

type TenantId = string | null;

/** By priority. */
type Lines = Map<Priority, Line>;

const none: readonly RunRow[] = [];

/**
 * The runs that may be claimed, and those that may be once a time has come. Who looks for work looks at these alone: not at runs at work,
 * nor at those that wait for mail.
 */
export class ReadyRuns {
  readonly #tenants = new Map<TenantId, Lines>();
  readonly #sleeping = new Map<RunRow, number>();
  /** None of those wakes before this. Epoch milliseconds. */
  #nextWake = Infinity;
  /** When a run of each tenant was last taken, by count. */
  readonly #served = new Map<TenantId, number>();
  #serves = 0;

  /** It may be claimed, since `row.readyAt`. */
  add(row: RunRow): void {
    this.remove(row);
    const { tenantId, priority } = row.record;
    let lines = this.#tenants.get(tenantId);
    if (lines === undefined) this.#tenants.set(tenantId, (lines = new Map<Priority, Line>()));
    let line = lines.get(priority);
    if (line === undefined) lines.set(priority, (line = new Line()));
    line.add(row);
  }

  /** It may be claimed from then on. Epoch milliseconds. */
  addSleeping(row: RunRow, wakeAt: number): void {
    this.remove(row);
    this.#sleeping.set(row, wakeAt);
    this.#nextWake = Math.min(this.#nextWake, wakeAt);
  }

  remove(row: RunRow): void {
    this.#sleeping.delete(row);
    const { tenantId, priority } = row.record;
    const lines = this.#tenants.get(tenantId);
    const line = lines?.get(priority);
    line?.remove(row);
    if (line?.size === 0) lines?.delete(priority);
    if (lines?.size === 0) this.#tenants.delete(tenantId);
  }

  /** L5: of those that are wanted, one of each tenant, the one served longest ago first, and so round again. */
  take(limit: number, now: number, isWanted: (row: RunRow) => boolean): readonly RunRow[] {
    this.#wake(now);
    if (this.#tenants.size === 0) return none;
    const taken: RunRow[] = [];
    let queues = this.#queues(isWanted);
    while (queues.length > 0 && taken.length < limit) {
      for (const { head } of queues.slice(0, limit - taken.length)) taken.push(head);
      queues = queues.flatMap(({ rest }) => queueOf(rest));
    }
    for (const row of taken) {
      this.remove(row);
      this.#served.set(row.record.tenantId, ++this.#serves);
    }
    return taken;
  }

  #wake(now: number): void {
    if (now < this.#nextWake) return;
    this.#nextWake = Infinity;
    for (const [row, wakeAt] of this.#sleeping) {
      if (wakeAt <= now) this.add(row);
      else this.#nextWake = Math.min(this.#nextWake, wakeAt);
    }
  }

  /** Of each tenant that has one, those that are wanted. */
  #queues(isWanted: (row: RunRow) => boolean): readonly Queue[] {
    const queues = [...this.#tenants.values()].flatMap((lines) => queueOf(wantedIn(lines, isWanted)));
    return queues.toSorted(
      ({ head: one }, { head: other }) =>
        this.#lastServed(one) - this.#lastServed(other) || inLine(one, other),
    );
  }

  #lastServed({ record }: RunRow): number {
    return this.#served.get(record.tenantId) ?? 0;
  }
}

/** Runs of one tenant and priority. */
class Line {
  #rows = new Set<RunRow>();
  #isInOrder = true;
  #newest = 0;

  get size(): number {
    return this.#rows.size;
  }

  /** Most became ready just now. */
  add(row: RunRow): void {
    if (row.readyAt < this.#newest) this.#isInOrder = false;
    else this.#newest = row.readyAt;
    this.#rows.add(row);
  }

  remove(row: RunRow): void {
    this.#rows.delete(row);
  }

  /** The longest ready first. */
  inOrder(): Iterable<RunRow> {
    if (!this.#isInOrder) this.#rows = new Set([...this.#rows].toSorted(inLine));
    this.#isInOrder = true;
    return this.#rows;
  }
}

/** Runs of one tenant, the first of which is at hand. */
interface Queue {
  readonly head: RunRow;
  readonly rest: Iterator<RunRow>;
}

function queueOf(rest: Iterator<RunRow>): readonly Queue[] {
  const { value: head, done } = rest.next();
  return done === true ? [] : [{ head, rest }];
}

function* wantedIn(lines: Lines, isWanted: (row: RunRow) => boolean): Generator<RunRow> {
  for (const priority of priorities)
    for (const row of lines.get(priority)?.inOrder() ?? none) if (isWanted(row)) yield row;
}

/** The higher priority first, then the longest ready. */
function inLine(one: RunRow, other: RunRow): number {
  return other.record.priority - one.record.priority || one.readyAt - other.readyAt;
}
