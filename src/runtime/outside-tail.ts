import type { Delta, Event } from "../kernel/index.ts";
import type { Inside } from "./inside.ts";
import { currentInside } from "./run-facts-storage.ts";

type Shown = AsyncIterable<Event | Delta>;

/** A tail as the code of a task reads it, which has no slot while it waits; the tail itself for everyone else. */
export function outsideTail(tail: Shown): Shown {
  const inside = currentInside();
  return inside?.task === undefined ? tail : { [Symbol.asyncIterator]: () => readFrom(inside, tail) };
}

function readFrom(inside: Inside, tail: Shown): AsyncIterator<Event | Delta> {
  const events = tail[Symbol.asyncIterator]();
  return {
    next: () => inside.task?.outside(inside, events.next()) ?? events.next(),
    return: async () => (await events.return?.()) ?? { value: undefined, done: true },
  };
}
