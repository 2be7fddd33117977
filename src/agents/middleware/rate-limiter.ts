import {
  MiddlewareTermination,
  type AgentRunContext,
  type CancelSignal,
  type ChatContext,
  type Clock,
  type FunctionContext,
} from "../../kernel/index.ts";
import type { Layer } from "./layer.ts";
import { atLeast } from "./option-range.ts";
import { pause } from "./pause.ts";

type Level = "agent" | "chat" | "function";
type Context = AgentRunContext | ChatContext | FunctionContext;

export interface RateLimiterOptions {
  readonly clock: Clock;
  /** Calls that may come at once. */
  readonly burst: number;
  readonly perSecond: number;
  /** What is counted. `chat` unless told. At `agent` a run that is replayed is counted again. */
  readonly level?: Level;
  /** `throttle` waits its turn, in the order of arrival; `terminate` stops the run as `guardrail_tripped`. */
  readonly onLimit?: "throttle" | "terminate";
  /** A longer wait than this terminates. No limit unless told. */
  readonly maxWaitMs?: number;
  /** Whose calls share a bucket. The tenant's unless told. */
  readonly per?: (context: Context) => string | null;
}

/** A token bucket for each tenant. */
export function rateLimiter(options: RateLimiterOptions): Layer {
  const { clock, level = "chat", onLimit = "throttle", maxWaitMs = Infinity, per = tenantOf } = options;
  const buckets = new Buckets(options);
  const longest = onLimit === "terminate" ? 0 : atLeast("rateLimiter: maxWaitMs", maxWaitMs, 0);

  async function process(context: Context, next: () => Promise<void>): Promise<void> {
    const whose = per(context);
    const waitMs = buckets.take(whose, longest);
    if (waitMs === undefined) {
      const { burst, perSecond } = options;
      throw new MiddlewareTermination(
        `the rate limit of ${perSecond} calls a second with ${burst} at once is reached`,
        { by: "rate-limiter", details: { burst, perSecond, whose } },
      );
    }
    if (waitMs > 0) {
      context.metadata["throttledMs"] = waitMs;
      await context.waitFor(turnOf(whose, waitMs, context.signal));
    }
    await next();
  }

  /** Also when the task is let go of meanwhile, and nobody waits any more, the turn is given back. */
  async function turnOf(whose: string | null, waitMs: number, signal: CancelSignal): Promise<void> {
    try {
      await pause(clock, waitMs, signal);
    } catch (error) {
      buckets.giveBack(whose);
      throw error;
    }
  }

  return { name: "rate-limiter", [level]: process };
}

function tenantOf({ tenantId }: Context): string | null {
  return tenantId;
}

interface Bucket {
  /** Below 0: so many have been promised their turn. */
  tokens: number;
  at: number;
}

class Buckets {
  readonly #clock: Clock;
  readonly #burst: number;
  readonly #perMs: number;
  readonly #buckets = new Map<string | null, Bucket>();
  /** How many buckets there may be before those are dropped that are full, hence as good as new. */
  #sweepAt = 1_024;

  constructor({ clock, burst, perSecond }: RateLimiterOptions) {
    this.#clock = clock;
    this.#burst = atLeast("rateLimiter: burst", burst, 1);
    this.#perMs = atLeast("rateLimiter: perSecond", perSecond, Number.MIN_VALUE) / 1_000;
  }

  /** Milliseconds until its turn, which is taken; `undefined` when that is longer than `longest`, and nothing is taken. */
  take(whose: string | null, longest: number): number | undefined {
    const bucket = this.#filled(whose);
    const waitMs = bucket.tokens >= 1 ? 0 : Math.ceil((1 - bucket.tokens) / this.#perMs);
    if (waitMs > longest) return undefined;
    bucket.tokens--;
    return waitMs;
  }

  giveBack(whose: string | null): void {
    const bucket = this.#filled(whose);
    bucket.tokens = Math.min(this.#burst, bucket.tokens + 1);
  }

  #filled(whose: string | null): Bucket {
    const now = this.#clock.now();
    let bucket = this.#buckets.get(whose);
    if (bucket === undefined) {
      bucket = { tokens: this.#burst, at: now };
      this.#buckets.set(whose, bucket);
      if (this.#buckets.size > this.#sweepAt) this.#sweep(now, bucket);
    }
    this.#fill(bucket, now);
    return bucket;
  }

  #fill(bucket: Bucket, now: number): void {
    // A clock that was set back fills nothing.
    const passed = Math.max(0, now - bucket.at);
    bucket.tokens = Math.min(this.#burst, bucket.tokens + passed * this.#perMs);
    bucket.at = now;
  }

  #sweep(now: number, keep: Bucket): void {
    for (const [whose, bucket] of this.#buckets) {
      this.#fill(bucket, now);
      if (bucket !== keep && bucket.tokens >= this.#burst) this.#buckets.delete(whose);
    }
    this.#sweepAt = Math.max(1_024, this.#buckets.size * 2);
  }
}
