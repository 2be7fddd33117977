import {
  deepFreeze,
  JoinedDelta,
  type Delta,
  type Event,
  type EventObserver,
  type EventType,
  type ObservedTask,
  type RunId,
} from "../../../kernel/index.ts";

/** The type of what an observer receives. */
export type ObservedType = EventType | Delta["type"];

/** Delivers one committed event, or one delta, to the handlers of its type. Never rejects. */
export type Deliver = (event: Event | Delta, task: ObservedTask) => Promise<void>;

/** What waits for the handlers of a run. */
interface Queue {
  readonly end: Promise<void>;
  /** The delta at the end of the queue, until its delivery starts. */
  readonly waiting: JoinedDelta | undefined;
}

/**
 * Delivers the committed events and the deltas of each run to the handlers of extensions, one after another,
 * without delaying the run. Each event is delivered at most once: a process that dies delivers no further events,
 * and a replay commits no events. If handlers are slower than a model, waiting pieces of its message are joined.
 */
export class EventDelivery implements EventObserver {
  readonly #watches: (type: ObservedType) => boolean;
  readonly #deliver: Deliver;
  readonly #queues = new Map<RunId, Queue>();

  constructor(watches: (type: ObservedType) => boolean, deliver: Deliver) {
    this.#watches = watches;
    this.#deliver = deliver;
  }

  watches(type: ObservedType): boolean {
    return this.#watches(type);
  }

  observe(event: Event, task: ObservedTask): void {
    this.#add(event.runId, () => this.#deliver(event, task));
  }

  observeDelta(delta: Delta, task: ObservedTask): void {
    const { runId } = delta;
    if (this.#queues.get(runId)?.waiting?.join(delta) === true) return;
    const joined = new JoinedDelta(delta);
    const deliver = (): Promise<void> => {
      // A piece that comes from now on is a delivery of its own.
      const queue = this.#queues.get(runId);
      if (queue?.waiting === joined) this.#queues.set(runId, { ...queue, waiting: undefined });
      return this.#deliver(deepFreeze(joined.whole), task);
    };
    this.#add(runId, deliver, joined);
  }

  async settled(runId: RunId): Promise<void> {
    await this.#queues.get(runId)?.end;
  }

  #add(runId: RunId, deliver: () => Promise<void>, waiting?: JoinedDelta): void {
    const before = this.#queues.get(runId)?.end ?? Promise.resolve();
    const end = before.then(deliver);
    this.#queues.set(runId, { end, waiting });
    void end.finally(() => {
      if (this.#queues.get(runId)?.end === end) this.#queues.delete(runId);
    });
  }
}

function wants(observer: EventObserver, type: ObservedType): boolean {
  return observer.watches?.(type) !== false;
}

/** Returns an observer that passes events to two observers. Each receives the types that it watches. */
export function bothObservers(one: EventObserver, other: EventObserver): EventObserver {
  const observers = [one, other];
  return {
    watches: (type) => observers.some((observer) => wants(observer, type)),
    observe: (event, task) => {
      for (const observer of observers) if (wants(observer, event.type)) observer.observe(event, task);
    },
    observeDelta: (delta, task) => {
      for (const observer of observers) if (wants(observer, delta.type)) observer.observeDelta?.(delta, task);
    },
    settled: async (runId) => {
      for (const observer of observers) await observer.settled(runId);
    },
  };
}
