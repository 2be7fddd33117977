import { openStep, type ActiveStep } from "./active-step.ts";
import {
  CancellationError,
  JsonDigest,
  stepAt,
  type EventDraft,
  type StepAddress,
  type StepKind,
  type StepOutcome,
  type StepScope,
} from "../../kernel/index.ts";
import { pendingForever } from "../process/pending-forever.ts";
import { earlyEventsAddress, earlyEventsIn } from "../journal/wait-names.ts";
import type { FlushableLog, IdleWait } from "../process/idle-flusher.ts";
import type { CancellationScope } from "./cancellation-scope.ts";
import { ambiguous, isMismatch, lateCall, type Body, type Call } from "./step-body.ts";
import { failureOf, none, noneOutcome, outcomeOf, valueOf } from "./step-outcome.ts";
import type { TaskRunner } from "./task-runner.ts";
import type { StepIdentity } from "../journal/step-identity.ts";

/**
 * Executes the steps of one scope of a task: assigns their addresses, allows one at a time (J2), and runs each at most
 * once (J1).
 */
export class StepExecutor implements FlushableLog {
  readonly runner: TaskRunner;
  readonly scope: StepScope;
  readonly cancelScope: CancellationScope;
  #index = 0;
  #open: Call | undefined;
  /** E4: events that the code has emitted since its last step. */
  #events: EventDraft[] = [];
  /** Present while there are such events. */
  #idleWait: IdleWait | undefined;
  /** Number of events that the code has emitted in this scope. */
  #emitted = 0;
  /** Number of the scope's first events that are in the log already, because an earlier owner was idle after them. */
  readonly #inLog: number;
  /** Polls since the last step that found nothing. */
  #emptyPolls: StepIdentity[] | undefined;

  constructor(runner: TaskRunner, scope: StepScope, cancelScope: CancellationScope) {
    this.runner = runner;
    this.scope = scope;
    this.cancelScope = cancelScope;
    const { opened } = runner.task;
    this.#inLog = opened.size === 0 ? 0 : earlyEventsIn(opened.keys(), scope);
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

  /**
   * E4: emits an event with the next step of this scope, or earlier if the task starts no step in a full turn of the
   * event loop.
   */
  emit(draft: EventDraft): void {
    if (++this.#emitted <= this.#inLog) return;
    this.#events.push(draft);
    this.#idleWait ??= this.runner.worker.idleFlusher.add(this);
  }

  /** E4: emits the pending events, with a mark that keeps a replay from emitting them again. */
  writeIdle(): void {
    const { runner, scope } = this;
    this.#idleWait = undefined;
    if (this.#isOver || !runner.journal.isPastReplay(scope)) return;
    let seq = -1;
    for (const draft of this.takeEvents()) seq = runner.journal.emit(draft);
    const address = earlyEventsAddress(scope, this.#emitted);
    runner.log.open({ taskId: runner.taskId, address, seq }, runner.worker.clock.now(), runner.task);
  }

  /** Removes and returns the events since the last step, for the code that follows this scope. */
  takeEvents(): readonly EventDraft[] {
    if (this.#events.length === 0) return nothing;
    const events = this.#events;
    this.#events = [];
    this.#idleWait?.cancel();
    this.#idleWait = undefined;
    return events;
  }

  /** Makes events pending again, because the step that took them does not start. */
  #putBack(events: readonly EventDraft[]): void {
    if (events.length === 0) return;
    this.#events.unshift(...events);
    this.#idleWait ??= this.runner.worker.idleFlusher.add(this);
  }

  /** C2: throws if the scope is cancelled, unless recorded steps remain. */
  check(): void {
    const { runner, scope, cancelScope } = this;
    if (!runner.isDropped && !runner.journal.hasRecorded(scope)) cancelScope.check();
  }

  /**
   * J1, J2, J5: returns the recorded outcome, or runs the body and records its outcome. No other call of the scope may
   * run meanwhile. `as` converts the value for the code.
   */
  run<Value, Given = Value, Step extends StepIdentity = StepIdentity>(
    step: Step,
    body: Body<Value, Step>,
    start?: EventDraft,
    as?: (value: Value, step: Step) => Given,
  ): Promise<Given> {
    if (this.#isOver || this.runner.hasEnded) return this.#late(step);
    if (this.#open !== undefined) return Promise.reject(ambiguous(step, this.#open));
    const events = this.takeEvents();
    try {
      const found = this.runner.journal.find(step);
      if (found !== undefined) return Promise.resolve(valueOf(this.runner.journal, step, found, as));
    } catch (error) {
      return isMismatch(error) ? pendingForever() : Promise.reject(error);
    }
    return this.#performAlone(step, body, events, start, as);
  }

  /** Like `run`, for a step whose value is available synchronously. */
  runSync<Value>(step: StepIdentity, read: () => Value): Promise<Value> {
    const { runner } = this;
    if (this.#isOver || runner.hasEnded) return this.#late(step);
    if (this.#open !== undefined) return Promise.reject(ambiguous(step, this.#open));
    const events = this.takeEvents();
    try {
      const found = runner.journal.find(step);
      if (found !== undefined) return Promise.resolve(valueOf<Value>(this.runner.journal, step, found));
      if (!runner.activity.isSeated)
        return this.#performAlone<Value, Value, StepIdentity>(step, () => read, events);
      this.#check(events);
      // If an earlier owner has started the step, it has emitted these events.
      if (!runner.task.opened.has(step.address)) for (const draft of events) runner.journal.emit(draft);
      const outcome = outcomeOf(step, read, runner.worker.sizes);
      this.#emptyPolls = undefined;
      runner.journal.record(step, outcome, nothing);
      return Promise.resolve(valueOf<Value>(runner.journal, step, outcome));
    } catch (error) {
      if (error instanceof CancellationError) runner.noteStop(error);
      return isMismatch(error) ? pendingForever() : Promise.reject(error);
    }
  }

  /**
   * Like `run`, for a poll of what has arrived. An empty poll is not recorded if the next step records its start: on
   * replay, that start proves that the poll came before it and found nothing.
   */
  poll<Value>(step: StepIdentity, read: () => readonly Value[]): Promise<readonly Value[]> {
    const { runner, cancelScope } = this;
    if (this.#isOver || runner.hasEnded || this.#open !== undefined || runner.task.steps.has(step.address))
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

  /** J2: allows one journaled call at a time in a scope, already on the first execution. */
  async exclusive<Value>(call: Call, body: () => Value | Promise<Value>): Promise<Value> {
    if (this.#isOver || this.runner.hasEnded) return this.#late(call);
    if (this.#open !== undefined) throw ambiguous(call, this.#open);
    this.#recordEmptyPolls();
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

  /** J1, J5: runs a step for a caller that already excludes other calls of the scope, or runs several on purpose. */
  runInScope<Value, Step extends StepIdentity = StepIdentity>(
    step: Step,
    body: Body<Value, Step>,
    start?: EventDraft,
  ): Value | Promise<Value> {
    const events = this.takeEvents();
    const found = this.runner.journal.find(step);
    if (found !== undefined) return valueOf<Value>(this.runner.journal, step, found);
    return this.#perform(step, body, events, start);
  }

  /** Runs a step while no other call of the scope runs: `#open` is the step until it ends. */
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

  /**
   * Written with callbacks instead of `async`, because every step passes here and each async function costs. Bench:
   * `loop`, row "turn in memory".
   */
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
    let done: ReturnType<Body<Value, Step>>;
    try {
      done = body(open, step);
    } catch (error) {
      return this.#failed(open, step, error);
    }
    if (!(done instanceof Promise)) return this.#done(open, step, done, as);
    return done.then(
      (value) => this.#done(open, step, value, as),
      (error: unknown) => this.#failed(open, step, error),
    );
  }

  #done<Given, Step extends StepIdentity>(
    open: ActiveStep,
    step: Step,
    done: unknown,
    as: ((value: never, step: Step) => Given) | undefined,
  ): Given | Promise<Given> {
    if (this.runner.isDropped) return pendingForever();
    try {
      const outcome = outcomeOf(step, done, this.runner.worker.sizes);
      if (this.cancelScope.isAbandoned && this.runner.journal.handsOn(step, outcome)) {
        this.#leave(step, open);
        return pendingForever();
      }
      return this.#recorded(open, step, outcome, as);
    } catch (error) {
      return this.#thrown(step, error, open);
    }
  }

  #failed(open: ActiveStep, step: StepIdentity, error: unknown): never | Promise<never> {
    if (this.runner.isDropped) return pendingForever();
    try {
      // An abandoned step is not recorded: a process that resumes the task runs it again.
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
    if (open.nested?.isAbandoned === true) this.runner.journal.abandon(step.address, noBranches);
    else if (outcome.kind === "failed" && open.firstBranch !== undefined)
      this.runner.journal.abandon(step.address, [open.firstBranch]);
    const given = valueOf(this.runner.journal, step, outcome, as);
    this.#leave(step, open);
    return this.#isOver ? pendingForever() : given;
  }

  /** Throws the fault to the code, unless the scope is abandoned and nothing settles any more. */
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
    if (open.startSeq < 0) this.#recordEmptyPolls();
    else this.#emptyPolls = undefined;
    return open;
  }

  /** Records the empty polls, because the next step does not record its start. */
  #recordEmptyPolls(): void {
    const polls = this.#emptyPolls;
    this.#emptyPolls = undefined;
    if (polls !== undefined) for (const step of polls) this.runner.journal.record(step, noneOutcome, nothing);
  }

  /**
   * C2, H7: waits for the seat of the task. If the step never starts, its pending events are emitted with the next one.
   */
  #seated(events: readonly EventDraft[]): Promise<void> | undefined {
    if (!this.runner.activity.isSeated) return this.#seatedLater(events);
    this.#check(events);
    return undefined;
  }

  async #seatedLater(events: readonly EventDraft[]): Promise<void> {
    try {
      await this.runner.activity.whenSeated(this.cancelScope);
    } catch (error) {
      this.#putBack(events);
      throw error;
    }
  }

  #check(events: readonly EventDraft[]): void {
    try {
      this.cancelScope.check();
    } catch (error) {
      this.#putBack(events);
      throw error;
    }
  }

  /**
   * A call that settles no more. It is rejected if the code of the task has ended: only work that nothing awaits, such as
   * a timer of a tool, still calls. The code of a task that was dropped before its end must not run on.
   */
  #late(call: Call): Promise<never> {
    const { runner } = this;
    return runner.hasEnded ? Promise.reject(lateCall(call, runner.taskId)) : pendingForever();
  }

  /** Whether nothing in this scope settles any more. */
  get #isOver(): boolean {
    return this.runner.isDropped || this.cancelScope.isAbandoned;
  }
}

const nothing: readonly EventDraft[] = [];
const noBranches: readonly string[] = [];

const foundNothing: Promise<readonly never[]> = Promise.resolve(none);
