import type * as sdk from "@restatedev/restate-sdk";
import type { ObjectContext, VirtualObjectDefinition } from "@restatedev/restate-sdk";
import type { RunId } from "../../../kernel/index.ts";

/** A message to the object of a run. It asks the object to check whether the run has something to do. */
export interface Wake {
  /** Time at which the run starts or wakes up, in epoch milliseconds. `null` if it may be ready now. */
  readonly at: number | null;
  /**
   * Alternates from one invocation to the next, if a slice sent this invocation because the run had more to do. It
   * makes the two messages differ.
   */
  readonly turn?: "even" | "odd";
}

/** When the run wakes up, and how much later than the end of the slice that is. */
interface WakeTime {
  readonly at: number;
  readonly delayMs: number;
}

/**
 * The state in which a slice left its run. Restate journals it, so that a repeated attempt schedules the same
 * invocations.
 */
export interface SliceResult {
  /**
   * Whether the slice owned the run. If not, an existing timer of the run is kept, and `wake` is used only if there
   * is none.
   */
  readonly isOwned: boolean;
  /** Whether the run has more to do at once. */
  readonly isReady: boolean;
  /** When the run wakes up. `null` if no time is scheduled. */
  readonly wake: WakeTime | null;
}

export interface Slice {
  readonly runId: RunId;
  readonly wake: Wake;
  /** Whether an earlier attempt of this invocation, which may have owned the run, ended without a result. */
  readonly isRepeated: boolean;
  /** Aborts when Restate no longer waits for this attempt. */
  readonly signal: AbortSignal;
}

/** Executes runs in slices. */
export interface SliceDriver {
  slice(slice: Slice): Promise<SliceResult>;
}

export interface RunObjectOptions {
  /** Name of the object in Restate. */
  readonly service: string;
  /** Time after which Restate considers an attempt without any response as lost. Milliseconds. */
  readonly longestSliceMs: number;
}

/** The delayed invocation that wakes a run. The object of the run stores it as its state. */
interface Timer {
  readonly id: string;
  readonly at: number;
}

/** The Restate package, which is loaded when a worker opens its endpoint. */
export type Sdk = typeof sdk;

/**
 * Creates the virtual object for runs. Each run is an instance, with the run id as key. Restate executes one
 * invocation of an instance at a time, repeats an attempt that ended without a result, and keeps the timers.
 */
export function runObject(
  { object, rpc, InvocationIdParser }: Sdk,
  { service, longestSliceMs }: RunObjectOptions,
  driver: SliceDriver,
): VirtualObjectDefinition<string, unknown> {
  return object({
    name: service,
    handlers: {
      drive: async (ctx: ObjectContext, wake: Wake): Promise<void> => {
        const { id: ownId, attemptCompletedSignal: signal } = ctx.request();
        const self = ctx.objectSendClient<{ drive: (ctx: ObjectContext, wake: Wake) => Promise<void> }>(
          { name: service },
          ctx.key,
        );
        const attempt = globalThis.crypto.randomUUID();
        const isRepeated = (await ctx.run("begin", () => attempt)) !== attempt;
        const result = await ctx.run("slice", () =>
          driver.slice({ runId: ctx.key as RunId, wake, isRepeated, signal }),
        );
        const timer = await ctx.get<Timer>("timer");
        const scheduled = timer?.id === ownId ? null : timer;
        if (result.isOwned || scheduled === null) {
          const { wake: next } = result;
          if (scheduled !== null && scheduled.at !== next?.at)
            ctx.cancel(InvocationIdParser.fromString(scheduled.id));
          if (next === null) {
            if (timer !== null) ctx.clear("timer");
          } else if (scheduled?.at !== next.at) {
            const sent = self.drive({ at: next.at }, rpc.sendOpts({ delay: next.delayMs }));
            ctx.set("timer", { id: await sent.invocationId, at: next.at });
          }
        }
        if (!result.isReady) return;
        // Every slice of a busy run sends the next one. Without the key, each further wake-up would begin a chain of slices that
        // ends only when the run waits. Restate ignores a slice of a turn that already waits. The turns alternate, because this
        // slice has not ended yet.
        const turn = wake.turn === "even" ? "odd" : "even";
        self.drive({ at: null, turn }, rpc.sendOpts({ idempotencyKey: turn }));
      },
    },
    options: {
      // The journal of a run is in the store. What Restate keeps about a slice is of no use after its end.
      journalRetention: 0,
      idempotencyRetention: 0,
      // After the first time Restate asks the attempt to suspend itself, which a slice cannot do. The second time follows it.
      inactivityTimeout: longestSliceMs,
      abortTimeout: 1,
      retryPolicy: {
        initialInterval: 50,
        exponentiationFactor: 2,
        maxInterval: 1_000,
        // About a year. The sweep of a worker sends the wake-up again.
        maxAttempts: 30_000_000,
        onMaxAttempts: "kill",
      },
    },
  });
}
