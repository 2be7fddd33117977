import type { Delta, Event, RunHandle, RunId, Runtime } from "../../../kernel/index.ts";
import { allRuns, type RunChanges } from "./run-changes.ts";
import { BatchWriter } from "./batch-writer.ts";
import { sseFrame, type SseStream } from "./sse-stream.ts";

interface SessionPosition {
  readonly runId: RunId;
  /** Seq of the first event of this run that is sent. */
  readonly seq: number;
}

export interface SessionStreamOptions {
  readonly runtime: Runtime;
  readonly sessionId: string;
  /** If absent, the stream starts with the first run of the session. */
  readonly from: SessionPosition | undefined;
  readonly changes: RunChanges;
}

/**
 * Sends the events of a session's runs, one run after the other in the order of their creation, until the reader leaves.
 * The id of an event is `RUN:SEQ`. A run that is resumed after its end is sent again from where it had ended.
 */
export async function followSession(stream: SseStream, options: SessionStreamOptions): Promise<void> {
  const { runtime, sessionId, from, changes } = options;
  /** The next event of each run that was sent. */
  const next = new Map<RunId, number>(from === undefined ? [] : [[from.runId, from.seq]]);
  const due = new DueRuns();
  const meanwhile: RunId[] = [];
  let isListed = false;
  await changes.listen((changed) => {
    // The oldest of them first.
    for (const { runId, endedAt, sessionId: of } of changed.toReversed()) {
      if (of !== sessionId || (endedAt !== null && next.has(runId))) continue;
      if (isListed) due.add(runId);
      else meanwhile.push(runId);
    }
  }, stream.signal);
  for (const runId of await runsSince(options)) due.add(runId);
  for (const runId of meanwhile) due.add(runId);
  isListed = true;
  while (!stream.isOver) {
    const runId = await due.next(stream.signal);
    if (runId === undefined) return;
    const run = await runtime.find(runId);
    if (run !== undefined) next.set(runId, await sendRun(stream, run, next.get(runId) ?? 0));
  }
}

/** The runs of the session, oldest first, from the one that the reader has seen last. */
async function runsSince({ runtime, sessionId, from }: SessionStreamOptions): Promise<readonly RunId[]> {
  const found: RunId[] = [];
  for await (const { runId } of allRuns(runtime, { sessionId })) {
    found.push(runId);
    if (runId === from?.runId) break;
  }
  return found.toReversed();
}

/** Sends the events of one run until it ends. Returns the seq of the next event. */
async function sendRun(stream: SseStream, run: RunHandle, from: number): Promise<number> {
  const writer = new BatchWriter(stream);
  let next = from;
  for await (const item of run.events({ fromSeq: from, signal: stream.signal })) {
    if ("seq" in item) next = item.seq + 1;
    await writer.add(frameOf(item));
  }
  await writer.flush();
  return next;
}

function frameOf(item: Event | Delta): string {
  return "seq" in item ? sseFrame(item, { id: `${item.runId}:${item.seq}` }) : sseFrame(item);
}

/** Runs that are to be sent, each once, in the order of arrival. */
class DueRuns {
  readonly #due = new Set<RunId>();
  #wake: (() => void) | undefined;

  add(runId: RunId): void {
    this.#due.add(runId);
    this.#wake?.();
  }

  /** Waits for the next run. `undefined` after the signal. */
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
