import { useMemo } from "preact/hooks";
import type { Event, TaskId } from "../../src/kernel/index.ts";
import { useRead } from "../api/use-read.ts";
import { fits, type EventFilter } from "./event-filter.ts";
import { conversationTypes } from "./event-log.ts";
import type { RunModel } from "./run-model.ts";

/**
 * All events of a run that match a filter. Each event of the log is compared or read only once, regardless of the
 * number of drawings.
 */
class FittingEvents {
  readonly #model: RunModel;
  readonly #filter: EventFilter;
  /** The fitting events before `#next`. */
  #known: Event[] = [];
  #next = 0;
  #reading: Promise<void> | undefined;

  constructor(model: RunModel, filter: EventFilter) {
    this.#model = model;
    this.#filter = filter;
  }

  /** Number of the event before which the events must be read from the server. 0 if all are known or in memory. */
  get missingUntil(): number {
    const { first } = this.#model.log;
    return this.#next < first ? first : 0;
  }

  /** The known events. Between them and those in memory, events may be missing until they are read. */
  list(): readonly Event[] {
    const { log } = this.#model;
    const newer = log
      .between(Math.max(this.#next, log.first), log.last)
      .filter((event) => fits(event, this.#filter));
    if (this.missingUntil > 0) return [...this.#known, ...newer];
    this.#known.push(...newer);
    this.#next = log.last + 1;
    return this.#known;
  }

  /** Reads the missing events. A call during a read waits for that read. */
  readMissing(): Promise<void> {
    this.#reading ??= this.#readMissing().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #readMissing(): Promise<void> {
    for (let until = this.missingUntil; until > 0; until = this.missingUntil) {
      this.#known.push(...(await this.#model.events.thatFit(this.#filter, until - 1, this.#next)));
      this.#next = until;
    }
  }
}

interface UsedEvents {
  readonly events: readonly Event[];
  /** Whether some of the events are being read. */
  readonly isReading: boolean;
  readonly problem: string | null;
}

/** Returns all events of a run that match a filter. The filter must be the same object in every redraw. */
export function useEvents(model: RunModel | null, filter: EventFilter): UsedEvents {
  void model?.version.value;
  const fitting = useMemo(() => (model === null ? null : new FittingEvents(model, filter)), [model, filter]);
  const { problem } = useRead(async () => fitting?.readMissing(), [fitting, fitting?.missingUntil]);
  // The first view may be of a later event than those that the stream has brought so far.
  const isBehind = model !== null && model.log.last < model.lastSeq;
  return {
    events: fitting?.list() ?? [],
    isReading: isBehind || (fitting?.missingUntil ?? 0) > 0,
    problem,
  };
}

/** All events that the conversation of a task shows. Without a run there are none. */
export function useConversation(model: RunModel | null, taskId: TaskId): readonly Event[] {
  const filter = useMemo(() => conversationOf(taskId), [taskId]);
  return useEvents(model, filter).events;
}

export function conversationOf(taskId: TaskId): EventFilter {
  return { taskId, types: [...conversationTypes] };
}
