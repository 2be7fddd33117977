import type { Event, EventType } from "../../src/kernel/index.ts";
import { get } from "../api/client.ts";
import { fits, type EventFilter } from "./event-filter.ts";
import type { EventLog } from "./event-log.ts";

/** Number of events per request when the page reads an earlier part of the log. */
const pageSize = 1_000;

/** Types of events with which a call ends. */
const callEnds: ReadonlySet<EventType> = new Set<EventType>([
  "message_end",
  "tool_execution_end",
  "step_end",
  "metered_call",
]);

/** The events of a run. The newest events are in memory; the server sends the other events when a view needs them. */
export class RunEvents {
  readonly #runId: string;
  readonly #log: EventLog;
  readonly #stop: AbortSignal;

  constructor(runId: string, log: EventLog, stop: AbortSignal) {
    this.#runId = runId;
    this.#log = log;
    this.#stop = stop;
  }

  /**
   * Returns the sequence number of the nearest end of a call before or after an event. Events are read page by
   * page. If there is none, returns the first or the newest event. `newest` returns the number of the newest event,
   * which may grow during the search.
   */
  async callEnd(seq: number, by: 1 | -1, newest: () => number): Promise<number> {
    for (let next = seq + by; next >= 0 && next <= newest(); next += by * pageSize) {
      const last = Math.max(0, Math.min(newest(), next + by * (pageSize - 1)));
      const events = await this.between(Math.min(next, last), Math.max(next, last));
      const isEnd = ({ type }: Event): boolean => callEnds.has(type);
      const found = by > 0 ? events.find(isEnd) : events.findLast(isEnd);
      if (found !== undefined) return found.seq;
    }
    return by > 0 ? newest() : 0;
  }

  /** The events of the log with `from <= seq <= to`, from memory or from the server. */
  async *read(from: number, to: number): AsyncIterable<Event> {
    for (let next = from; next <= to;) {
      const events =
        this.#log.at(next) === undefined ? await this.#readPage(next, to) : this.#log.between(next, to);
      if (events.length === 0) return;
      yield* events;
      next = (events.at(-1)?.seq ?? to) + 1;
    }
  }

  /** Reads events that are not in memory: those before it, or those that the stream has yet to bring. */
  async #readPage(from: number, to: number): Promise<readonly Event[]> {
    const { first } = this.#log;
    const end = from < first ? Math.min(to, first - 1) : to;
    const { events } = await get("/api/runs/{runId}/events", {
      params: { runId: this.#runId },
      query: { from, limit: Math.min(pageSize, end - from + 1) },
    });
    return events;
  }

  /** The events with `from <= seq <= to` that fit a filter, from memory or from the server, which leaves out all others. */
  async thatFit(filter: EventFilter, to: number, from = 0): Promise<readonly Event[]> {
    if (from >= this.#log.first) return this.#log.between(from, to).filter((event) => fits(event, filter));
    const found: Event[] = [];
    for (let [next, isLast] = [from, false]; !isLast && next <= to;) {
      const page = await get("/api/runs/{runId}/events", {
        params: { runId: this.#runId },
        query: { from: next, limit: pageSize, ...filter },
        signal: this.#stop,
      });
      found.push(...page.events.filter(({ seq }) => seq <= to));
      ({ next, isLast } = page);
    }
    return found;
  }

  /** Reads events that are no longer in memory. */
  async between(from: number, to: number): Promise<readonly Event[]> {
    const events: Event[] = [];
    for await (const event of this.read(from, to)) events.push(event);
    return events;
  }
}
