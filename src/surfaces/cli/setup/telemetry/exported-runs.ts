import type { Commit, Event, Lease, Rest, RunId, Store } from "../../../../kernel/index.ts";
import { findStarter, sha256Hex } from "../../../../runtime/index.ts";
import type { StoreObserver } from "../observed-store.ts";
import type { OtlpExporter } from "./otlp-exporter.ts";
import { RunSpans, taskKey, type RunSpan } from "./run-spans.ts";

export interface ExportedRunsOptions {
  /** The store, without observers. */
  readonly store: Store;
  readonly exporter: OtlpExporter;
  readonly hasContent: boolean;
  /**
   * How much of the work of a lost owner is exported again, in milliseconds before its last event: what it may have collected and
   * not sent.
   */
  readonly repeatMs: number;
  readonly onError: (error: unknown) => void;
}

/** How many runs without a lease keep their state in memory, so that a new lease need not read their logs from the start. */
const mostReleased = 500;

/**
 * Exports the spans of the runs that this process owns. A span is exported by the process that commits its end, so that it is
 * exported once. The ids follow from the ids of the run, so that all processes add to one trace. A new owner exports again what
 * the lost one may not have sent; the spans have the same ids.
 */
export class ExportedRuns implements StoreObserver {
  readonly #options: ExportedRunsOptions;
  readonly #runs = new Map<RunId, ExportedRun>();
  /** The runs without a lease, the one that was released first at the start. */
  readonly #released = new Set<RunId>();
  /** The commits that are being read. They never reject. */
  readonly #reading = new Set<Promise<void>>();

  constructor(options: ExportedRunsOptions) {
    this.#options = options;
  }

  claimed({ runId, recoveries = 0 }: Lease): void {
    const run = this.#runs.get(runId) ?? new ExportedRun(runId, this.#options);
    this.#released.delete(runId);
    this.#runs.set(runId, run);
    if (recoveries > 0) run.takeOver();
  }

  committed({ runId }: Lease, { events = [] }: Commit): void {
    const run = events.length === 0 ? undefined : this.#runs.get(runId);
    if (run === undefined) return;
    const reading = run.add(events);
    this.#reading.add(reading);
    void reading.then(() => this.#reading.delete(reading));
  }

  released({ runId }: Lease, { kind }: Rest): void {
    const run = this.#runs.get(runId);
    if (run === undefined) return;
    if (kind === "ended") this.#forget(runId);
    else this.#released.add(runId);
    const [oldest] = this.#released;
    if (oldest !== undefined && this.#released.size > mostReleased) this.#forget(oldest);
    // What waits to be sent would be lost with this process, and a run that ended or waits may have no next owner for a long time.
    void run.isRead().then(() => this.#options.exporter.flushSoon());
  }

  leaseLost({ runId }: Lease): void {
    this.#forget(runId);
  }

  /** Waits until all commits have been read, and closes the exporter. */
  async close(): Promise<void> {
    await Promise.all(this.#reading);
    await this.#options.exporter.close();
  }

  #forget(runId: RunId): void {
    this.#runs.delete(runId);
    this.#released.delete(runId);
  }
}

/** One run, from its first commit in this process on. Its events are read in their order, one after another. */
class ExportedRun {
  readonly #runId: RunId;
  readonly #options: ExportedRunsOptions;
  #spans: RunSpans | undefined;
  #traceId = "";
  /** Span of the task of another run that has started this one. */
  #starter: string | undefined;
  /** Number of the next event that `#spans` reads. */
  #nextSeq = 0;
  #work: Promise<void> = Promise.resolve();
  #hasFailed = false;
  /** Whether the run has an owner that was lost before this claim, and no event has been read since. */
  #isTakenOver = false;
  /** Receives the spans of the events that are read at the moment. */
  #take: (span: RunSpan) => void = () => undefined;

  constructor(runId: RunId, options: ExportedRunsOptions) {
    this.#runId = runId;
    this.#options = options;
  }

  /** Says that the last owner was lost. */
  takeOver(): void {
    this.#isTakenOver = true;
  }

  /** Resolves when all events that were added have been read. Never rejects. */
  isRead(): Promise<void> {
    return this.#work;
  }

  /** Reads the events of a commit after those of earlier ones. Never rejects. */
  add(events: readonly Event[]): Promise<void> {
    this.#work = this.#readAfter(this.#work, events);
    return this.#work;
  }

  async #readAfter(earlier: Promise<void>, events: readonly Event[]): Promise<void> {
    await earlier;
    if (this.#hasFailed) return;
    try {
      await this.#read(events);
    } catch (error) {
      this.#hasFailed = true;
      this.#options.onError(error);
    }
  }

  async #read(events: readonly Event[]): Promise<void> {
    const spans = (this.#spans ??= await this.#open());
    const [first] = events;
    if (first !== undefined && first.seq > this.#nextSeq) await this.#catchUp(spans, first.seq);
    this.#isTakenOver = false;
    this.#take = (span) => {
      this.#export(span);
      this.#options.exporter.measure(span);
    };
    for (const event of events) this.#readOne(spans, event);
  }

  /** Reads the events that other processes have committed. They have exported their spans, except for what a lost one had not sent. */
  async #catchUp(spans: RunSpans, until: number): Promise<void> {
    let repeated: RunSpan[] = [];
    let lastAt = 0;
    const isRecent = ({ endAt }: RunSpan): boolean => endAt >= lastAt - this.#options.repeatMs;
    this.#take = (span) => {
      if (!this.#isTakenOver) return;
      repeated.push(span);
      if (repeated.length % 1_000 === 0) repeated = repeated.filter(isRecent);
    };
    for await (const event of this.#options.store.events.read(this.#runId, this.#nextSeq)) {
      if (event.seq >= until) break;
      this.#readOne(spans, event);
      lastAt = event.at;
    }
    for (const span of repeated.filter(isRecent)) this.#export(span);
  }

  #readOne(spans: RunSpans, event: Event): void {
    spans.add(event);
    this.#nextSeq = event.seq + 1;
  }

  async #open(): Promise<RunSpans> {
    const { store, hasContent } = this.#options;
    const record = await store.journal.find(this.#runId);
    const { kind = "invocation", tenantId = null } = record ?? {};
    const starter = record === undefined ? undefined : await findStarter(store, record);
    this.#traceId = traceIdOf(starter?.rootId ?? this.#runId);
    this.#starter = starter && spanIdOf(starter.runId, taskKey(starter.taskId));
    return new RunSpans(
      { runId: this.#runId, kind, tenantId },
      { hasContent, onEnd: (span) => this.#take(span) },
    );
  }

  #export(span: RunSpan): void {
    const { exporter } = this.#options;
    if (!exporter.isSampled(this.#traceId)) return;
    exporter.addSpan(span, {
      traceId: this.#traceId,
      spanId: spanIdOf(this.#runId, span.key),
      parentSpanId: span.parentKey === null ? this.#starter : spanIdOf(this.#runId, span.parentKey),
    });
  }
}

/** The id of the trace of a tree of runs: 16 bytes. */
export function traceIdOf(rootRunId: string): string {
  return sha256Hex(`trace ${rootRunId}`).slice(0, 32);
}

/** The id of a span: 8 bytes. */
function spanIdOf(runId: string, key: string): string {
  return sha256Hex(`span ${runId} ${key}`).slice(0, 16);
}
