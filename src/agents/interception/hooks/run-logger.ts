import {
  HookEvent,
  type HookPayload,
  type HookSet,
  type Hooks,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";

export interface RunLoggerOptions {
  /** Maximum number of entries; older ones are dropped. Default: 1_000. */
  readonly capacity?: number;
}

/** One recorded hook event. `hook` determines the type of `payload`. */
export type LoggedMoment = {
  [Name in HookEvent]: { readonly hook: Name; readonly payload: HookPayload<Name> };
}[HookEvent];

const knownOptions = optionTable({
  capacity: is.integer({ from: 1, default: 1_000 }),
} satisfies OptionKinds<RunLoggerOptions>);

/** Keeps the latest hook events for debugging, in bounded memory. */
export class RunLogger implements HookSet {
  readonly #ring: LoggedMoment[] = [];
  readonly #capacity: number;
  #seen = 0;

  constructor(options: RunLoggerOptions = {}) {
    const { capacity } = knownOptions.read("RunLogger", options);
    this.#capacity = capacity;
  }

  /** Records all twelve hook events. The returned function stops recording. */
  watch(hooks: Hooks): () => void {
    const stops = Object.values(HookEvent).map((hook) =>
      hooks.on(hook, (payload) => this.#put({ hook, payload } as LoggedMoment)),
    );
    return () => {
      for (const stop of stops) stop();
    };
  }

  /** The recorded entries, oldest first. */
  entries(): readonly LoggedMoment[] {
    const oldest = this.#seen <= this.#capacity ? 0 : this.#seen % this.#capacity;
    return [...this.#ring.slice(oldest), ...this.#ring.slice(0, oldest)];
  }

  /** Number of entries that were dropped. */
  get dropped(): number {
    return Math.max(0, this.#seen - this.#capacity);
  }

  #put(moment: LoggedMoment): void {
    this.#ring[this.#seen % this.#capacity] = moment;
    this.#seen++;
  }
}
