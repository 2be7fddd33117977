import {
  MiddlewareTermination,
  type AgentRunContext,
  type CancelSignal,
  type ChatContext,
  type Clock,
  type FunctionContext,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";
import type { Layer } from "./layer.ts";
import { pause } from "./pause.ts";

type Level = "agent" | "chat" | "function";
type Context = AgentRunContext | ChatContext | FunctionContext;

export interface RateLimiterOptions {
  readonly clock: Clock;
  /** Maximum number of calls at once. */
  readonly burst: number;
  readonly perSecond: number;
  /** The level at which calls are counted. At `agent`, a replayed run is counted again. Default: `"chat"`. */
  readonly level?: Level;
  /**
   * What happens to a call above the limit. `"throttle"`: calls wait in order of arrival. `"terminate"`: the run
   * stops as `guardrail_tripped`.
   */
  readonly onLimit?: "throttle" | "terminate";
  /** Maximum wait in milliseconds. A call that would wait longer stops the run instead. Default: no limit. */
  readonly maxWaitMs?: number;
  /** Returns the key for which calls are counted together. Default: the tenant. */
  readonly per?: (context: Context) => string | null;
}

const knownOptions = optionTable({
  clock: is.any,
  burst: is.number({ from: 1, required: true }),
  perSecond: is.number({ above: 0, required: true }),
  level: is.choice(["agent", "chat", "function"], { default: "chat" }),
  onLimit: is.choice(["throttle", "terminate"], { default: "throttle" }),
  maxWaitMs: is.number({ from: 0, default: Infinity }),
  per: is.callback(),
} satisfies OptionKinds<RateLimiterOptions>);

/** Creates middleware that limits the rate of calls for each tenant (token bucket). */
export function rateLimiter(options: RateLimiterOptions): Layer {
  const { clock, level, onLimit, maxWaitMs, per = tenantOf } = knownOptions.read("rateLimiter()", options);
  const buckets = new Buckets(options);
  const longest = onLimit === "terminate" ? 0 : maxWaitMs;

  async function process(context: Context, next: () => Promise<void>): Promise<void> {
    const whose = per(context);
    const waitMs = buckets.take(whose, longest);
    if (waitMs === undefined) {
      const { burst, perSecond } = options;
      throw new MiddlewareTermination(`rate limit reached: ${perSecond} calls per second, ${burst} at once`, {
        by: "rate-limiter",
        details: { burst, perSecond, whose },
      });
    }
    if (waitMs > 0) {
      context.metadata["throttledMs"] = waitMs;
      await context.waitFor(turnOf(whose, waitMs, context.signal));
    }
    await next();
  }

  /** Waits until the call may be made. If the task is dropped during the wait, the call does not count. */
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
  /** Number of calls that may be made now. A negative number counts calls that may be made later. */
  tokens: number;
  at: number;
}

class Buckets {
  readonly #clock: Clock;
  readonly #burst: number;
  readonly #perMs: number;
  readonly #buckets = new Map<string | null, Bucket>();
  /** Number of keys at which those without recent calls are removed, because a new entry would be equal. */
  #sweepAt = 1_024;

  constructor({ clock, burst, perSecond }: RateLimiterOptions) {
    this.#clock = clock;
    this.#burst = burst;
    this.#perMs = perSecond / 1_000;
  }

  /**
   * Counts a call and returns the milliseconds until it may be made. If they exceed `longest`, it does not count
   * the call and returns `undefined`.
   */
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
    // If the clock was set back, no tokens are added.
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
