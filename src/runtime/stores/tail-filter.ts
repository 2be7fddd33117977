import type { Event, EventType } from "../../kernel/index.ts";

/** Decides which events and deltas a reader of a tail gets. */
export class TailFilter {
  /** The types of events that the reader wants. A short list, so that a linear search is fast enough. */
  readonly #types: readonly EventType[] | undefined;
  readonly showsDeltas: boolean;

  constructor(types: readonly EventType[] | undefined) {
    this.#types = types;
    this.showsDeltas = types === undefined;
  }

  shows({ type }: Event): boolean {
    return this.#types?.includes(type) ?? true;
  }

  /**
   * Whether a commit with these events wakes the reader, because it contains an event for the reader, or the end of
   * the run.
   */
  wakesFor(events: readonly Event[]): boolean {
    if (this.#types === undefined) return true;
    for (let index = 0; index < events.length; index++) {
      const { type } = events[index] as Event;
      if (type === "run_end" || this.#types.includes(type)) return true;
    }
    return false;
  }
}
