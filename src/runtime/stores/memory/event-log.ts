import {
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
import { eventsContent, type RunRow, type Tables } from "./tables.ts";

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
    const shown = new ShownDeltas(filter.showsDeltas ? row : undefined);
    const watcher = (events?: readonly Event[], delta?: Delta): void => {
      if (delta !== undefined && filter.showsDeltas) shown.add(delta, row.events.length);
      if (events === undefined || filter.wakesFor(events)) bell.ring();
    };
    row.watchers.add(watcher);
    signal?.addEventListener("abort", bell.ring);
    try {
      for (let next = fromSeq; ;) {
        if (signal?.aborted === true || this.#tables.runs.get(runId) !== row) return;
        // Cleared before looking, so that what comes while the consumer is busy rings again.
        bell.clear();
        for (; next < row.events.length; next++) {
          for (let delta = shown.before(next); delta !== undefined; delta = shown.before(next)) yield delta;
          const event = row.events[next];
          if (event !== undefined && filter.shows(event)) yield deepFreeze(event);
        }
        if (hasEnded(row)) return;
        for (let delta = shown.before(next); delta !== undefined; delta = shown.before(next)) yield delta;
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
    for (const tell of row.watchers) tell(nothing, delta);
  }

  /** Nothing outside this process can edit these events, so the chain is made when asked for (F1). */
  async verify(runId: RunId, head?: string): Promise<LogVerdict> {
    const { record, commits, erasedContents } = this.#tables.run(runId);
    let last = chainStart(record);
    let nextSeq = 0;
    let headSeq: number | null = null;
    for (const commit of commits) {
      const { number, at, events = [] } = commit;
      nextSeq += events.length;
      const content = erasedContents.get(number) ?? eventsContent(commit, this.#hash);
      last = chainHead(last, { number, at, nextSeq, content }, this.#hash);
      if (last === head) headSeq = nextSeq;
    }
    if (head !== undefined && headSeq === null)
      return { ok: false, seq: nextSeq, problem: "the log does not come to the head kept elsewhere" };
    const sinceHead = headSeq === null ? null : nextSeq - headSeq;
    return { ok: true, events: nextSeq, head: last, keyed: false, sinceHead };
  }
}

/** Who is this far behind is shown no more of what was recorded since. */
const mostBehind = 10_000;

/** E2: what one watcher is yet to be shown, each before the event that was next when it came. */
class ShownDeltas {
  #coming: { readonly delta: Delta; readonly next: number }[];
  #place = 0;

  /** What was there before the watcher. */
  constructor(row: RunRow | undefined) {
    this.#coming = row?.deltas.map((delta) => ({ delta, next: row.events.length })) ?? [];
  }

  add(delta: Delta, next: number): void {
    this.#coming.push({ delta, next });
    if (this.#coming.length - this.#place > mostBehind)
      this.#coming = this.#coming.slice(this.#place).filter((each) => each.next === next);
    else if (this.#place > mostBehind) this.#coming = this.#coming.slice(this.#place);
    else return;
    this.#place = 0;
  }

  before(seq: number): Delta | undefined {
    const first = this.#coming[this.#place];
    if (first === undefined || first.next > seq) return undefined;
    this.#place++;
    return first.delta;
  }
}

const nothing: readonly Event[] = [];

function hasEnded({ events }: RunRow): boolean {
  return events.at(-1)?.type === "run_end";
}
