import {
  copyJson,
  deepFreeze,
  describeValue,
  eventDraft,
  Fault,
  HookEvent,
  type Event,
  type EventObserver,
  type EventType,
  type HookCallback,
  type HookPayload,
  type Hooks,
  type JsonValue,
  type ObservedTask,
  type RunId,
} from "../../kernel/index.ts";
import { HookProjection, onlyMoment } from "./hook-projection.ts";

export interface HookManagerOptions {
  /** How long one call of a callback may take before the next goes ahead without it. 30,000 unless told; `null`: any time. */
  readonly timeoutMs?: number | null;
  /** Besides the `hook_error` in the run's log. */
  readonly onError?: (failure: HookFailure) => void;
}

/** A callback that threw, or took too long. */
export interface HookFailure {
  readonly hook: HookEvent;
  /** The callback's name, where it has one. */
  readonly callback: string;
  readonly error: Fault;
}

interface Registration {
  readonly hook: HookEvent;
  readonly callback: HookCallback<HookEvent>;
  /** Of each run, the last call that is to be made; resolves to how many in a row hung by then. */
  readonly last: Map<RunId, Promise<number>>;
  active: boolean;
}

interface Shown {
  readonly payload: HookPayload<HookEvent>;
  readonly task: ObservedTask;
}

/** In a row, of one callback in one run. */
const mostHangs = 2;

function nothing(): void {}

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
  readonly #registrations = new Set<Registration>();
  readonly #projection = new HookProjection();
  readonly #timeoutMs: number | null;
  readonly #onError: ((failure: HookFailure) => void) | undefined;

  constructor({ timeoutMs = 30_000, onError }: HookManagerOptions = {}) {
    if (timeoutMs !== null && !(timeoutMs > 0)) {
      throw new Fault(
        "invalid_argument",
        `timeoutMs is ${describeValue(timeoutMs)}: it must be a number above 0, or null for any time`,
      );
    }
    this.#timeoutMs = timeoutMs;
    this.#onError = onError;
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
    const registration: Registration = {
      hook: event,
      callback: callback as unknown as HookCallback<HookEvent>,
      last: new Map(),
      active: true,
    };
    this.#registrations.add(registration);
    return () => {
      registration.active = false;
      this.#registrations.delete(registration);
    };
  }

  watches(type: EventType): boolean {
    const hook = onlyMoment[type];
    if (hook === undefined) return true;
    for (const each of this.#registrations) if (each.hook === hook) return true;
    return false;
  }

  observe(event: Event, task: ObservedTask): void {
    for (const { hook, payload } of this.#projection.moments(event, task)) {
      const watching = [...this.#registrations].filter((each) => each.hook === hook);
      if (watching.length === 0) continue;
      // A copy of their own: what is frozen must not be something that somebody else still works with.
      const copy = deepFreeze(copyJson(payload() as unknown as JsonValue));
      const shown = { payload: copy as unknown as HookPayload<HookEvent>, task };
      for (const registration of watching) this.#enqueue(registration, event.runId, shown);
    }
  }

  async settled(runId: RunId): Promise<void> {
    await Promise.all([...this.#registrations].flatMap(({ last }) => last.get(runId) ?? []));
  }

  #enqueue(registration: Registration, runId: RunId, moment: Shown): void {
    const { last } = registration;
    const call = this.#call(registration, moment, last.get(runId));
    last.set(runId, call);
    void call.finally(() => {
      if (last.get(runId) === call) last.delete(runId);
    });
  }

  /** Never rejects. Whoever hangs twice running is shown nothing of what has come meanwhile: a result waits for two of them at most. */
  async #call(
    registration: Registration,
    { payload, task }: Shown,
    before?: Promise<number>,
  ): Promise<number> {
    const hung = (await before) ?? 0;
    if (!registration.active) return 0;
    if (hung >= mostHangs) return hung;
    try {
      const returned = registration.callback(payload);
      if (returned === undefined || (await this.#inTime(Promise.resolve(returned), task))) return 0;
    } catch (error) {
      this.#fail(registration, Fault.from(error), task);
      return 0;
    }
    const late = `it took longer than ${this.#timeoutMs} ms; ${hung + 1 < mostHangs ? "the moments after it went ahead" : "what has come meanwhile is not shown to it"}`;
    this.#fail(registration, new Fault("internal", late), task);
    return hung + 1;
  }

  /** Whether it was over in time. */
  #inTime(work: Promise<void>, { clock }: ObservedTask): Promise<boolean> {
    const most = this.#timeoutMs;
    return new Promise((resolve, reject) => {
      const cancel = most === null ? nothing : clock.schedule(clock.now() + most, () => resolve(false));
      work.then(() => resolve(true), reject).finally(cancel);
    });
  }

  #fail({ hook, callback }: Registration, error: Fault, task: ObservedTask): void {
    const { name } = callback;
    const label = name === "" ? hook : `${hook} ${name}`;
    task.tell(eventDraft("hook_error", { hook: label, failure: error.toJSON() }));
    try {
      this.#onError?.({ hook, callback: name, error });
    } catch (thrown) {
      const failure = Fault.from(thrown).toJSON();
      task.tell(eventDraft("hook_error", { hook: `onError of ${label}`, failure }));
    }
  }
}
