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
import { eventTypesOf, HookProjection, type ShowMoment } from "./hook-projection.ts";

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
  /** Of each run, the last of the calls that are at work or wait; resolves to how many in a row hung by then. */
  readonly working: Map<RunId, Promise<number>>;
  active: boolean;
}

interface Moment {
  readonly payload: HookPayload<HookEvent>;
  readonly task: ObservedTask;
}

/** In a row, of one callback in one run. */
const mostHangs = 2;

function nothing(): void {}

/** What is told now is shown after whoever told of it has gone on. */
const soon = Promise.resolve();

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
  /** By hook, in the order of their registration; replaced, never changed. */
  readonly #watching = new Map<HookEvent, readonly Registration[]>();
  #types: ReadonlySet<EventType> = eventTypesOf(new Set());
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
      working: new Map(),
      active: true,
    };
    this.#watch(event, [...(this.#watching.get(event) ?? []), registration]);
    return () => {
      registration.active = false;
      this.#watch(event, this.#watching.get(event)?.filter((each) => each !== registration) ?? []);
    };
  }

  watches(type: EventType): boolean {
    return this.#types.has(type);
  }

  observe(event: Event, task: ObservedTask): void {
    this.#projection.project(event, task, this.#show);
  }

  async settled(runId: RunId): Promise<void> {
    // What was observed before has been begun with by then.
    await soon;
    for (const watching of this.#watching.values())
      for (const { working } of watching) if (working.has(runId)) await working.get(runId);
  }

  #watch(hook: HookEvent, registrations: readonly Registration[]): void {
    if (registrations.length > 0) this.#watching.set(hook, registrations);
    else this.#watching.delete(hook);
    this.#types = eventTypesOf(new Set(this.#watching.keys()));
  }

  readonly #show: ShowMoment = (hook, payload, task) => {
    const watching = this.#watching.get(hook);
    if (watching === undefined) return;
    const moment = { payload: sealed(payload), task };
    void soon.then(() => this.#tell(watching, moment));
  };

  #tell(watching: readonly Registration[], moment: Moment): void {
    for (const registration of watching) this.#begin(registration, moment);
  }

  /** Behind the calls that are at work for the run, if any: most callbacks return at once. */
  #begin(registration: Registration, moment: Moment): void {
    const { working } = registration;
    const { runId } = moment.payload;
    const before = working.get(runId);
    const called =
      before === undefined
        ? this.#call(registration, moment, 0)
        : before.then((hung) => this.#call(registration, moment, hung));
    if (typeof called === "number") return;
    working.set(runId, called);
    void called.finally(() => {
      if (working.get(runId) === called) working.delete(runId);
    });
  }

  /**
   * Never throws or rejects. Whoever hangs twice running is shown nothing of what has come meanwhile: a result waits for two of them at
   * most.
   */
  #call(registration: Registration, { payload, task }: Moment, hung: number): number | Promise<number> {
    if (!registration.active) return 0;
    if (hung >= mostHangs) return hung;
    try {
      const returned = registration.callback(payload);
      return returned === undefined ? 0 : this.#finish(registration, returned, task, hung);
    } catch (error) {
      this.#fail(registration, Fault.from(error), task);
      return 0;
    }
  }

  async #finish(
    registration: Registration,
    returned: Promise<void>,
    task: ObservedTask,
    hung: number,
  ): Promise<number> {
    try {
      if (await this.#inTime(Promise.resolve(returned), task)) return 0;
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

/** Of the payload, which is new, what is not: an event's parts are frozen, and what is not may be something that somebody still works with. */
function sealed<Payload extends object>(payload: Payload): Payload {
  for (const key in payload) {
    const member = payload[key];
    if (typeof member === "object" && !Object.isFrozen(member))
      payload[key] = deepFreeze(copyJson(member as unknown as JsonValue)) as unknown as typeof member;
  }
  return Object.freeze(payload);
}
