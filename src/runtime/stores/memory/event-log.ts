import {
  canonicalJson,
  chainHead,
  chainStart,
  deepFreeze,
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
import { TailFilter } from "../tail-filter.ts";
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
    for (const event of events.slice(fromSeq)) yield deepFreeze(event);
  }

  /** E1: nobody who is handed an event can change it for the others. */
  async *tail(runId: RunId, { fromSeq = 0, types, signal }: TailOptions = {}): AsyncIterable<Event | Delta> {
    const row = this.#tables.run(runId);
    const bell = new Bell();
    const filter = new TailFilter(types);
    const watcher = (events?: readonly Event[]): void => {
      if (events === undefined || filter.wakesFor(events)) bell.ring();
    };
    row.watchers.add(watcher);
    signal?.addEventListener("abort", bell.ring);
    try {
      let next = fromSeq;
      const shown = new WeakSet<Delta>();
      let seen = { batch: -1, count: 0 };
      for (;;) {
        if (signal?.aborted === true || this.#tables.runs.get(runId) !== row) return;
        // Cleared before looking, so that what comes while the consumer is busy rings again.
        bell.clear();
        for (; next < row.events.length; next++) {
          const event = row.events[next];
          if (event !== undefined && filter.shows(event)) yield deepFreeze(event);
        }
        if (hasEnded(row)) return;
        if (!filter.showsDeltas) {
          await bell.rung();
          continue;
        }
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
      row.watchers.delete(watcher);
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
    for (const tell of row.watchers) tell(nothing);
  }

  /** Nothing outside this process can edit these events, so the chain is made when asked for (F1). */
  async verify(runId: RunId, head?: string): Promise<LogVerdict> {
    const { record, commits } = this.#tables.run(runId);
    let last = chainStart(record);
    let nextSeq = 0;
    let headSeq: number | null = null;
    for (const { number, at, events = [] } of commits) {
      nextSeq += events.length;
      const content = this.#hash(canonicalJson(events));
      last = chainHead(last, { number, at, nextSeq, content }, this.#hash);
      if (last === head) headSeq = nextSeq;
    }
    if (head !== undefined && headSeq === null)
      return { ok: false, seq: nextSeq, problem: "the log does not come to the head kept elsewhere" };
    const sinceHead = headSeq === null ? null : nextSeq - headSeq;
    return { ok: true, events: nextSeq, head: last, keyed: false, sinceHead };
  }
}

const none: readonly Delta[] = [];
const nothing: readonly Event[] = [];

function hasEnded({ events }: RunRow): boolean {
  return events.at(-1)?.type === "run_end";
}
