import { describeValue, Fault, HookEvent, type HookPayload, type Hooks } from "../../kernel/index.ts";

export interface RunLoggerOptions {
  /** How many of the last moments are kept. 1,000 unless told. */
  readonly capacity?: number;
}

/** One moment that was seen. Switch on `hook`; `payload` follows. */
export type LoggedMoment = {
  [Name in HookEvent]: { readonly hook: Name; readonly payload: HookPayload<Name> };
}[HookEvent];

/** Remembers the last moments of whatever it watches, for debugging. Its memory does not grow: the oldest makes room. */
export class RunLogger {
  readonly #ring: LoggedMoment[] = [];
  readonly #capacity: number;
  #seen = 0;

  constructor({ capacity = 1_000 }: RunLoggerOptions = {}) {
    if (!Number.isSafeInteger(capacity) || capacity < 1) {
      throw new Fault(
        "invalid_argument",
        `capacity is ${describeValue(capacity)}: it must be an integer from 1`,
      );
    }
    this.#capacity = capacity;
  }

  /** All twelve moments. The function returned stops it. */
  watch(hooks: Hooks): () => void {
    const stops = Object.values(HookEvent).map((hook) =>
      hooks.on(hook, (payload) => this.#put({ hook, payload } as LoggedMoment)),
    );
    return () => {
      for (const stop of stops) stop();
    };
  }

  /** Oldest first. */
  entries(): readonly LoggedMoment[] {
    const oldest = this.#seen <= this.#capacity ? 0 : this.#seen % this.#capacity;
    return [...this.#ring.slice(oldest), ...this.#ring.slice(0, oldest)];
  }

  /** How many have made room for later ones. */
  get dropped(): number {
    return Math.max(0, this.#seen - this.#capacity);
  }

  #put(moment: LoggedMoment): void {
    this.#ring[this.#seen % this.#capacity] = moment;
    this.#seen++;
  }
}
