import type { Delta, Event } from "../../kernel/index.ts";
import { currentTask, type SlotYielder } from "../process/async-context.ts";

type Shown = AsyncIterable<Event | Delta>;

/** A tail as the code of a task reads it, which has no slot while it waits; the tail itself for everyone else. */
export function slotFreeTail(tail: Shown): Shown {
  const task = currentTask();
  return task === undefined ? tail : { [Symbol.asyncIterator]: () => readBy(task, tail) };
}

function readBy(task: SlotYielder, tail: Shown): AsyncIterator<Event | Delta> {
  const events = tail[Symbol.asyncIterator]();
  return {
    next: () => task.yieldSlotWhile(events.next()),
    return: async () => (await events.return?.()) ?? { value: undefined, done: true },
  };
}
