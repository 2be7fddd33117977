import {
  allRuns,
  type Event,
  type RunHandle,
  type RunId,
  type Runtime,
  type RunSummary,
} from "../../../kernel/index.ts";
import type { RunChanges } from "./run-changes.ts";
import { BatchWriter } from "./batch-writer.ts";
import type { SessionPosition } from "./session-position.ts";
import { sseFrame, type SseStream } from "./sse-stream.ts";

export interface SessionStreamOptions {
  readonly runtime: Runtime;
  readonly sessionId: string;
  readonly from: SessionPosition;
  readonly changes: Pick<RunChanges, "listen">;
}

/**
 * Sends the events of a session's runs, one run after the other in the order of their creation, until the reader
 * leaves. The id of an event is a `SessionPosition`. If a run is resumed after its end, its later events are sent,
 * too.
 */
export async function followSession(stream: SseStream, options: SessionStreamOptions): Promise<void> {
  const { runtime, sessionId, from, changes } = options;
  const reader = new SessionReader(stream, from);
  const due = new DueRuns();
  const meanwhile: RunId[] = [];
  let isListed = false;
  await changes.listen((changed) => {
    // The oldest of them first.
    for (const { runId, endedAt, sessionId: of } of changed.toReversed()) {
      if (of !== sessionId || (endedAt !== null && reader.hasSent(runId))) continue;
      if (isListed) due.add(runId);
      else meanwhile.push(runId);
    }
  }, stream.signal);
  for (const runId of await reader.list(options)) due.add(runId);
  for (const runId of meanwhile) due.add(runId);
  isListed = true;
  while (!stream.isOver) {
    const runId = await due.next(stream.signal);
    if (runId === undefined) return;
    const run = await runtime.find(runId);
    if (run !== undefined) await reader.send(run);
  }
}

/** Remembers which events one reader of a session has received. */
class SessionReader {
  readonly #stream: SseStream;
  readonly #position: SessionPosition;
  /** The runs whose first end was sent. */
  readonly #ended: Set<RunId>;
  /** The index of each run in the order of creation. */
  readonly #places = new Map<RunId, number>();

  constructor(stream: SseStream, position: SessionPosition) {
    this.#stream = stream;
    this.#position = position;
    this.#ended = new Set(position.resumed);
  }

  hasSent(runId: RunId): boolean {
    return this.#position.next.has(runId);
  }

  /** Returns the runs that may have events for this reader, oldest first. */
  async list({ runtime, sessionId }: SessionStreamOptions): Promise<readonly RunId[]> {
    const runs: RunSummary[] = [];
    for await (const run of allRuns(runtime, { sessionId })) runs.push(run);
    runs.reverse();
    for (const { runId } of runs) this.#place(runId);
    const newest = runs.findIndex(({ runId }) => runId === this.#position.newest);
    const due: RunId[] = [];
    for (const [place, { runId, endedAt }] of runs.entries()) {
      const isOlder = place < newest;
      const isPast = endedAt !== null && endedAt < (runs[newest]?.createdAt ?? 0);
      if (isOlder && isPast && !this.hasSent(runId)) continue;
      if (isOlder || place === newest) await this.#passFirstEnd(runtime, runId);
      due.push(runId);
    }
    return due;
  }

  /** Notes that the reader has received a run up to its first end. Later events exist only if the run was resumed. */
  async #passFirstEnd(runtime: Runtime, runId: RunId): Promise<void> {
    const { next } = this.#position;
    const run = await runtime.find(runId);
    for await (const end of run?.events({ types: ["run_end"], follow: false }) ?? []) {
      if (!("seq" in end)) continue;
      if (!next.has(runId)) next.set(runId, end.seq + 1);
      if (end.seq < (next.get(runId) ?? 0)) this.#ended.add(runId);
      return;
    }
  }

  /** Sends the events of one run until it ends. */
  async send(run: RunHandle): Promise<void> {
    const { next } = this.#position;
    const writer = new BatchWriter(this.#stream);
    for await (const item of run.events({ fromSeq: next.get(run.runId) ?? 0, signal: this.#stream.signal }))
      await writer.add("seq" in item ? this.#frame(item) : sseFrame(item));
    await writer.flush();
  }

  #frame(event: Event): string {
    const position = this.#position;
    const { runId, seq } = event;
    if (this.#place(runId) > this.#place(position.newest)) position.newest = runId;
    position.next.set(runId, seq + 1);
    if (this.#ended.has(runId)) position.resumed.add(runId);
    if (event.type === "run_end") this.#ended.add(runId);
    return sseFrame(event, { id: String(position) });
  }

  #place(runId: RunId | undefined): number {
    if (runId === undefined) return -1;
    const place = this.#places.get(runId) ?? this.#places.size;
    this.#places.set(runId, place);
    return place;
  }
}

/** A queue of runs to send. Each run is contained only once, in the order of arrival. */
class DueRuns {
  readonly #due = new Set<RunId>();
  #wake: (() => void) | undefined;

  add(runId: RunId): void {
    this.#due.add(runId);
    this.#wake?.();
  }

  /** Waits for the next run. Returns `undefined` when the signal has aborted. */
  async next(signal: AbortSignal): Promise<RunId | undefined> {
    while (this.#due.size === 0 && !signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#wake = () => resolve();
        signal.addEventListener("abort", this.#wake, { once: true });
      });
      if (this.#wake !== undefined) signal.removeEventListener("abort", this.#wake);
      this.#wake = undefined;
    }
    const [first] = this.#due;
    if (first === undefined || signal.aborted) return undefined;
    this.#due.delete(first);
    return first;
  }
}
