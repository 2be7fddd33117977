import {
  CancellationError,
  type Delta,
  type Event,
  type Guest,
  type Lifetime,
  type TailOptions,
} from "../../kernel/index.ts";
import { currentTask, type SlotYielder } from "../process/async-context.ts";

export type EventStream = AsyncIterable<Event | Delta>;

/**
 * Returns a stream of events. If the code of a task reads it, the task gives back its slot while it waits for an
 * event.
 */
export function yieldingSlot(tail: EventStream): EventStream {
  const task = currentTask();
  return task === undefined ? tail : { [Symbol.asyncIterator]: () => readInTask(task, tail) };
}

/**
 * Yields the events of a stored log until the reader's signal aborts. With `types`, yields only events of these
 * types.
 */
export async function* storedEvents(
  events: AsyncIterable<Event>,
  { types, signal }: Pick<TailOptions, "types" | "signal">,
): AsyncIterable<Event> {
  for await (const event of events) {
    if (signal?.aborted === true) return;
    if (types?.includes(event.type) ?? true) yield event;
  }
}

/**
 * Returns the lifetime for readers of a log. It calls `enter` when a reader begins, and the function that `enter`
 * returned when the reader ends.
 */
export function watchedLife(life: Lifetime | undefined, enter: () => () => void): Lifetime {
  const leaving = new Map<Guest, () => void>();
  return {
    get fault() {
      return life?.fault;
    },
    join: (reader) => {
      leaving.set(reader, enter());
      life?.join(reader);
    },
    leave: (reader) => {
      leaving.get(reader)?.();
      leaving.delete(reader);
      life?.leave(reader);
    },
  };
}

/** Reads events in a task. If the task is cancelled, the reader rejects, like `result`. */
function readInTask(task: SlotYielder, tail: EventStream): AsyncIterator<Event | Delta> {
  const events = tail[Symbol.asyncIterator]();
  const isCleanup = task.isCancelled;
  return {
    next: async () => {
      try {
        return await task.yieldSlotUnlessCancelled(events.next(), isCleanup);
      } catch (error) {
        // Not awaited: a store may end the tail only with the next event of the run.
        if (error instanceof CancellationError) void events.return?.();
        throw error;
      }
    },
    return: async () => (await events.return?.()) ?? { value: undefined, done: true },
  };
}
