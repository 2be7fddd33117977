import type { Event } from "../../src/kernel/index.ts";

const mostBuckets = 240;
const firstBucketMs = 50;
const mostPoints = 2_000;

interface Bucket {
  events: number;
  /** Number of the last event in the bucket, or of the last one before it. */
  lastSeq: number;
}

/** A value that holds from a time until the next point. */
export interface TracePoint {
  readonly at: number;
  readonly seq: number;
  readonly value: number;
}

/** What the dock and the timeline draw over time. An event costs O(1) on average, and the size is bounded. */
export class RunTrace {
  #startAt: number | null = null;
  #spentUsd = 0;
  #bucketMs = firstBucketMs;
  #buckets: Bucket[] = [];
  #spend: TracePoint[] = [];
  #seats: TracePoint[] = [];
  #handovers: TracePoint[] = [];

  /** Adds an event, with the number of seats that are taken after it. */
  add(event: Event, seats: number): void {
    const { seq, at, type } = event;
    this.#startAt ??= at;
    this.#spentUsd = type === "run_fork" ? 0 : this.#spentUsd + costOf(event);
    this.#count(Math.max(0, at - this.#startAt), seq);
    if (type === "seat_yield") this.#handovers = added(this.#handovers, { at, seq, value: 1 });
    if (this.#seats.at(-1)?.value !== seats) this.#seats = added(this.#seats, { at, seq, value: seats });
    const { value } = this.#spend.at(-1) ?? {};
    if (value !== this.#spentUsd) this.#spend = added(this.#spend, { at, seq, value: this.#spentUsd });
  }

  get spend(): readonly TracePoint[] {
    return this.#spend;
  }

  get seats(): readonly TracePoint[] {
    return this.#seats;
  }

  /** The moments at which a task gave its seat to another. */
  get handovers(): readonly TracePoint[] {
    return this.#handovers;
  }

  /** Numbers of events in equal spans of time, from the start to the last event. */
  get density(): readonly number[] {
    return this.#buckets.map(({ events }) => events);
  }

  /** Length of all spans together, in milliseconds. */
  get durationMs(): number {
    return this.#buckets.length * this.#bucketMs;
  }

  /** Number of the last event at or before a time after the start, as exactly as the spans are. */
  seqAt(passedMs: number): number {
    const at = Math.floor(passedMs / this.#bucketMs);
    return this.#buckets[Math.max(0, Math.min(this.#buckets.length - 1, at))]?.lastSeq ?? 0;
  }

  #count(passedMs: number, seq: number): void {
    while (passedMs / this.#bucketMs >= mostBuckets) this.#merge();
    const at = Math.floor(passedMs / this.#bucketMs);
    while (this.#buckets.length <= at) this.#buckets.push({ events: 0, lastSeq: seq - 1 });
    const bucket = this.#buckets[at];
    if (bucket === undefined) return;
    bucket.events++;
    bucket.lastSeq = seq;
  }

  /** Doubles the length of the spans. */
  #merge(): void {
    const merged: Bucket[] = [];
    for (let at = 0; at < this.#buckets.length; at += 2) {
      const [one, other] = [this.#buckets[at], this.#buckets[at + 1]];
      if (one !== undefined)
        merged.push({ events: one.events + (other?.events ?? 0), lastSeq: other?.lastSeq ?? one.lastSeq });
    }
    this.#buckets = merged;
    this.#bucketMs *= 2;
  }
}

function costOf(event: Event): number {
  if (event.type === "message_end") return event.data.usage?.costUsd ?? 0;
  return event.type === "budget_lost" ? (event.data.costUsd ?? 0) : 0;
}

/** Adds a point. A list that is too long loses every second one. */
function added(points: TracePoint[], point: TracePoint): TracePoint[] {
  points.push(point);
  return points.length > mostPoints
    ? points.filter((_each, at) => at % 2 === 1 || at === points.length - 1)
    : points;
}
