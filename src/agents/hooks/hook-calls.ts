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
} from "../../kernel/index.ts";
import type { MomentViewer } from "./hook-projection.ts";

/** A callback that threw, or took too long. */
export interface HookFailure {
  readonly hook: HookEvent;
  /** The callback's name, where it has one. */
  readonly callback: string;
  readonly error: Fault;
}

/** A callback that watches. */
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

/** Callbacks by the moments they watch, and their calls: S4 of each of them. */
export class HookCalls implements MomentViewer {
  /** In the order of their registration; replaced, never changed. */
  readonly #watching = new Map<HookEvent, readonly Registration[]>();
  readonly #timeoutMs: number | null;
  readonly #onError: ((failure: HookFailure) => void) | undefined;

  constructor(timeoutMs: number | null, onError: ((failure: HookFailure) => void) | undefined) {
    this.#timeoutMs = timeoutMs;
    this.#onError = onError;
  }

  /** Moments that are watched. */
  get hooks(): ReadonlySet<HookEvent> {
    return new Set(this.#watching.keys());
  }

  add(hook: HookEvent, callback: HookCallback<HookEvent>): Registration {
    const registration = { hook, callback, working: new Map(), active: true };
    this.#watching.set(hook, [...(this.#watching.get(hook) ?? []), registration]);
    return registration;
  }

  /** What it was not yet called for, it is not. */
  remove(registration: Registration): void {
    const { hook } = registration;
    registration.active = false;
    const others = this.#watching.get(hook)?.filter((each) => each !== registration) ?? [];
    if (others.length > 0) this.#watching.set(hook, others);
    else this.#watching.delete(hook);
  }

  async settled(runId: RunId): Promise<void> {
    // What was observed before has been begun with by then.
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
      // By `call`: compiled for one agent's function, this would be compiled again for the next one's.
      const returned = registration.callback.call(undefined, payload);
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
    task.emitEvent(eventDraft("hook_error", { hook: label, failure: error.toJSON() }));
    try {
      this.#onError?.({ hook, callback: name, error });
    } catch (thrown) {
      const failure = Fault.from(thrown).toJSON();
      task.emitEvent(eventDraft("hook_error", { hook: `onError of ${label}`, failure }));
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
