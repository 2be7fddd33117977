import { openStep, type ActiveStep } from "./active-step.ts";
import {
  CancellationError,
  Fault,
  JsonDigest,
  reviveFault,
  sealedOutcome,
  sealJson,
  sealMadeJson,
  stepAt,
  type EventDraft,
  type JsonValue,
  type StepAddress,
  type StepKind,
  type StepOutcome,
  type StepScope,
} from "../../kernel/index.ts";
import { CallbackFuture } from "./callback-future.ts";
import { pendingForever } from "../process/pending-forever.ts";
import { ComputedAtCommit, type Done } from "./step-result.ts";
import type { CancellationScope } from "./cancellation-scope.ts";
import type { TaskRunner } from "./task-runner.ts";
import type { StepIdentity } from "../journal/step-identity.ts";

/** What a step does. What is settled with its record is one commit with it. */
export type Body<Value, Step = StepIdentity> = (
  open: ActiveStep,
  step: Step,
) => Done<Value> | Promise<Done<Value>> | CallbackFuture<Done<Value>>;

/** The steps of one scope of a task: their addresses, one open at a time (J2), each performed once (J1). */
export class StepExecutor {
  readonly runner: TaskRunner;
  readonly scope: StepScope;
  readonly cancelScope: CancellationScope;
  #index = 0;
  #open: Call | undefined;
  /** E4: told by the code since its last step. */
  #events: EventDraft[] = [];
  /** Looks that found nothing since then. */
  #emptyPolls: StepIdentity[] | undefined;

  constructor(runner: TaskRunner, scope: StepScope, cancelScope: CancellationScope) {
    this.runner = runner;
    this.scope = scope;
    this.cancelScope = cancelScope;
  }

  next(): StepAddress {
    return stepAt(this.scope, this.#index++);
  }

  identify(kind: StepKind, name: string, input: unknown): StepIdentity {
    const digest = input === null ? JsonDigest.ofNull : new JsonDigest(input);
    return { address: this.next(), kind, name, digest };
  }

  idempotencyKey(address: StepAddress): string {
    return `${this.runner.facts.runId}/${this.runner.taskId}/${address}`;
  }

  emit(draft: EventDraft): void {
    this.#events.push(draft);
  }

  /** What was told since the last step, for whoever comes after this scope. */
  takeEvents(): readonly EventDraft[] {
    if (this.#events.length === 0) return nothing;
    const events = this.#events;
    this.#events = [];
    return events;
  }

  /** C2. */
  check(): void {
    const { runner, scope, cancelScope } = this;
    if (!runner.isDropped && !runner.journal.hasRecorded(scope)) cancelScope.check();
  }

  /** J1, J2, J5: the recorded outcome, or the body's, recorded; no other call of the scope meanwhile. `as`: what the code is given of it. */
  run<Value, Given = Value, Step extends StepIdentity = StepIdentity>(
    step: Step,
    body: Body<Value, Step>,
    start?: EventDraft,
    as?: (value: Value, step: Step) => Given,
  ): Promise<Given> {
    if (this.#isOver) return pendingForever();
    if (this.#open !== undefined) return Promise.reject(ambiguous(step, this.#open));
    const events = this.takeEvents();
    try {
      const found = this.runner.journal.find(step);
      if (found !== undefined) return Promise.resolve(this.#given(step, found, as));
    } catch (error) {
      return isMismatch(error) ? pendingForever() : Promise.reject(error);
    }
    return this.#performAlone(step, body, events, start, as);
  }

  /** The same for a step that is over in the breath in which it is begun. */
  runSync<Value>(step: StepIdentity, read: () => Value): Promise<Value> {
    const { runner, cancelScope } = this;
    if (this.#isOver) return pendingForever();
    if (this.#open !== undefined) return Promise.reject(ambiguous(step, this.#open));
    const events = this.takeEvents();
    try {
      const found = runner.journal.find(step);
      if (found !== undefined) return Promise.resolve(this.#given<Value>(step, found));
      if (!runner.activity.isSeated)
        return this.#performAlone<Value, Value, StepIdentity>(step, () => read, events);
      this.#check(cancelScope, events);
      // An earlier owner may have told what was to be told, and no more.
      if (!runner.task.opened.has(step.address)) for (const draft of events) runner.journal.emit(draft);
      const outcome = outcomeOf(step, read);
      this.#emptyPolls = undefined;
      runner.journal.record(step, outcome, nothing);
      return Promise.resolve(this.#given<Value>(step, outcome));
    } catch (error) {
      if (error instanceof CancellationError) runner.noteStop(error);
      return isMismatch(error) ? pendingForever() : Promise.reject(error);
    }
  }

  /**
   * The same for a look at what may have come. One that found nothing needs no record where the step after it leaves a trace of its
   * beginning: nobody looks again at what that step goes by.
   */
  poll<Value>(step: StepIdentity, read: () => readonly Value[]): Promise<readonly Value[]> {
    const { runner, cancelScope } = this;
    if (this.#isOver || this.#open !== undefined || runner.task.steps.has(step.address))
      return this.runSync(step, read);
    if (runner.journal.wasSkipped(step.address)) return foundNothing;
    if (read().length > 0) return this.runSync(step, read);
    try {
      cancelScope.check();
    } catch (error) {
      if (error instanceof CancellationError) runner.noteStop(error);
      return Promise.reject(error);
    }
    if (this.#emptyPolls === undefined) this.#emptyPolls = [step];
    else this.#emptyPolls.push(step);
    return foundNothing;
  }

  /** J2: one journaled call at a time in a scope, at the first run already. */
  async exclusive<Value>(call: Call, body: () => Value | Promise<Value>): Promise<Value> {
    if (this.#isOver) return pendingForever();
    if (this.#open !== undefined) throw ambiguous(call, this.#open);
    this.#recordLooks();
    this.#open = call;
    try {
      const value = await body();
      return this.#isOver ? await pendingForever() : value;
    } catch (error) {
      if (this.#isOver || isMismatch(error)) return await pendingForever();
      if (error instanceof CancellationError) this.runner.noteStop(error);
      throw error;
    } finally {
      this.#open = undefined;
    }
  }

  /** J1, J5: for a call that is alone in its scope already, or one of several in one. */
  runInScope<Value, Step extends StepIdentity = StepIdentity>(
    step: Step,
    body: Body<Value, Step>,
    start?: EventDraft,
  ): Value | Promise<Value> {
    const events = this.takeEvents();
    const found = this.runner.journal.find(step);
    if (found !== undefined) return this.#given<Value>(step, found);
    return this.#perform(step, body, events, start);
  }

  /** No other call of the scope meanwhile: `#open` is the step from here until it is left. */
  #performAlone<Value, Given, Step extends StepIdentity>(
    step: Step,
    body: Body<Value, Step>,
    events: readonly EventDraft[],
    start?: EventDraft,
    as?: (value: Value, step: Step) => Given,
  ): Promise<Given> {
    this.#open = step;
    try {
      const given = this.#perform(step, body, events, start, as);
      return given instanceof Promise ? given : Promise.resolve(given);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** By hand and not by `async`: each function that waits costs, and this is where every step goes. */
  #perform<Value, Given, Step extends StepIdentity>(
    step: Step,
    body: Body<Value, Step>,
    events: readonly EventDraft[],
    start?: EventDraft,
    as?: (value: Value, step: Step) => Given,
  ): Given | Promise<Given> {
    try {
      const wait = this.#seated(events);
      if (wait !== undefined)
        return wait.then(
          () => this.#run(step, body, events, start, as),
          (error: unknown) => this.#thrown(step, error),
        );
    } catch (error) {
      return this.#thrown(step, error);
    }
    return this.#run(step, body, events, start, as);
  }

  #run<Value, Given, Step extends StepIdentity>(
    step: Step,
    body: Body<Value, Step>,
    events: readonly EventDraft[],
    start: EventDraft | undefined,
    as: ((value: Value, step: Step) => Given) | undefined,
  ): Given | Promise<Given> {
    const open = this.#begin(step, events, start);
    try {
      const begun = body(open, step);
      if (begun instanceof CallbackFuture) return this.#come(open, step, begun, as);
      return begun instanceof Promise
        ? begun.then(
            (done) => this.#done(open, step, done, as),
            (error: unknown) => this.#failed(open, step, error),
          )
        : this.#done(open, step, begun, as);
    } catch (error) {
      return this.#failed(open, step, error);
    }
  }

  #come<Given, Step extends StepIdentity>(
    open: ActiveStep,
    step: Step,
    coming: CallbackFuture<unknown>,
    as: ((value: never, step: Step) => Given) | undefined,
  ): Promise<Given> {
    return new Promise((resolve, reject) => {
      coming.begin(
        (done) => {
          try {
            resolve(this.#done(open, step, done, as));
          } catch (error) {
            reject(error);
          }
        },
        (error) => {
          try {
            resolve(this.#failed(open, step, error));
          } catch (fault) {
            reject(fault);
          }
        },
      );
    });
  }

  #done<Given, Step extends StepIdentity>(
    open: ActiveStep,
    step: Step,
    done: unknown,
    as: ((value: never, step: Step) => Given) | undefined,
  ): Given | Promise<Given> {
    if (this.runner.isDropped) return pendingForever();
    try {
      return this.#recorded(open, step, outcomeOf(step, done), as);
    } catch (error) {
      return this.#thrown(step, error, open);
    }
  }

  #failed(open: ActiveStep, step: StepIdentity, error: unknown): never | Promise<never> {
    if (this.runner.isDropped) return pendingForever();
    try {
      // What a stop made of it is not what it came to: whoever goes on begins it anew.
      if (this.cancelScope.isAbandoned) throw error;
      return this.#recorded<never, StepIdentity>(open, step, failureOf(error));
    } catch (fault) {
      return this.#thrown(step, fault, open);
    }
  }

  #recorded<Given, Step extends StepIdentity>(
    open: ActiveStep,
    step: Step,
    outcome: StepOutcome,
    as?: (value: never, step: Step) => Given,
  ): Given | Promise<never> {
    this.runner.journal.record(step, outcome, open.events, open.endedAt);
    const given = this.#given(step, outcome, as);
    this.#leave(step, open);
    return this.#isOver ? pendingForever() : given;
  }

  /** The code is given the fault, unless nothing here is answered any more. */
  #thrown(step: StepIdentity, error: unknown, open?: ActiveStep): Promise<never> {
    const isAlone = this.#open === step;
    this.#leave(step, open);
    if (isAlone) {
      if (this.#isOver || isMismatch(error)) return pendingForever();
      if (error instanceof CancellationError) this.runner.noteStop(error);
    }
    throw error;
  }

  #leave(step: StepIdentity, open: ActiveStep | undefined): void {
    open?.end();
    if (this.#open === step) this.#open = undefined;
  }

  #begin(
    { address }: StepIdentity,
    events: readonly EventDraft[],
    start: EventDraft | undefined,
  ): ActiveStep {
    const open = openStep(this.runner, address, this.cancelScope, events, start);
    if (this.#emptyPolls === undefined) return open;
    if (open.startSeq < 0) this.#recordLooks();
    else this.#emptyPolls = undefined;
    return open;
  }

  /** What comes next leaves no trace of its beginning. */
  #recordLooks(): void {
    const looked = this.#emptyPolls;
    this.#emptyPolls = undefined;
    if (looked !== undefined)
      for (const step of looked) this.runner.journal.record(step, noneOutcome, nothing);
  }

  /** C2, H7. What was to be told is told by whoever comes next, if this step never begins. */
  #seated(events: readonly EventDraft[]): Promise<void> | undefined {
    const { runner, cancelScope } = this;
    if (!runner.activity.isSeated) return this.#seatedLater(events);
    this.#check(cancelScope, events);
    return undefined;
  }

  async #seatedLater(events: readonly EventDraft[]): Promise<void> {
    try {
      await this.runner.activity.whenSeated(this.cancelScope);
    } catch (error) {
      this.#events.unshift(...events);
      throw error;
    }
  }

  #check(cancelScope: CancellationScope, events: readonly EventDraft[]): void {
    try {
      this.cancelScope.check();
    } catch (error) {
      this.#events.unshift(...events);
      throw error;
    }
  }

  #given<Given, Step extends StepIdentity = StepIdentity>(
    step: Step,
    outcome: StepOutcome,
    as?: (value: never, step: Step) => Given,
  ): Given {
    if (outcome.kind === "ok")
      return as === undefined ? (outcome.value as Given) : as(outcome.value as never, step);
    const fault = reviveFault(outcome.failure);
    this.runner.journal.noteOrigins(fault, [step.address]);
    throw fault;
  }

  /** Nothing here is answered any more. */
  get #isOver(): boolean {
    return this.runner.isDropped || this.cancelScope.isAbandoned;
  }
}

/** What is open in a scope: a step, or a call of several. */
type Call = StepIdentity | string;

const nothing: readonly EventDraft[] = [];

function ambiguous(call: Call, open: Call): Fault {
  return new Fault(
    "journal_ambiguous",
    `${shown(call)} was called while ${shown(open)} is open: await it first, or use ctx.parallel, ctx.tools, ctx.joinAll or ctx.race`,
  );
}

/** J4: the task is failing; its code is not asked. */
function isMismatch(error: unknown): boolean {
  return Fault.is(error) && error.code === "journal_mismatch";
}

function shown(call: Call): string {
  return typeof call === "string" ? call : `${call.kind} ${call.name}`;
}

/** J10: what is not JSON is refused here, before it is recorded anywhere. */
function outcomeOf({ kind, name }: StepIdentity, done: unknown): StepOutcome {
  try {
    const value = settled(done) ?? null;
    // A tool's result was looked at by its call, where what is wrong with it is told to the model (T2); a turn by who made it.
    if (kind === "tool" || kind === "turn") return sealedOutcome(value as JsonValue);
    if (value === none) return noneOutcome;
    if (kind === "llm") sealMadeJson(value, "the value of llm");
    else sealJson(value, `the value of ${kind} ${name}`);
    return sealedOutcome(value);
  } catch (error) {
    return failureOf(error);
  }
}

function settled(done: unknown): unknown {
  if (typeof done === "function") return (done as () => unknown)();
  return done instanceof ComputedAtCommit ? done.settle() : done;
}

/** What a step gives that found nothing. */
export const none: readonly never[] = Object.freeze([]);
const foundNothing: Promise<readonly never[]> = Promise.resolve(none);
const noneOutcome: StepOutcome = Object.freeze({ kind: "ok", value: none });

/** A stop is not an outcome of the step: whoever replays is stopped again (C2). Everything else that is thrown is recorded (J5). */
function failureOf(error: unknown): StepOutcome {
  const fault = Fault.from(error);
  if (fault instanceof CancellationError || fault.code === "lease_lost" || fault.code === "journal_mismatch")
    throw fault;
  return { kind: "failed", failure: fault.toJSON() };
}
