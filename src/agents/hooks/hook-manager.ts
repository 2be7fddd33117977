import {
  describeValue,
  Fault,
  HookEvent,
  type Event,
  type EventObserver,
  type EventType,
  type HookCallback,
  type Hooks,
  type ObservedTask,
  type RunId,
} from "../../kernel/index.ts";
import { HookCalls, type HookFailure } from "./hook-calls.ts";
import { eventTypesOf, HookProjection } from "./hook-projection.ts";

export interface HookManagerOptions {
  /** How long one call of a callback may take before the next goes ahead without it. 30,000 unless told; `null`: any time. */
  readonly timeoutMs?: number | null;
  /** Besides the `hook_error` in the run's log. */
  readonly onError?: (failure: HookFailure) => void;
}

const names: ReadonlySet<string> = new Set(Object.values(HookEvent));

/**
 * The cameras of one agent: callbacks that see what happens to its tasks, and can change, stop or break nothing.
 *
 * They are shown the run's durable events, so each moment at most once, never on a replay, and from a run that another process goes
 * on with only what happens there. Callbacks run beside the loop and beside each other; one callback is shown the moments of a run one after
 * another, in their order. What a callback throws is recorded as `hook_error` and goes no further (S4). A run's result is given out when
 * all of them are through.
 */
export class HookManager implements Hooks, EventObserver {
  #types: ReadonlySet<EventType> = eventTypesOf(new Set());
  readonly #projection = new HookProjection();
  readonly #calls: HookCalls;

  constructor({ timeoutMs = 30_000, onError }: HookManagerOptions = {}) {
    if (timeoutMs !== null && !(timeoutMs > 0)) {
      throw new Fault(
        "invalid_argument",
        `timeoutMs is ${describeValue(timeoutMs)}: it must be a number above 0, or null for any time`,
      );
    }
    this.#calls = new HookCalls(timeoutMs, onError);
  }

  /** The function returned takes the callback off again; what it was not yet called for, it is not. */
  on<Name extends HookEvent>(event: Name, callback: HookCallback<Name>): () => void {
    if (!names.has(event)) {
      throw new Fault(
        "invalid_argument",
        `${describeValue(event)} is not a hook event: use HookEvent, one of ${[...names].join(", ")}`,
      );
    }
    if (typeof callback !== "function") {
      throw new Fault("invalid_argument", `a hook is ${describeValue(callback)}: it must be a function`);
    }
    const registration = this.#calls.add(event, callback as unknown as HookCallback<HookEvent>);
    this.#types = eventTypesOf(this.#calls.hooks);
    return () => {
      this.#calls.remove(registration);
      this.#types = eventTypesOf(this.#calls.hooks);
    };
  }

  watches(type: EventType): boolean {
    return this.#types.has(type);
  }

  observe(event: Event, task: ObservedTask): void {
    this.#projection.project(event, task, this.#calls);
  }

  settled(runId: RunId): Promise<void> {
    return this.#calls.settled(runId);
  }
}
