import type { Event, EventType } from "../../kernel/index.ts";

/** Which events someone who tails a log is to see. */
export class TailFilter {
  /** Few. */
  readonly #types: readonly EventType[] | undefined;

  constructor(types: readonly EventType[] | undefined) {
    this.#types = types;
  }

  get showsDeltas(): boolean {
    return this.#types === undefined;
  }

  shows({ type }: Event): boolean {
    return this.#types?.includes(type) ?? true;
  }

  /** Whether a commit with these events is worth waking for: something to see, or the end. */
  wakesFor(events: readonly Event[]): boolean {
    if (this.#types === undefined) return true;
    for (const event of events) if (event.type === "run_end" || this.#types.includes(event.type)) return true;
    return false;
  }
}
