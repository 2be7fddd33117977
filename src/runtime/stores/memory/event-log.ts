import {
  attempt,
  chainHead,
  chainStart,
  deepFreeze,
  type Delta,
  type Event,
  type EventLog,
  type Hash,
  type Lease,
  type LogVerdict,
  type MaybePromise,
  type RunId,
  type TailOptions,
} from "../../../kernel/index.ts";
import { eventsContent, type Tables } from "./tables.ts";
import { MemoryTail } from "./tail.ts";

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

  keep(runId: RunId): MaybePromise<() => readonly Event[]> {
    return attempt(() => {
      const { events } = this.#tables.run(runId);
      const { length } = events;
      return () => deepFreeze(events.slice(0, length));
    });
  }

  tail(runId: RunId, options: TailOptions = {}): AsyncIterable<Event | Delta> {
    return new MemoryTail(this.#tables, this.#tables.run(runId), options);
  }

  lastSeq(runId: RunId): MaybePromise<number> {
    return attempt(() => this.#tables.run(runId).events.length - 1);
  }

  putDelta({ runId, epoch, workerId }: Lease, delta: Delta): void {
    const row = this.#tables.runs.get(runId);
    if (row === undefined || row.epoch !== epoch || row.owner !== workerId) return;
    row.deltas.add(delta);
    for (const watcher of row.watchers) watcher.seeDelta(delta);
  }

  /**
   * F1: verifies the hash chain. It computes the chain only now, because no other process can edit the events of a
   * memory store.
   */
  async verify(runId: RunId, head?: string): Promise<LogVerdict> {
    const { record, commits, erasedContents } = this.#tables.run(runId);
    let last = chainStart(record);
    let nextSeq = 0;
    let headSeq: number | null = null;
    for (const commit of commits) {
      const { number, at, events = [] } = commit;
      nextSeq += events.length;
      const content = erasedContents?.get(number) ?? eventsContent(commit, this.#hash);
      last = chainHead(last, { number, at, nextSeq, content }, this.#hash);
      if (last === head) headSeq = nextSeq;
    }
    if (head !== undefined && headSeq === null)
      return {
        ok: false,
        seq: nextSeq,
        problem: "the log does not contain the given head: it was truncated",
      };
    const sinceHead = headSeq === null ? null : nextSeq - headSeq;
    return { ok: true, events: nextSeq, head: last, keyed: false, sinceHead };
  }
}
