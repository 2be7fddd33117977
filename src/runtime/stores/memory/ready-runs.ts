import { ReadyLine } from "./ready-line.ts";
import { byPriorityThenAge } from "./ready-queue.ts";
import type { Priority } from "../../../kernel/index.ts";
import type { RunRow } from "./run-row.ts";

type TenantId = string | null;

const none: readonly RunRow[] = [];

/**
 * Number of tenants without ready runs that are kept. Creating the entry again for each run would cost more than
 * claiming the run.
 */
const mostIdle = 64;

/**
 * The ready runs, and the runs that become ready at a later time. A claim searches only these, and not runs that
 * have an owner or wait for mail.
 */
export class ReadyRuns {
  readonly #tenants = new Map<TenantId, TenantRuns>();
  #size = 0;
  readonly #sleeping = new Map<RunRow, number>();
  /** Lower bound of the times at which runs wake up, in epoch milliseconds. */
  #nextWake = Infinity;
  /** Value of `#serves` when a run of the tenant was last taken. */
  readonly #served = new Map<TenantId, number>();
  #serves = 0;

  /** Marks the run as ready from `row.readyAt` on. */
  add(row: RunRow): void {
    this.remove(row);
    const { tenantId, priority } = row.record;
    let runs = this.#tenants.get(tenantId);
    if (runs === undefined) this.#tenants.set(tenantId, (runs = new TenantRuns()));
    row.line = runs.line(priority);
    row.line.add(row);
    this.#size++;
  }

  /** Records that the run becomes ready at `wakeAt`, in epoch milliseconds. */
  addSleeping(row: RunRow, wakeAt: number): void {
    this.remove(row);
    this.#sleeping.set(row, wakeAt);
    this.#nextWake = Math.min(this.#nextWake, wakeAt);
  }

  remove(row: RunRow): void {
    if (row.line === undefined) {
      if (this.#sleeping.size > 0) this.#sleeping.delete(row);
      return;
    }
    row.line.remove(row);
    row.line = undefined;
    this.#size--;
  }

  /** L8: returns the earliest time after `now` at which a run wakes up. */
  nextWakeAt(now: number): number | null {
    let next = Infinity;
    for (const wakeAt of this.#sleeping.values()) if (wakeAt > now && wakeAt < next) next = wakeAt;
    return next === Infinity ? null : next;
  }

  /** L14: returns the number of runs that are ready at this time. */
  count(now: number): number {
    if (now >= this.#nextWake) this.#wake(now);
    return this.#size;
  }

  /** L5: returns and removes one run of each tenant in turn. The tenant that was served longest ago comes first. */
  take(limit: number, now: number, isWanted: (row: RunRow) => boolean): readonly RunRow[] {
    if (now >= this.#nextWake) this.#wake(now);
    if (this.#size === 0) return none;
    const taken: RunRow[] = [];
    let queues = this.#queues(isWanted);
    while (queues.length > 0 && taken.length < limit) {
      let hasEnded = false;
      for (const queue of queues) {
        if (queue.head === undefined || taken.length === limit) break;
        taken.push(queue.head);
        queue.advance();
        hasEnded ||= queue.head === undefined;
      }
      if (hasEnded) queues = queues.filter(({ head }) => head !== undefined);
    }
    for (const row of taken) {
      row.line?.served(row);
      this.remove(row);
      this.#served.set(row.record.tenantId, ++this.#serves);
    }
    return taken;
  }

  /**
   * L10: returns and removes those of the given runs that are ready and wanted, in the given order. The turns of
   * the tenants do not change.
   */
  takeThese(
    rows: readonly RunRow[],
    limit: number,
    now: number,
    isWanted: (row: RunRow) => boolean,
  ): readonly RunRow[] {
    if (now >= this.#nextWake) this.#wake(now);
    const taken = [...new Set(rows)].filter((row) => row.line !== undefined && isWanted(row)).slice(0, limit);
    for (const row of taken) this.remove(row);
    return taken;
  }

  #wake(now: number): void {
    this.#nextWake = Infinity;
    for (const [row, wakeAt] of this.#sleeping) {
      if (wakeAt <= now) this.add(row);
      else this.#nextWake = Math.min(this.#nextWake, wakeAt);
    }
  }

  /** Returns one queue for each tenant that has a wanted run, in the order in which they are served. */
  #queues(isWanted: (row: RunRow) => boolean): readonly Queue[] {
    const queues: Queue[] = [];
    for (const [tenantId, runs] of this.#tenants) {
      const queue = runs.queue(isWanted);
      if (queue !== undefined) queues.push(queue);
      else if (runs.isEmpty && this.#tenants.size > mostIdle) {
        this.#tenants.delete(tenantId);
        this.#served.delete(tenantId);
      }
    }
    if (queues.length < 2) return queues;
    return queues.toSorted(({ head: one }, { head: other }) =>
      one === undefined || other === undefined ? 0 : this.#inTurn(one, other),
    );
  }

  #inTurn(one: RunRow, other: RunRow): number {
    return this.#lastServed(one) - this.#lastServed(other) || byPriorityThenAge(one, other);
  }

  #lastServed({ record }: RunRow): number {
    return this.#served.get(record.tenantId) ?? 0;
  }
}

/** The ready runs of one tenant. */
class TenantRuns {
  /** The lines of the tenant, one for each priority of its runs, highest priority first. */
  #lines: readonly ReadyLine<RunRow>[] = [];

  line(priority: Priority): ReadyLine<RunRow> {
    for (const line of this.#lines) if (line.priority === priority) return line;
    const line = new ReadyLine<RunRow>(priority);
    this.#lines = [...this.#lines, line].toSorted((one, other) => other.priority - one.priority);
    return line;
  }

  get isEmpty(): boolean {
    return this.#lines.every(({ size }) => size === 0);
  }

  queue(isWanted: (row: RunRow) => boolean): Queue | undefined {
    const queue = new Queue(this.#lines, isWanted);
    return queue.head === undefined ? undefined : queue;
  }
}

/** The wanted runs of one tenant, in the order in which they are claimed. */
class Queue {
  readonly #lines: readonly ReadyLine<RunRow>[];
  readonly #isWanted: (row: RunRow) => boolean;
  #line = 0;
  #rows: Iterator<RunRow, undefined> | undefined;
  /** The next run. `undefined` at the end. */
  head: RunRow | undefined;

  constructor(lines: readonly ReadyLine<RunRow>[], isWanted: (row: RunRow) => boolean) {
    this.#lines = lines;
    this.#isWanted = isWanted;
    this.advance();
  }

  advance(): void {
    for (; this.#line < this.#lines.length; this.#line++) {
      this.#rows ??= this.#lines[this.#line]?.inOrder();
      for (let row = this.#next(); row !== undefined; row = this.#next()) {
        this.head = row;
        if (this.#isWanted(row)) return;
      }
      this.#rows = undefined;
    }
    this.head = undefined;
  }

  #next(): RunRow | undefined {
    return this.#rows?.next().value;
  }
}
