import {
  describeValue,
  Fault,
  HookEvent,
  type Event,
  type EventObserver,
  type EventType,
  type Hook,
  type HookCallback,
  type HookPayload,
  type HookSet,
  type Hooks,
  type ObservedTask,
  type RunId,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";
import { HookCalls, type HookFailure } from "./hook-calls.ts";
import { eventTypesOf, HookProjection } from "./hook-projection.ts";

export interface HookManagerOptions {
  /**
   * Maximum time of one callback in milliseconds before the next event is delivered. `null` sets no limit. Default:
   * 30_000.
   */
  readonly timeoutMs?: number | null;
  /** Called with each failure, in addition to the `hook_error` event in the run's log. */
  readonly onError?: (failure: HookFailure) => void;
}

const names: ReadonlySet<string> = new Set(Object.values(HookEvent));

const knownOptions = optionTable({
  timeoutMs: is.number({ above: 0, or: [null, "no limit"], default: 30_000 }),
  onError: is.callback(),
} satisfies OptionKinds<HookManagerOptions>);

/**
 * Calls registered callbacks when something happens to an agent's tasks. Callbacks only observe; they cannot change
 * or stop a run.
 *
 * Hook events are derived from durable events, so that each is delivered at most once and never on a replay. If
 * another process resumes a run, its callbacks receive only what happens in that process. The agent's loop does not
 * wait for callbacks, and callbacks run concurrently; each receives the events of a run in order. An error of a
 * callback is recorded as `hook_error` and has no other effect (S4). A run's result is returned after all callbacks
 * have finished.
 */
export class HookManager implements Hooks, EventObserver {
  #types: ReadonlySet<EventType> = eventTypesOf(new Set());
  readonly #projection = new HookProjection();
  readonly #calls: HookCalls;

  constructor(options: HookManagerOptions = {}) {
    const { timeoutMs, onError } = knownOptions.read("HookManager", options);
    this.#calls = new HookCalls(timeoutMs, onError);
  }

  /**
   * Registers a hook: a callback with its moment, or a set of hooks such as a `RunLogger` or a `CostTracker`. The
   * returned function removes it.
   */
  register(hook: Hook | HookSet): () => void {
    if (typeof hook === "object" && hook !== null) {
      if ("watch" in hook && typeof hook.watch === "function") return hook.watch(this);
      if ("event" in hook && "callback" in hook)
        return this.on(hook.event, hook.callback as HookCallback<HookEvent>);
    }
    throw new Fault(
      "invalid_argument",
      `invalid hook ${describeValue(hook)}: expected { event, callback }, or an object with a method watch(hooks)`,
    );
  }

  /**
   * Calls the callbacks of a moment with a payload, concurrently, and resolves when all have ended. Use it in tests
   * of hooks and for runs outside the runtime; the runtime calls the callbacks itself. S4: it does not reject if a
   * callback fails. It returns the failures, and also passes them to `onError`. There is no timeout.
   */
  dispatch<Name extends HookEvent>(event: Name, payload: HookPayload<Name>): Promise<readonly HookFailure[]> {
    requireHookEvent(event);
    return this.#calls.dispatch(event, payload);
  }

  /** Registers a callback. The returned function removes it; pending calls are dropped. */
  on<Name extends HookEvent>(event: Name, callback: HookCallback<Name>): () => void;
  /**
   * Returns a decorator that registers a function and returns it, for a function that is declared in place:
   * `const logStart = hooks.on(HookEvent.RUN_START)(({ runId }) => console.log(runId))`.
   */
  on<Name extends HookEvent>(
    event: Name,
  ): <Callback extends HookCallback<Name>>(callback: Callback) => Callback;
  on<Name extends HookEvent>(
    event: Name,
    ...callbacks: readonly [] | readonly [HookCallback<Name>]
  ): (() => void) | (<Callback extends HookCallback<Name>>(callback: Callback) => Callback) {
    requireHookEvent(event);
    if (callbacks.length === 1) return this.#add(event, callbacks[0]);
    return (callback) => {
      this.#add(event, callback);
      return callback;
    };
  }

  #add<Name extends HookEvent>(event: Name, callback: HookCallback<Name>): () => void {
    if (typeof callback !== "function") {
      throw new Fault("invalid_argument", `invalid hook ${describeValue(callback)}: expected a function`);
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

function requireHookEvent(event: HookEvent): void {
  if (names.has(event)) return;
  throw new Fault(
    "invalid_argument",
    `invalid hook event ${describeValue(event)}: expected one of HookEvent, ${[...names].join(", ")}`,
  );
}
