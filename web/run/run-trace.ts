import type { Event, TaskId, TopUp } from "../../src/kernel/index.ts";
import type { StepView } from "../../src/surfaces/view/step-log.ts";

const mostBuckets = 240;
const firstBucketMs = 1;
const mostPoints = 2_000;

interface Bucket {
  events: number;
  /** Number of the last event in the bucket, or of the last one before it. */
  lastSeq: number;
  /** Price of the calls that started in the bucket. */
  heldUsd: number;
  /** Price of the calls that ended in the bucket, and the time of the last of these ends. */
  releasedUsd: number;
  releasedMs: number;
}

const emptyBucket: Omit<Bucket, "lastSeq"> = { events: 0, heldUsd: 0, releasedUsd: 0, releasedMs: 0 };

/** What was held from `activeMs` after the start, without the time of crashes, until the next of these. */
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

/** What a caller added to the budget of a task. The value is the money. */
export interface TopUpPoint extends TracePoint {
  readonly add: Partial<TopUp>;
  readonly by: string;
}

/**
 * What the dock and the timeline draw over time. The time of crashes is left out, and that before the start of a fork. An event costs O(1) on average, and the
 * size is bounded.
 */
export class RunTrace {
  #startAt: number | null = null;
  #lastAt = 0;
  #stops: { readonly toAt: number; readonly downMs: number }[] = [];
  readonly #topUps = new Map<TaskId, TopUpPoint[]>();
  /** Changes of what is held after the last span. */
  #later: { readonly at: number; readonly moreUsd: number }[] = [];
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
    if ((event.type === "run_recover" && event.data.recoveries !== undefined) || type === "run_fork")
      this.#stops.push({ toAt: at, downMs: at - this.#lastAt });
    if (type === "run_fork") this.#forgetMoney();
    this.#lastAt = at;
    if (event.type === "budget_top_up") this.#addTopUp(event);
    this.#spentUsd += costOf(event);
    this.#count(this.activeMs(at), seq);
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

  /** What was added to the budget of a task, and when. */
  topUpsOf(taskId: TaskId): readonly TopUpPoint[] {
    return this.#topUps.get(taskId) ?? [];
  }

  /** Numbers of events in equal spans of time, from the start to the last event. */
  get density(): readonly number[] {
    return this.#buckets.map(({ events }) => events);
  }

  /** Number of the last event of each span, or of the last one before it. */
  get lastSeqs(): readonly number[] {
    return this.#buckets.map(({ lastSeq }) => lastSeq);
  }

  /** Length of one span, in milliseconds. */
  get spanMs(): number {
    return this.#bucketMs;
  }

  /** Time from the start to a time, without the time of crashes. */
  activeMs(at: number): number {
    const down = this.#stops.reduce((sum, { toAt, downMs }) => sum + (toAt <= at ? downMs : 0), 0);
    return Math.max(0, at - (this.#startAt ?? at) - down);
  }

  /** Adds a step that has ended. While a model call is in flight, its price is held. */
  addEnded({ kind, startAt, endAt, costUsd }: StepView): void {
    if (kind !== "model" || endAt === null || costUsd === null || costUsd === 0) return;
    this.#hold(startAt, costUsd);
    this.#hold(endAt, -costUsd);
  }

  /**
   * What was held over time. It rises with the span of time in which a call started, and falls when the last call of a span
   * has ended. Calls that are in flight now share what is held now.
   */
  held(open: readonly StepView[], heldNowUsd: number): readonly HeldSpan[] {
    const more = this.#buckets.map(({ heldUsd }) => heldUsd);
    for (const { startAt } of open) {
      const at = Math.min(more.length - 1, Math.floor(this.activeMs(startAt) / this.#bucketMs));
      more[at] = (more[at] ?? 0) + heldNowUsd / open.length;
    }
    const spans: HeldSpan[] = [];
    let sum = 0;
    const change = (activeMs: number, moreUsd: number): void => {
      sum += moreUsd;
      spans.push({ activeMs, heldUsd: sum < 1e-9 ? 0 : sum });
    };
    for (const [at, { releasedUsd, releasedMs }] of this.#buckets.entries()) {
      change(at * this.#bucketMs, more[at] ?? 0);
      if (releasedUsd > 0) change(releasedMs, -releasedUsd);
    }
    return spans;
  }

  /** Number of the last event at or before a time, as exactly as the spans are. */
  seqAt(at: number): number {
    const index = Math.floor(this.activeMs(at) / this.#bucketMs);
    return this.#buckets[Math.max(0, Math.min(this.#buckets.length - 1, index))]?.lastSeq ?? 0;
  }

  #addTopUp({ at, seq, data: { taskId, add, by } }: Event<"budget_top_up">): void {
    const points = this.#topUps.get(taskId) ?? [];
    this.#topUps.set(taskId, added(points, { at, seq, value: add.maxCostUsd ?? 0, add, by }));
  }

  /** A fork has not paid for what it shares. */
  #forgetMoney(): void {
    this.#spentUsd = 0;
    this.#spend = [];
    this.#later = [];
    for (const bucket of this.#buckets) Object.assign(bucket, { heldUsd: 0, releasedUsd: 0, releasedMs: 0 });
  }

  #hold(at: number, moreUsd: number): void {
    const activeMs = this.activeMs(at);
    const bucket = this.#buckets[Math.floor(activeMs / this.#bucketMs)];
    if (bucket === undefined) this.#later.push({ at, moreUsd });
    else if (moreUsd > 0) bucket.heldUsd += moreUsd;
    else {
      bucket.releasedUsd -= moreUsd;
      bucket.releasedMs = Math.max(bucket.releasedMs, activeMs);
    }
  }

  #count(passedMs: number, seq: number): void {
    while (passedMs / this.#bucketMs >= mostBuckets) this.#merge();
    const at = Math.floor(passedMs / this.#bucketMs);
    while (this.#buckets.length <= at) this.#buckets.push({ ...emptyBucket, lastSeq: seq - 1 });
    const bucket = this.#buckets[at];
    if (bucket === undefined) return;
    bucket.events++;
    bucket.lastSeq = seq;
    for (const { at: heldAt, moreUsd } of this.#later.splice(0)) this.#hold(heldAt, moreUsd);
  }

  /** Doubles the length of the spans. */
  #merge(): void {
    const merged: Bucket[] = [];
    for (let at = 0; at < this.#buckets.length; at += 2) {
      const [one, other] = [this.#buckets[at], this.#buckets[at + 1]];
      if (one !== undefined)
        merged.push({
          events: one.events + (other?.events ?? 0),
          lastSeq: other?.lastSeq ?? one.lastSeq,
          heldUsd: one.heldUsd + (other?.heldUsd ?? 0),
          releasedUsd: one.releasedUsd + (other?.releasedUsd ?? 0),
          releasedMs: Math.max(one.releasedMs, other?.releasedMs ?? 0),
        });
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
function added<Point extends TracePoint>(points: Point[], point: Point): Point[] {
  points.push(point);
  return points.length > mostPoints
    ? points.filter((_each, at) => at % 2 === 1 || at === points.length - 1)
    : points;
}
