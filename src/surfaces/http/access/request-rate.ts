import { Fault } from "../../../kernel/index.ts";

export interface RateOptions {
  /** Requests per second in the long run. */
  readonly perSecond: number;
  /** Requests that may arrive at once. */
  readonly burst: number;
}

/**
 * Maximum number of callers that are remembered. A caller that is no longer remembered may send a full burst again.
 */
const maxCallers = 10_000;

/**
 * Limits the requests of each caller. A caller may send `burst` requests at once; this allowance is refilled at a
 * rate of `perSecond`.
 */
export class RequestRate {
  readonly #options: RateOptions;
  readonly #now: () => number;
  readonly #callers = new Map<string, { left: number; at: number }>();

  constructor(options: RateOptions, now: () => number) {
    this.#options = options;
    this.#now = now;
  }

  /** Counts a request. Throws `rate_limited`, with the seconds to wait, if the caller has used up its requests. */
  count(caller: string): void {
    const { perSecond, burst } = this.#options;
    const now = this.#now();
    const { left, at } = this.#callers.get(caller) ?? { left: burst, at: now };
    const available = Math.min(burst, left + ((now - at) / 1000) * perSecond);
    // The caller that was seen longest ago is forgotten first.
    this.#callers.delete(caller);
    this.#callers.set(caller, { left: Math.max(0, available - 1), at: now });
    if (this.#callers.size > maxCallers) this.#forgetOldest();
    if (available >= 1) return;
    const retryAfter = Math.ceil((1 - available) / perSecond);
    throw new Fault(
      "rate_limited",
      `more than ${perSecond} requests per second; wait ${retryAfter} s and repeat the request`,
      { details: { retryAfter } },
    );
  }

  #forgetOldest(): void {
    for (const caller of this.#callers.keys()) {
      this.#callers.delete(caller);
      return;
    }
  }
}
