import { rootTaskId, type Event } from "../../kernel/index.ts";
import type { StepView } from "./step-log.ts";

const mostBuckets = 240;
const firstBucketMs = 1;
const mostPoints = 2_000;

interface Bucket {
  events: number;
  /** Number of the last event in the bucket, or of the last one before it. */
  lastSeq: number;
  /** How much more is held than in the bucket before. */
  heldMoreUsd: number;
}

/** What was held in a span of time that starts `activeMs` after the start, without the time of crashes. */
export interface HeldSpan {
  readonly activeMs: number;
  readonly heldUsd: number;
}

/** A value that holds from a time until the next point. */
export interface TracePoint {
  readonly at: number;
  readonly seq: number;
  readonly value: number;
}

/** What a trace consists of, as JSON. */
export interface StoredTrace {
  /** Time of the first event. `null` before it. */
  startAt: number | null;
  lastAt: number;
  spentUsd: number;
  bucketMs: number;
  buckets: Bucket[];
  /** Changes of what is held after the last span. */
  later: { readonly at: number; readonly moreUsd: number }[];
  readonly crashes: { readonly toAt: number; readonly downMs: number }[];
  topUps: TracePoint[];
  spend: TracePoint[];
  seats: TracePoint[];
  handovers: TracePoint[];
}

/**
 * What the dock and the timeline draw over time. The time of crashes is left out. An event costs O(1) on average, and the
 * size is bounded.
 */
export class RunTrace {
  readonly #state: StoredTrace;

  /** The trace changes `from`, which it continues. If absent, it starts before the first event. */
  constructor(from?: StoredTrace) {
    this.#state = from ?? {
      startAt: null,
      lastAt: 0,
      spentUsd: 0,
      bucketMs: firstBucketMs,
      buckets: [],
      later: [],
      crashes: [],
      topUps: [],
      spend: [],
      seats: [],
      handovers: [],
    };
  }

  /** What the trace consists of now. It changes with the next event. */
  get stored(): StoredTrace {
    return this.#state;
  }

  /** Adds an event, with the number of seats that are taken after it. */
  add(event: Event, seats: number): void {
    const { seq, at, type } = event;
    this.#state.startAt ??= at;
    if (event.type === "run_recover" && event.data.recoveries !== undefined)
      this.#state.crashes.push({ toAt: at, downMs: at - this.#state.lastAt });
    this.#state.lastAt = at;
    if (event.type === "budget_top_up" && event.data.taskId === rootTaskId)
      this.#state.topUps = added(this.#state.topUps, { at, seq, value: event.data.add.maxCostUsd ?? 0 });
    this.#state.spentUsd = type === "run_fork" ? 0 : this.#state.spentUsd + costOf(event);
    this.#count(this.activeMs(at), seq);
    if (type === "seat_yield") this.#state.handovers = added(this.#state.handovers, { at, seq, value: 1 });
    if (this.#state.seats.at(-1)?.value !== seats) this.#state.seats = added(this.#state.seats, { at, seq, value: seats });
    const { value } = this.#state.spend.at(-1) ?? {};
    if (value !== this.#state.spentUsd) this.#state.spend = added(this.#state.spend, { at, seq, value: this.#state.spentUsd });
  }

  get spend(): readonly TracePoint[] {
    return this.#state.spend;
  }

  get seats(): readonly TracePoint[] {
    return this.#state.seats;
  }

  /** The moments at which a task gave its seat to another. */
  get handovers(): readonly TracePoint[] {
    return this.#state.handovers;
  }

  /** What was added to the allowance of the run, and when. */
  get topUps(): readonly TracePoint[] {
    return this.#state.topUps;
  }

  /** Numbers of events in equal spans of time, from the start to the last event. */
  get density(): readonly number[] {
    return this.#state.buckets.map(({ events }) => events);
  }

  /** Number of the last event of each span, or of the last one before it. */
  get lastSeqs(): readonly number[] {
    return this.#state.buckets.map(({ lastSeq }) => lastSeq);
  }

  /** Length of one span, in milliseconds. */
  get spanMs(): number {
    return this.#state.bucketMs;
  }

  /** Time from the start to a time, without the time of crashes. */
  activeMs(at: number): number {
    const down = this.#state.crashes.reduce((sum, { toAt, downMs }) => sum + (toAt <= at ? downMs : 0), 0);
    return Math.max(0, at - (this.#state.startAt ?? at) - down);
  }

  /** Adds a step that has ended. While a model call is in flight, its price is held. */
  addEnded({ kind, startAt, endAt, costUsd }: StepView): void {
    if (kind !== "model" || endAt === null || costUsd === null || costUsd === 0) return;
    this.#hold(startAt, costUsd);
    this.#hold(endAt + this.#state.bucketMs, -costUsd);
  }

  /** What was held in each span of time. Calls that are in flight now share what is held now. */
  held(open: readonly StepView[], heldNowUsd: number): readonly HeldSpan[] {
    const more = this.#state.buckets.map(({ heldMoreUsd }) => heldMoreUsd);
    for (const { startAt } of open) {
      const at = Math.min(more.length - 1, Math.floor(this.activeMs(startAt) / this.#state.bucketMs));
      more[at] = (more[at] ?? 0) + heldNowUsd / open.length;
    }
    let heldUsd = 0;
    return more.map((each, at) => {
      heldUsd = Math.max(0, heldUsd + each);
      return { activeMs: at * this.#state.bucketMs, heldUsd: heldUsd < 1e-9 ? 0 : heldUsd };
    });
  }

  /** Number of the last event at or before a time, as exactly as the spans are. */
  seqAt(at: number): number {
    const index = Math.floor(this.activeMs(at) / this.#state.bucketMs);
    return this.#state.buckets[Math.max(0, Math.min(this.#state.buckets.length - 1, index))]?.lastSeq ?? 0;
  }

  #hold(at: number, moreUsd: number): void {
    const bucket = this.#state.buckets[Math.floor(this.activeMs(at) / this.#state.bucketMs)];
    if (bucket !== undefined) bucket.heldMoreUsd += moreUsd;
    else this.#state.later.push({ at, moreUsd });
  }

  #count(passedMs: number, seq: number): void {
    while (passedMs / this.#state.bucketMs >= mostBuckets) this.#merge();
    const at = Math.floor(passedMs / this.#state.bucketMs);
    while (this.#state.buckets.length <= at) this.#state.buckets.push({ events: 0, lastSeq: seq - 1, heldMoreUsd: 0 });
    const bucket = this.#state.buckets[at];
    if (bucket === undefined) return;
    bucket.events++;
    bucket.lastSeq = seq;
    for (const { at: heldAt, moreUsd } of this.#state.later.splice(0)) this.#hold(heldAt, moreUsd);
  }

  /** Doubles the length of the spans. */
  #merge(): void {
    const merged: Bucket[] = [];
    for (let at = 0; at < this.#state.buckets.length; at += 2) {
      const [one, other] = [this.#state.buckets[at], this.#state.buckets[at + 1]];
      if (one !== undefined)
        merged.push({
          events: one.events + (other?.events ?? 0),
          lastSeq: other?.lastSeq ?? one.lastSeq,
          heldMoreUsd: one.heldMoreUsd + (other?.heldMoreUsd ?? 0),
        });
    }
    this.#state.buckets = merged;
    this.#state.bucketMs *= 2;
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
