import type { Event, EventType } from "../../kernel/index.ts";

/** Which events someone who tails a log is to see. */
export class TailFilter {
  /** Few. */
  readonly #types: readonly EventType[] | undefined;
  readonly showsDeltas: boolean;

  constructor(types: readonly EventType[] | undefined) {
    this.#types = types;
    this.showsDeltas = types === undefined;
  }

  shows({ type }: Event): boolean {
    return this.#types?.includes(type) ?? true;
  }

  /** Whether a commit with these events is worth waking for: something to see, or the end. */
  wakesFor(events: readonly Event[]): boolean {
    if (this.#types === undefined) return true;
    for (let index = 0; index < events.length; index++) {
      const { type } = events[index] as Event;
      if (type === "run_end" || this.#types.includes(type)) return true;
    }
    return false;
  }
}
