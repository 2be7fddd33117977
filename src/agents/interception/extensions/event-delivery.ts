import type { Event, EventObserver, EventType, ObservedTask, RunId } from "../../../kernel/index.ts";

/** Delivers one committed event to the handlers of its type. Never rejects. */
export type Deliver = (event: Event, task: ObservedTask) => Promise<void>;

/**
 * Delivers the committed events of each run to the handlers of extensions, one event after another, beside the run. Each
 * event is delivered at most once: a process that dies delivers no more, and a replay commits no events.
 */
export class EventDelivery implements EventObserver {
  readonly #watches: (type: EventType) => boolean;
  readonly #deliver: Deliver;
  /** The end of the queue of each run whose events are being delivered. */
  readonly #queues = new Map<RunId, Promise<void>>();

  constructor(watches: (type: EventType) => boolean, deliver: Deliver) {
    this.#watches = watches;
    this.#deliver = deliver;
  }

  watches(type: EventType): boolean {
    return this.#watches(type);
  }

  observe(event: Event, task: ObservedTask): void {
    const { runId } = event;
    const before = this.#queues.get(runId) ?? Promise.resolve();
    const queue = before.then(() => this.#deliver(event, task));
    this.#queues.set(runId, queue);
    void queue.finally(() => {
      if (this.#queues.get(runId) === queue) this.#queues.delete(runId);
    });
  }

  async settled(runId: RunId): Promise<void> {
    await this.#queues.get(runId);
  }
}

function wants(observer: EventObserver, type: EventType): boolean {
  return observer.watches?.(type) !== false;
}

/** Passes events to two observers. Each receives the types that it watches. */
export function bothObservers(one: EventObserver, other: EventObserver): EventObserver {
  const observers = [one, other];
  return {
    watches: (type) => observers.some((observer) => wants(observer, type)),
    observe: (event, task) => {
      for (const observer of observers) if (wants(observer, event.type)) observer.observe(event, task);
    },
    settled: async (runId) => {
      for (const observer of observers) await observer.settled(runId);
    },
  };
}
