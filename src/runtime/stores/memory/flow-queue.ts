import { startsLater, type RunId } from "../../../kernel/index.ts";
import { slotOf, type Gate } from "../flow-gates.ts";
import type { RunRow } from "./run-row.ts";

/**
 * Receives what the queues report to their store: a run is ready, or will be checked again at a time (epoch
 * milliseconds).
 */
export interface FlowListener {
  readonly onAdmitted: (row: RunRow) => void;
  readonly onTimer: (runId: RunId, at: number) => void;
  /** Whether a live worker owns a run. */
  readonly isOwned: (row: RunRow) => boolean;
}

/** L17: the queues of the limits of concurrency and rate. */
export class FlowQueues {
  readonly #listener: FlowListener;
  /** The runs that wait at each limit (gate), in the order in which they are admitted. */
  readonly #queues = new Map<string, RunRow[]>();
  /** The number of runs that hold a place, by limit (gate). */
  readonly #taken = new Map<string, number>();
  /** The times of the last starts for each rate limit, in ascending order. */
  readonly #starts = new Map<string, number[]>();
  /** The time at which each limit (gate) must be checked again, in epoch milliseconds. */
  readonly #due = new Map<string, number>();
  /** The runs that wait for their start time before they enter a queue, with this time. */
  readonly #sleeping = new Map<RunRow, number>();
  /** Lower bound of all times at which something must be checked. An earlier claim has nothing to check. */
  #nextCheck = Infinity;

  constructor(listener: FlowListener) {
    this.#listener = listener;
  }

  /** Puts the run into the queue of its limit, and makes the next claim check the limits. */
  add(row: RunRow): void {
    this.remove(row);
    const gate = gateOf(row);
    if (gate === undefined) return;
    const queue = this.#queues.get(gate.id);
    if (queue === undefined) this.#queues.set(gate.id, [row]);
    else {
      const place = queue.findLastIndex((other) => isBefore(other, row));
      queue.splice(place + 1, 0, row);
    }
    row.isQueued = true;
    this.#checkAt(gate.id, 0);
  }

  /** Puts the run into the queue of its limit at a later time, in epoch milliseconds. */
  addSleeping(row: RunRow, wakeAt: number): void {
    this.remove(row);
    this.#sleeping.set(row, wakeAt);
    this.#nextCheck = Math.min(this.#nextCheck, wakeAt);
  }

  /** Removes the run from its queue, because it was admitted, waits for a compaction or has ended. */
  remove(row: RunRow): void {
    if (this.#sleeping.size > 0) this.#sleeping.delete(row);
    if (!row.isQueued) return;
    row.isQueued = false;
    const gate = gateOf(row);
    if (gate === undefined) return;
    const queue = this.#queues.get(gate.id) ?? [];
    const place = queue.indexOf(row);
    if (place >= 0) queue.splice(place, 1);
    if (queue.length === 0) this.#queues.delete(gate.id);
    // The run may have been the one that wakes the queue.
    else this.#checkAt(gate.id, 0);
  }

  /** Returns the earliest time after `now` at which limits must be checked. */
  nextWakeAt(now: number): number | null {
    let next = Infinity;
    for (const at of this.#due.values()) if (at > now && at < next) next = at;
    for (const at of this.#sleeping.values()) if (at > now && at < next) next = at;
    return next === Infinity ? null : next;
  }

  /** Whether a claim has limits to check. */
  isDue(now: number): boolean {
    return now >= this.#nextCheck;
  }

  /** Checks the limits that are due, and makes the runs that they admit ready. */
  admitDue(now: number): void {
    for (const [row, at] of this.#sleeping) if (at <= now) this.add(row);
    for (const [gate, at] of this.#due)
      if (at <= now) {
        this.#due.delete(gate);
        this.#admit(gate, now);
      }
    this.#nextCheck = Infinity;
    for (const at of this.#due.values()) this.#nextCheck = Math.min(this.#nextCheck, at);
    for (const at of this.#sleeping.values()) this.#nextCheck = Math.min(this.#nextCheck, at);
  }

  #checkAt(gate: string, at: number): void {
    this.#due.set(gate, at);
    this.#nextCheck = Math.min(this.#nextCheck, at);
  }

  #admit(id: string, now: number): void {
    for (;;) {
      const [first] = this.#queues.get(id) ?? [];
      const gate = first && gateOf(first);
      // No run overtakes one whose owner reads its mail. The release of that run lets a claim check the limits again.
      if (first === undefined || gate === undefined || this.#listener.isOwned(first)) return;
      if (!this.#passes(first, gate, now)) return;
      this.remove(first);
      first.passed++;
      if (gate.dueAt !== undefined) {
        // It has collected its starts, and has no place to take.
      } else if (gate.perMs === null) this.take(first);
      else this.#starts.set(id, [...(this.#starts.get(id) ?? []), now].slice(-gate.limit));
      if (gateOf(first) === undefined) this.#listener.onAdmitted(first);
      else this.add(first);
    }
  }

  #passes({ record }: RunRow, gate: Gate, now: number): boolean {
    if (gate.perMs === null && gate.dueAt === undefined) return (this.#taken.get(gate.id) ?? 0) < gate.limit;
    const earlier = gate.perMs === null ? undefined : this.#starts.get(gate.id)?.at(-gate.limit);
    const freeAt = gate.dueAt ?? (earlier === undefined ? now : earlier + (gate.perMs ?? 0));
    if (freeAt <= now) return true;
    this.#checkAt(gate.id, freeAt);
    this.#listener.onTimer(record.runId, freeAt);
    return false;
  }

  /** L20: returns the run that collects starts in the queue of this limit. */
  collectorAt(id: string): RunRow | undefined {
    return this.#queues.get(id)?.findLast(({ owner, mail }) => owner === null && mail.length === 0);
  }

  /** Makes the next claim check a limit, because the end of a collection has changed. */
  recheck(id: string): void {
    this.#checkAt(id, 0);
  }

  /** Gives the run a place among the runs of its concurrency key. */
  take(row: RunRow): void {
    const slot = slotOf(row.gates);
    if (slot === undefined || row.hasPlace) return;
    row.hasPlace = true;
    this.#taken.set(slot.id, (this.#taken.get(slot.id) ?? 0) + 1);
  }

  /** Frees the place of a run that has ended or was deleted. Returns whether another run may now be admitted. */
  leave(row: RunRow): boolean {
    this.remove(row);
    row.passed = row.gates.length;
    const slot = slotOf(row.gates);
    if (slot === undefined || !row.hasPlace) return false;
    row.hasPlace = false;
    const taken = (this.#taken.get(slot.id) ?? 1) - 1;
    if (taken === 0) this.#taken.delete(slot.id);
    else this.#taken.set(slot.id, taken);
    if (!this.#queues.has(slot.id)) return false;
    this.#checkAt(slot.id, 0);
    return true;
  }

  /** Returns the run that waits next at the concurrency limit of another run. */
  nextAfter({ gates }: RunRow): RunId | undefined {
    const slot = slotOf(gates);
    return slot && this.#queues.get(slot.id)?.[0]?.record.runId;
  }
}

/** Returns the limit (gate) that the run must pass next. `undefined` if it is admitted. */
export function gateOf({ gates, passed }: Pick<RunRow, "gates" | "passed">): Gate | undefined {
  return gates[passed];
}

/** Whether a queued run is admitted before another one. */
function isBefore(one: RunRow, other: RunRow): boolean {
  const byPriority = one.record.priority - other.record.priority;
  if (byPriority !== 0) return byPriority > 0;
  const [first, second] = [one.record, other.record];
  const isByTime = startsLater(first) || startsLater(second);
  const byTime = isByTime ? entryOf(first) - entryOf(second) : 0;
  return byTime === 0 ? one.place < other.place : byTime < 0;
}

/** Returns the time at which a run enters its queue, in epoch milliseconds. */
function entryOf({ startAt, createdAt }: RunRow["record"]): number {
  return Math.max(startAt ?? 0, createdAt);
}
