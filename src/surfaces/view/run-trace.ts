import type { Event, TaskId, TopUp } from "../../kernel/index.ts";
import type { AfterEvent } from "./run-fold.ts";
import type { StepView } from "./step-log.ts";

const mostBuckets = 240;
const firstBucketMs = 1;
const mostPoints = 2_000;

interface Bucket {
  events: number;
  /** Sequence number of the last event in the bucket, or else of the last event before it. */
  lastSeq: number;
  /** Estimated price of the calls that started in the bucket. */
  heldUsd: number;
  /** Estimated price of the calls that ended in the bucket, and the time of the last of these ends. */
  releasedUsd: number;
  releasedMs: number;
}

const emptyBucket: Omit<Bucket, "lastSeq"> = { events: 0, heldUsd: 0, releasedUsd: 0, releasedMs: 0 };

/** The amount reserved from `activeMs` after the start (not counting the time of crashes) until the next span. */
export interface HeldSpan {
  readonly activeMs: number;
  readonly heldUsd: number;
}

/** A value that is valid from a time until the next point. */
export interface TracePoint {
  readonly at: number;
  readonly seq: number;
  readonly value: number;
}

/** A top-up of a task's budget by a caller. The value is the amount. */
export interface TopUpPoint extends TracePoint {
  readonly add: Partial<TopUp>;
  readonly by: string;
}

/** What a trace consists of, as JSON. */
export interface StoredTrace {
  /** Time of the first event. `null` before the first event. */
  startAt: number | null;
  lastAt: number;
  spentUsd: number;
  bucketMs: number;
  buckets: Bucket[];
  /** Changes of the reserved amount after the last span. */
  later: { readonly at: number; readonly moreUsd: number }[];
  /** Times that are left out. */
  readonly stops: { readonly toAt: number; readonly downMs: number }[];
  readonly topUps: Partial<Record<TaskId, TopUpPoint[]>>;
  spend: TracePoint[];
  seats: TracePoint[];
  handovers: TracePoint[];
}

/**
 * Data for drawings over time in the dock and in the timeline. The time of crashes and waits is left out, and so is
 * the time before the start of a fork. An event takes O(1) on average, and the size of the data is limited.
 */
export class RunTrace {
  readonly #state: StoredTrace;

  /** The trace continues `from` and changes this object. If absent, it starts before the first event. */
  constructor(from?: StoredTrace) {
    this.#state = from ?? {
      startAt: null,
      lastAt: 0,
      spentUsd: 0,
      bucketMs: firstBucketMs,
      buckets: [],
      later: [],
      stops: [],
      topUps: {},
      spend: [],
      seats: [],
      handovers: [],
    };
  }

  /** The data of the trace. They change with the next event. */
  get stored(): StoredTrace {
    return this.#state;
  }

  /** Adds an event, with what it left behind. */
  add(event: Event, { seats, isWaitOver }: AfterEvent): void {
    const { seq, at, type } = event;
    this.#state.startAt ??= at;
    const isCrash = event.type === "run_recover" && event.data.recoveries !== undefined;
    if (isCrash || isWaitOver || type === "run_fork")
      this.#state.stops.push({ toAt: at, downMs: at - this.#state.lastAt });
    if (type === "run_fork") this.#forgetMoney();
    this.#state.lastAt = at;
    if (event.type === "budget_top_up") this.#addTopUp(event);
    this.#state.spentUsd += costOf(event);
    this.#count(this.activeMs(at), seq);
    if (type === "seat_yield") this.#state.handovers = added(this.#state.handovers, { at, seq, value: 1 });
    if (this.#state.seats.at(-1)?.value !== seats)
      this.#state.seats = added(this.#state.seats, { at, seq, value: seats });
    const { value } = this.#state.spend.at(-1) ?? {};
    if (value !== this.#state.spentUsd)
      this.#state.spend = added(this.#state.spend, { at, seq, value: this.#state.spentUsd });
  }

  get spend(): readonly TracePoint[] {
    return this.#state.spend;
  }

  get seats(): readonly TracePoint[] {
    return this.#state.seats;
  }

  /** The times at which a task yielded its seat to another task. */
  get handovers(): readonly TracePoint[] {
    return this.#state.handovers;
  }

  /** Returns the top-ups of a task's budget, with their times. */
  topUpsOf(taskId: TaskId): readonly TopUpPoint[] {
    return this.#state.topUps[taskId] ?? [];
  }

  /** Numbers of events in time spans of equal length, from the start to the last event. */
  get density(): readonly number[] {
    return this.#state.buckets.map(({ events }) => events);
  }

  /** For each time span, the sequence number of its last event, or else of the last event before it. */
  get lastSeqs(): readonly number[] {
    return this.#state.buckets.map(({ lastSeq }) => lastSeq);
  }

  /** Length of one span, in milliseconds. */
  get spanMs(): number {
    return this.#state.bucketMs;
  }

  /** Converts a time to milliseconds since the start, without the time of crashes. */
  activeMs(at: number): number {
    const down = this.#state.stops.reduce((sum, { toAt, downMs }) => sum + (toAt <= at ? downMs : 0), 0);
    return Math.max(0, at - (this.#state.startAt ?? at) - down);
  }

  /** Adds a step that has ended. While a model call is in progress, its price is reserved. */
  addEnded({ kind, startAt, endAt, costUsd }: StepView): void {
    if (kind !== "model" || endAt === null || costUsd === null || costUsd === 0) return;
    this.#hold(startAt, costUsd);
    this.#hold(endAt, -costUsd);
  }

  /**
   * Returns the reserved amount over time. It increases in the time span in which a call started, and decreases
   * when the last call of a span has ended. The amount that is reserved now is divided among the calls that are in
   * progress now.
   */
  held(open: readonly StepView[], heldNowUsd: number): readonly HeldSpan[] {
    const more = this.#state.buckets.map(({ heldUsd }) => heldUsd);
    for (const { startAt } of open) {
      const at = Math.min(more.length - 1, Math.floor(this.activeMs(startAt) / this.#state.bucketMs));
      more[at] = (more[at] ?? 0) + heldNowUsd / open.length;
    }
    const spans: HeldSpan[] = [];
    let sum = 0;
    const change = (activeMs: number, moreUsd: number): void => {
      sum += moreUsd;
      spans.push({ activeMs, heldUsd: sum < 1e-9 ? 0 : sum });
    };
    for (const [at, { releasedUsd, releasedMs }] of this.#state.buckets.entries()) {
      change(at * this.#state.bucketMs, more[at] ?? 0);
      if (releasedUsd > 0) change(releasedMs, -releasedUsd);
    }
    return spans;
  }

  /** Returns the sequence number of the last event at or before a time, with the accuracy of the time spans. */
  seqAt(at: number): number {
    const index = Math.floor(this.activeMs(at) / this.#state.bucketMs);
    return this.#state.buckets[Math.max(0, Math.min(this.#state.buckets.length - 1, index))]?.lastSeq ?? 0;
  }

  #addTopUp({ at, seq, data: { taskId, add, by } }: Event<"budget_top_up">): void {
    const { topUps } = this.#state;
    topUps[taskId] = added(topUps[taskId] ?? [], { at, seq, value: add.maxCostUsd ?? 0, add, by });
  }

  /** A fork has not paid for what it shares. */
  #forgetMoney(): void {
    this.#state.spentUsd = 0;
    this.#state.spend = [];
    this.#state.later = [];
    for (const bucket of this.#state.buckets)
      Object.assign(bucket, { heldUsd: 0, releasedUsd: 0, releasedMs: 0 });
  }

  #hold(at: number, moreUsd: number): void {
    const activeMs = this.activeMs(at);
    const bucket = this.#state.buckets[Math.floor(activeMs / this.#state.bucketMs)];
    if (bucket === undefined) this.#state.later.push({ at, moreUsd });
    else if (moreUsd > 0) bucket.heldUsd += moreUsd;
    else {
      bucket.releasedUsd -= moreUsd;
      bucket.releasedMs = Math.max(bucket.releasedMs, activeMs);
    }
  }

  #count(passedMs: number, seq: number): void {
    while (passedMs / this.#state.bucketMs >= mostBuckets) this.#merge();
    const at = Math.floor(passedMs / this.#state.bucketMs);
    while (this.#state.buckets.length <= at) this.#state.buckets.push({ ...emptyBucket, lastSeq: seq - 1 });
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
          heldUsd: one.heldUsd + (other?.heldUsd ?? 0),
          releasedUsd: one.releasedUsd + (other?.releasedUsd ?? 0),
          releasedMs: Math.max(one.releasedMs, other?.releasedMs ?? 0),
        });
    }
    this.#state.buckets = merged;
    this.#state.bucketMs *= 2;
  }
}

function costOf(event: Event): number {
  if (event.type === "message_end" || event.type === "metered_call") return event.data.usage?.costUsd ?? 0;
  if (event.type === "usage_corrected")
    return (event.data.usage.costUsd ?? 0) - (event.data.charged.costUsd ?? 0);
  return event.type === "budget_lost" ? (event.data.costUsd ?? 0) : 0;
}

/** Adds a point. If the list becomes too long, every second point is removed. */
function added<Point extends TracePoint>(points: Point[], point: Point): Point[] {
  points.push(point);
  return points.length > mostPoints
    ? points.filter((_each, at) => at % 2 === 1 || at === points.length - 1)
    : points;
}
