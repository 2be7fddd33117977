import type { Delta, Event, RunHandle, RunId } from "../../../kernel/index.ts";
import { sseFrame, type SseStream } from "./sse-stream.ts";

/** Maximum number of characters of one chunk of stored events. */
const chunkChars = 65_536;
/**
 * Time between two chunks for each watcher of a run: the first value for up to 100 watchers, the second for more.
 * Many watchers get fewer and larger chunks, so that the total effort stays limited. Measured in the bench
 * `server`, row "CPU of a run with 500 watchers".
 */
const msPerWatcher = { few: 0.2, many: 0.5 };
const fewWatchers = 100;
const maxDelayMs = 250;
const encoder = new TextEncoder();

export interface FollowOptions {
  /** Seq of the first event. */
  readonly from: number;
  readonly deltas: boolean;
}

/** The channels of all watched runs. The log of a run is read and encoded only once for all its watchers. */
export class RunHub {
  readonly #channels = new Map<RunId, RunChannel>();

  /** Sends the events of a run to a stream until the run ends or the reader leaves. */
  async follow(run: RunHandle, stream: SseStream, { from, deltas }: FollowOptions): Promise<void> {
    let next = from;
    while (!stream.isOver) {
      next = await sendStored(run, stream, next);
      if (stream.isOver) return;
      const channel = this.#channel(run, next);
      if (channel.next === next) {
        await channel.join(stream, deltas);
        return;
      }
      // The channel is behind what the store has, or ahead of what this reader has got.
      if (channel.next < next) await channel.reached(next);
    }
  }

  #channel(run: RunHandle, next: number): RunChannel {
    const known = this.#channels.get(run.runId);
    if (known !== undefined) return known;
    const channel = new RunChannel(run, next, () => {
      if (this.#channels.get(run.runId) === channel) this.#channels.delete(run.runId);
    });
    this.#channels.set(run.runId, channel);
    return channel;
  }
}

/**
 * Sends the stored events from a sequence number on, in large chunks, as fast as the reader reads. Returns the
 * sequence number of the next event.
 */
async function sendStored(run: RunHandle, stream: SseStream, from: number): Promise<number> {
  let next = from;
  let chunk = "";
  for await (const event of run.events({ fromSeq: from, follow: false })) {
    if (!("seq" in event)) continue;
    chunk += eventFrame(event);
    next = event.seq + 1;
    if (chunk.length < chunkChars) continue;
    if (!(await stream.send(chunk))) return next;
    chunk = "";
  }
  if (chunk !== "") await stream.send(chunk);
  return next;
}

interface Watcher {
  readonly stream: SseStream;
  readonly deltas: boolean;
  readonly leave: () => void;
}

interface OpenDelta {
  /** Identifies the message or tool call to which the delta belongs. */
  readonly about: string;
  readonly frame: string;
  /** Whether the watchers have got it. */
  isSent: boolean;
}

/** The live part of one run's log, for all its watchers. */
class RunChannel {
  /** Sequence number of the first event that the watchers have not received. */
  next: number;
  readonly #run: RunHandle;
  readonly #onOver: () => void;
  readonly #stop = new AbortController();
  readonly #watchers = new Set<Watcher>();
  /** Frames that are not sent yet, including deltas and without deltas. */
  #pending: string[] = [];
  #pendingEvents: string[] = [];
  #pendingNext: number;
  /** Deltas of messages and tool calls that are not recorded yet, for watchers that join later (rule E2). */
  #openDeltas: OpenDelta[] = [];
  #isScheduled = false;
  #flushedAt = 0;
  #waiting: { readonly seq: number; readonly resolve: () => void }[] = [];
  #isOver = false;

  constructor(run: RunHandle, next: number, onOver: () => void) {
    this.#run = run;
    this.next = next;
    this.#pendingNext = next;
    this.#onOver = onOver;
    this.#read = this.#readAll();
    // Watchers wait for the promise and report its error. A channel may end before its first watcher has joined.
    this.#read.catch(() => undefined);
  }

  readonly #read: Promise<void>;

  /**
   * Adds a watcher that has received all events before `next`. Resolves when the run has ended or the watcher has
   * left.
   */
  async join(stream: SseStream, deltas: boolean): Promise<void> {
    const left = Promise.withResolvers<void>();
    const watcher: Watcher = { stream, deltas, leave: () => left.resolve() };
    if (deltas)
      for (const { frame, isSent } of this.#openDeltas) if (isSent) stream.push(encoder.encode(frame));
    this.#watchers.add(watcher);
    stream.signal.addEventListener("abort", watcher.leave, { once: true });
    await Promise.race([left.promise, this.#read]);
    stream.signal.removeEventListener("abort", watcher.leave);
    this.#watchers.delete(watcher);
    // The run continues without watchers (C3); only the reading of its log stops.
    if (this.#watchers.size === 0) this.#end();
  }

  /** Resolves when the watchers have received all events before a sequence number, or the channel has ended. */
  reached(seq: number): Promise<void> {
    if (this.next >= seq || this.#isOver) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push({ seq, resolve }));
  }

  async #readAll(): Promise<void> {
    let end: Event<"run_end"> | undefined;
    try {
      for await (const item of this.#run.events({ fromSeq: this.next, signal: this.#stop.signal })) {
        if ("seq" in item) this.#addEvent(item);
        else this.#addDelta(item);
        if (item.type !== "usage_corrected") end = item.type === "run_end" ? item : undefined;
        this.#schedule();
      }
    } finally {
      this.#flush();
      this.#end();
    }
    const last = encoder.encode(sseFrame({ status: end?.data.status ?? null }, { event: "end" }));
    for (const { stream } of this.#watchers) stream.push(last);
  }

  #addEvent(event: Event): void {
    const frame = eventFrame(event);
    this.#pending.push(frame);
    this.#pendingEvents.push(frame);
    this.#pendingNext = event.seq + 1;
    const about = recordedBy(event);
    if (about !== undefined) this.#openDeltas = this.#openDeltas.filter((each) => each.about !== about);
  }

  #addDelta(delta: Delta): void {
    const frame = sseFrame(delta);
    this.#pending.push(frame);
    const about = aboutOf(delta);
    if (delta.type === "message_reset")
      this.#openDeltas = this.#openDeltas.filter((each) => each.about !== about);
    this.#openDeltas.push({ about, frame, isSent: false });
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    const { size } = this.#watchers;
    const interval = Math.min(maxDelayMs, size * msPerWatcher[size > fewWatchers ? "many" : "few"]);
    const delay = this.#flushedAt + interval - performance.now();
    if (delay < 1) setImmediate(() => this.#flush());
    else setTimeout(() => this.#flush(), delay);
  }

  #flush(): void {
    this.#isScheduled = false;
    this.#flushedAt = performance.now();
    if (this.#pending.length === 0) return;
    const all = encoder.encode(this.#pending.join(""));
    const events =
      this.#pending.length === this.#pendingEvents.length
        ? all
        : encoder.encode(this.#pendingEvents.join(""));
    this.#pending = [];
    this.#pendingEvents = [];
    for (const each of this.#openDeltas) each.isSent = true;
    this.next = this.#pendingNext;
    for (const { stream, deltas } of this.#watchers) {
      const bytes = deltas ? all : events;
      if (bytes.byteLength > 0) stream.push(bytes);
    }
    this.#notify();
  }

  #notify(): void {
    const due = this.#waiting.filter(({ seq }) => this.#isOver || seq <= this.next);
    this.#waiting = this.#waiting.filter((each) => !due.includes(each));
    for (const { resolve } of due) resolve();
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stop.abort();
    this.#onOver();
    this.#notify();
  }
}

function eventFrame(event: Event): string {
  return `id: ${event.seq}\ndata: ${JSON.stringify(event)}\n\n`;
}

/** Returns a name for the message of a task, or the tool call, to which a delta belongs. */
function aboutOf(delta: Delta): string {
  return delta.type === "tool_execution_update" ? `${delta.taskId} ${delta.callId}` : delta.taskId;
}

/** Returns the name of the message or tool call that an event records, as in `aboutOf`. */
function recordedBy({ type, taskId, data }: Event): string | undefined {
  if (type === "tool_execution_end") return `${taskId} ${data.callId}`;
  return type === "message_end" ? taskId : undefined;
}
