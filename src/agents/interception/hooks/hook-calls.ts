import {
  copyJson,
  deepFreeze,
  eventDraft,
  Fault,
  type HookCallback,
  type HookEvent,
  type HookPayload,
  type JsonValue,
  type ObservedTask,
  type RunId,
} from "../../../kernel/index.ts";
import type { MomentViewer } from "./hook-projection.ts";

/** A callback that threw or exceeded its timeout. */
export interface HookFailure {
  readonly hook: HookEvent;
  /** The callback's function name, if it has one. */
  readonly callback: string;
  readonly error: Fault;
}

/** A registered callback. */
interface Registration {
  readonly hook: HookEvent;
  readonly callback: HookCallback<HookEvent>;
  /** The last running or waiting call per run. It resolves to the number of consecutive timeouts. */
  readonly working: Map<RunId, Promise<number>>;
  active: boolean;
}

interface Moment {
  readonly payload: HookPayload<HookEvent>;
  readonly task: ObservedTask;
}

/**
 * Number of consecutive timeouts of one callback in one run, after which the callback does not receive events that
 * waited in this time.
 */
const mostHangs = 2;

function nothing(): void {}

/** Defers callbacks until the code that emitted the event has continued. */
const soon = Promise.resolve();

/** The registered callbacks by hook event, and their calls. S4: an error of a callback does not fail the run. */
export class HookCalls implements MomentViewer {
  /** Callbacks in order of registration. The lists are replaced, never changed. */
  readonly #watching = new Map<HookEvent, readonly Registration[]>();
  readonly #timeoutMs: number | null;
  readonly #onError: ((failure: HookFailure) => void) | undefined;

  constructor(timeoutMs: number | null, onError: ((failure: HookFailure) => void) | undefined) {
    this.#timeoutMs = timeoutMs;
    this.#onError = onError;
  }

  /** The hook events that have a callback. */
  get hooks(): ReadonlySet<HookEvent> {
    return new Set(this.#watching.keys());
  }

  add(hook: HookEvent, callback: HookCallback<HookEvent>): Registration {
    const registration = { hook, callback, working: new Map(), active: true };
    this.#watching.set(hook, [...(this.#watching.get(hook) ?? []), registration]);
    return registration;
  }

  /** Removes a callback. Pending calls of it are dropped. */
  remove(registration: Registration): void {
    const { hook } = registration;
    registration.active = false;
    const others = this.#watching.get(hook)?.filter((each) => each !== registration) ?? [];
    if (others.length > 0) this.#watching.set(hook, others);
    else this.#watching.delete(hook);
  }

  async settled(runId: RunId): Promise<void> {
    // Calls for events that were observed before have been started by then.
    await soon;
    for (const watching of this.#watching.values())
      for (const { working } of watching) if (working.has(runId)) await working.get(runId);
  }

  show<Name extends HookEvent>(hook: Name, payload: HookPayload<Name>, task: ObservedTask): void {
    const watching = this.#watching.get(hook);
    if (watching === undefined) return;
    const moment = { payload: sealed(payload), task };
    void soon.then(() => this.#tell(watching, moment));
  }

  /** Calls the callbacks of a moment that the caller passes, and that no task has emitted. Returns the failures. */
  async dispatch<Name extends HookEvent>(
    hook: Name,
    payload: HookPayload<Name>,
  ): Promise<readonly HookFailure[]> {
    const watching = this.#watching.get(hook) ?? [];
    const shown = sealed({ ...payload });
    const settled = await Promise.allSettled(watching.map(async ({ callback }) => callback(shown)));
    const failures = settled.flatMap((each, index) =>
      each.status === "fulfilled"
        ? []
        : [{ hook, callback: watching[index]?.callback.name ?? "", error: Fault.from(each.reason) }],
    );
    for (const failure of failures) this.#onError?.(failure);
    return failures;
  }

  #tell(watching: readonly Registration[], moment: Moment): void {
    for (const registration of watching) this.#begin(registration, moment);
  }

  /** Starts a call after the callback's earlier calls for the run have ended. Most callbacks return synchronously. */
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
   * Calls a callback. Never throws or rejects. A callback that times out twice in a row does not receive the events
   * of that time, so that the result of a run waits for at most two timeouts.
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
    const late = `the callback exceeded its timeout of ${this.#timeoutMs} ms; ${hung + 1 < mostHangs ? "later events were delivered" : "events of that time are not delivered to it"}`;
    this.#fail(registration, new Fault("internal", late), task);
    return hung + 1;
  }

  /** Whether the work finished before the timeout. */
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
    task.emitEvent(eventDraft("hook_error", { hook: label, failure: error.toJSON() }));
    try {
      this.#onError?.({ hook, callback: name, error });
    } catch (thrown) {
      const failure = Fault.from(thrown).toJSON();
      task.emitEvent(eventDraft("hook_error", { hook: `onError of ${label}`, failure }));
    }
  }
}

/**
 * Freezes a payload. Parts that come from an event are already frozen; other parts may still be in use and are not
 * changed.
 */
function sealed<Payload extends object>(payload: Payload): Payload {
  for (const key in payload) {
    const member = payload[key];
    if (typeof member === "object" && !Object.isFrozen(member))
      payload[key] = deepFreeze(copyJson(member as unknown as JsonValue)) as unknown as typeof member;
  }
  return Object.freeze(payload);
}
