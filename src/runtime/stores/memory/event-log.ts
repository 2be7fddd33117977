import {
  chainHead,
  contentHash,
  type Delta,
  type Event,
  type EventLog,
  type Hash,
  type Lease,
  type LogVerdict,
  type RunId,
  type TailOptions,
} from "../../../kernel/index.ts";
import { Bell } from "../bell.ts";
import type { RunRow, Tables } from "./tables.ts";

export class MemoryEventLog implements EventLog {
  readonly #tables: Tables;
  readonly #hash: Hash;

  constructor(tables: Tables, hash: Hash) {
    this.#tables = tables;
    this.#hash = hash;
  }

  async *read(runId: RunId, fromSeq = 0): AsyncIterable<Event> {
    const { events } = this.#tables.run(runId);
    yield* events.slice(fromSeq);
  }

  async *tail(runId: RunId, { fromSeq = 0, signal }: TailOptions = {}): AsyncIterable<Event | Delta> {
    const row = this.#tables.run(runId);
    const bell = new Bell();
    row.watchers.add(bell.ring);
    signal?.addEventListener("abort", bell.ring);
    try {
      let next = fromSeq;
      const shown = new WeakSet<Delta>();
      let seen = { batch: -1, count: 0 };
      for (;;) {
        if (signal?.aborted === true || this.#tables.runs.get(runId) !== row) return;
        // Cleared before looking, so that what comes while the consumer is busy rings again.
        bell.clear();
        const events = row.events.slice(next);
        next += events.length;
        yield* events;
        if (next < row.events.length) continue;
        if (hasEnded(row)) return;
        const from = seen.batch === row.deltaBatch ? seen.count : 0;
        seen = { batch: row.deltaBatch, count: row.deltas.length };
        for (const delta of row.deltas.length > from ? row.deltas.slice(from) : none) {
          if (shown.has(delta)) continue;
          shown.add(delta);
          yield delta;
        }
        await bell.rung();
      }
    } finally {
      row.watchers.delete(bell.ring);
      signal?.removeEventListener("abort", bell.ring);
    }
  }

  async lastSeq(runId: RunId): Promise<number> {
    return this.#tables.run(runId).events.length - 1;
  }

  putDelta({ runId, epoch, workerId }: Lease, delta: Delta): void {
    const row = this.#tables.runs.get(runId);
    if (row === undefined || row.epoch !== epoch || row.owner !== workerId) return;
    row.deltas.push(delta);
    for (const tell of row.watchers) tell();
  }

  /** Nothing outside this process can edit these events, so the chain is made when asked for (F1). */
  async verify(runId: RunId, head?: string): Promise<LogVerdict> {
    const { events, erasedContents } = this.#tables.run(runId);
    let last = "";
    for (const [seq, event] of events.entries()) {
      if (event.seq !== seq) return { ok: false, seq, problem: `event ${event.seq} stands in its place` };
      last = chainHead(last, erasedContents.get(seq) ?? contentHash(event, this.#hash), this.#hash);
    }
    if (head !== undefined && head !== last) {
      return { ok: false, seq: events.length, problem: "the log does not end in the head kept elsewhere" };
    }
    return { ok: true, events: events.length, head: last, keyed: false };
  }
}

const none: readonly Delta[] = [];

function hasEnded({ events }: RunRow): boolean {
  return events.at(-1)?.type === "run_end";
}
