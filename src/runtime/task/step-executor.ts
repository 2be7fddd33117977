import { openStep, type ActiveStep } from "./active-step.ts";
import {
  CancellationError,
  JsonDigest,
  sealedOutcome,
  stepAt,
  type EventDraft,
  type StepAddress,
  type StepKind,
  type StepOutcome,
  type StepScope,
} from "../../kernel/index.ts";
import { pendingForever } from "../process/pending-forever.ts";
import { earlyEventsAddress, earlyEventsIn, journalScope, patchIn } from "../journal/wait-names.ts";
import type { FlushableLog, IdleWait } from "../process/idle-flusher.ts";
import type { CancellationScope } from "./cancellation-scope.ts";
import { ambiguous, isMismatch, lateCall, type Body, type Call } from "./step-body.ts";
import { failureOf, none, noneOutcome, outcomeOf, valueOf } from "./step-outcome.ts";
import type { TaskRunner } from "./task-runner.ts";
import type { Abandonment } from "../journal/branch-values.ts";
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
  #promises = 0;
  #open: Call | undefined;
  /** E4: events that the code has emitted since its last step. */
  #events: EventDraft[] = [];
  /** Pending while there are such events. */
  #idleWait: IdleWait | undefined;
  /** Number of events that the code has emitted in this scope. */
  #emitted = 0;
  /**
   * Number of the scope's first events that are already in the log, because an earlier owner has written them while
   * it was idle.
   */
  readonly #inLog: number;
  /** Polls since the last step that returned nothing. */
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

  /**
   * Returns the number of the next promise of this scope. Promises are counted separately, because they are not
   * steps.
   */
  nextPromise(): number {
    return this.#promises++;
  }

  identify(kind: StepKind, name: string, input: unknown): StepIdentity {
    const digest = input === null ? JsonDigest.ofNull : new JsonDigest(input);
    return { address: this.next(), kind, name, digest };
  }

  /** Identifies a step like `identify`. The body of the step only executes branches of the code. */
  identifyBranches(kind: StepKind, name: string, input: unknown): StepIdentity {
    return { ...this.identify(kind, name, input), hasBranches: true };
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
    if (this.#idleWait?.isPending !== true) this.#awaitIdle();
  }

  /** E4: emits the pending events, with a mark so that a replay does not emit them again. */
  writeIdle(): void {
    const { runner, scope } = this;
    if (this.#isOver || !runner.journal.isPastReplay(scope)) return;
    let seq = -1;
    for (const draft of this.takeEvents()) seq = runner.journal.emit(draft);
    const address = earlyEventsAddress(scope, this.#emitted);
    runner.log.open({ taskId: runner.taskId, address, seq }, runner.worker.clock.now(), runner.task);
  }

  /** Removes and returns the events since the last step. They belong to the code that follows this scope. */
  takeEvents(): readonly EventDraft[] {
    if (this.#events.length === 0) return nothing;
    const events = this.#events;
    this.#events = [];
    this.#idleWait?.cancel();
    return events;
  }

  #awaitIdle(): void {
    this.#idleWait = this.runner.worker.idleFlusher.add(this, this.#idleWait);
  }

  /** Makes events pending again, because the step that had taken them does not start. */
  #putBack(events: readonly EventDraft[]): void {
    if (events.length === 0) return;
    this.#events.unshift(...events);
    if (this.#idleWait?.isPending !== true) this.#awaitIdle();
  }

  /**
   * C2: throws if the scope is cancelled. It does not throw while the scope has recorded steps that the replay has
   * not reached.
   */
  check(): void {
    const { runner, scope, cancelScope } = this;
    if (!runner.isDropped && !runner.journal.hasRecorded(scope)) cancelScope.check();
  }

  /**
   * J1, J2, J5: returns the recorded outcome, or runs the body and records its outcome. No other call of the scope
   * may run at the same time. `as` converts the value for the code.
   */
  run<Value, Given = Value, Step extends StepIdentity = StepIdentity>(
    step: Step,
    body: Body<Value, Step>,
    start?: EventDraft,
    as?: (value: Value, step: Step) => Given,
  ): Promise<Given> {
    const { journal } = this.runner;
    if (journal.isRecorded(step))
      return this.#atOnce(step, () => {
        this.takeEvents();
        return valueOf(journal, step, journal.recorded(step), as);
      });
    const refused = this.#refusal(step);
    if (refused !== undefined) return refused;
    this.#open = step;
    return this.runInScope(step, body, start, as);
  }

  /** Runs a step like `run`. The value of the step is available synchronously. */
  runSync<Value>(step: StepIdentity, read: () => Value): Promise<Value> {
    const { activity, journal } = this.runner;
    const isReady = activity.isSeated && !this.cancelScope.startsNoStep;
    if (!isReady && !journal.isRecorded(step)) return this.run<Value>(step, () => read);
    return this.#atOnce(step, () => this.#recordNow(step, read));
  }

  /**
   * Records that the code reached this step. The step has no effect outside the journal, so that it needs no seat,
   * and is recorded even if the scope is cancelled. `noted` is called together with the record, before this method
   * returns.
   */
  async note(step: StepIdentity, noted: () => void): Promise<void> {
    const { journal } = this.runner;
    if (this.cancelScope.startsNoStep && !journal.isRecorded(step)) return this.#stopBefore(step);
    return this.#atOnce(step, () => {
      const events = this.takeEvents();
      const found = journal.find(step);
      if (found !== undefined) valueOf(journal, step, found);
      else {
        this.#recordEmptyPolls();
        journal.record(step, nullOutcome, events);
      }
      noted();
    });
  }

  /** J9: returns the decision of `ctx.patched`, and records it if this call is the first with the name. */
  patched(name: string): boolean {
    const { task, journal } = this.runner;
    const address = patchIn(journalScope(task.journal), name);
    const known = task.steps.get(address)?.outcome;
    if (known !== undefined) return known.kind === "ok" && known.value === true;
    const isNew = !journal.hasUnreached;
    if (this.#isOver || this.runner.hasEnded || this.cancelScope.startsNoStep) return isNew;
    journal.record(
      { address, kind: "value", name: "patched", digest: JsonDigest.ofNull },
      sealedOutcome(isNew),
      nothing,
    );
    return isNew;
  }

  /**
   * Runs a step like `run` that reads what has arrived. If nothing has arrived and the next step records its start,
   * the read is not recorded. On a replay, this start proves that the read came before it and found nothing.
   */
  poll<Value>(step: StepIdentity, read: () => readonly Value[]): Promise<readonly Value[]> {
    const { runner, cancelScope } = this;
    if (this.#isOver || runner.hasEnded || this.#open !== undefined || runner.task.steps.has(step.address))
      return this.runSync(step, read);
    if (runner.journal.wasSkipped(step.address)) return noneFound;
    try {
      if (read().length > 0) return this.runSync(step, read);
      cancelScope.check();
    } catch (error) {
      if (error instanceof CancellationError) runner.noteStop(error);
      return Promise.reject(error);
    }
    if (this.#emptyPolls === undefined) this.#emptyPolls = [step];
    else this.#emptyPolls.push(step);
    return noneFound;
  }

  /**
   * J2: throws `journal_ambiguous` while a journaled call of the scope is open. `name` names the synchronous call
   * that needs an idle scope.
   */
  requireIdle(name: string): void {
    if (this.#open !== undefined) throw ambiguous(name, this.#open);
  }

  /** J2: allows one journaled call at a time in a scope, including the first execution. */
  exclusive<Value>(call: Call, body: () => Value | Promise<Value>): Promise<Value> {
    return this.#alone(call, () => {
      this.#recordEmptyPolls();
      return body();
    });
  }

  /**
   * J2: runs a call alone. `#open` is the call until it settles. It is set synchronously, so that a second call is
   * refused even if the code has not awaited the first one.
   */
  async #alone<Value>(call: Call, body: () => Value | Promise<Value>): Promise<Value> {
    const refused = this.#refusal(call);
    if (refused !== undefined) return refused;
    this.#open = call;
    try {
      const value = await body();
      return this.#isOver ? await pendingForever() : value;
    } catch (error) {
      return await this.#failed(error);
    } finally {
      this.#open = undefined;
    }
  }

  /** Returns what a call receives that must not start in this scope now. `undefined` if it may start. */
  #refusal(call: Call): Promise<never> | undefined {
    if (this.#isOver || this.runner.hasEnded) return this.#late(call);
    return this.#open === undefined ? undefined : Promise.reject(ambiguous(call, this.#open));
  }

  /** Returns what the code receives for a call that failed: the error, or a promise that never settles. */
  #failed(error: unknown): Promise<never> {
    if (this.#isOver || isMismatch(error)) return pendingForever();
    if (error instanceof CancellationError) this.runner.noteStop(error);
    return Promise.reject(error);
  }

  /**
   * J2: runs a call whose value is available at once: a recorded step, or a step that reads a value. It is never in
   * flight, so that the code may start another call before it awaits this one.
   */
  async #atOnce<Value>(call: Call, body: () => Value): Promise<Value> {
    const refused = this.#refusal(call);
    if (refused !== undefined) return refused;
    try {
      return body();
    } catch (error) {
      if (isMismatch(error)) return await pendingForever();
      if (error instanceof CancellationError) this.runner.noteStop(error);
      throw error;
    }
  }

  /**
   * J1, J5: runs the step that `run` has opened, or a step of a caller that already prevents other calls of the
   * scope, or runs several on purpose.
   *
   * A crash before the record repeats the body (J6). From the end of the body to the record there is no `await`, so
   * that everything that the body adds to the log at its end is part of the commit of the record.
   */
  async runInScope<Value, Step extends StepIdentity = StepIdentity, Given = Value>(
    step: Step,
    body: Body<Value, Step>,
    start?: EventDraft,
    as?: (value: Value, step: Step) => Given,
  ): Promise<Given> {
    const { runner, cancelScope } = this;
    const { journal } = runner;
    const isAlone = this.#open === step;
    let open: ActiveStep | undefined;
    try {
      const events = this.takeEvents();
      const found = journal.find(step);
      if (found !== undefined) return valueOf(journal, step, found, as);
      if (cancelScope.startsNoStep && !this.#entersBranches(step)) {
        const stop = this.#stopBefore(step);
        if (runner.onlyReplays) cancelScope.check();
        return await stop;
      }
      try {
        // C2, H7: the step waits for a seat. A crash meanwhile loses nothing, because the step has not started.
        const wait = runner.activity.whenSeated(cancelScope);
        if (wait !== undefined) await wait;
      } catch (error) {
        this.#putBack(events);
        throw error;
      }
      open = this.#begin(step, events, start);
      let outcome: StepOutcome;
      try {
        const working = body(open, step);
        const done = working instanceof Promise ? await working : working;
        if (runner.isDropped) return await pendingForever();
        outcome = outcomeOf(step, done, runner.worker.sizes);
      } catch (error) {
        if (runner.isDropped) return await pendingForever();
        // An abandoned step is not recorded: a process that resumes the task runs it again.
        if (cancelScope.isAbandoned) throw error;
        outcome = failureOf(error);
      }
      if (cancelScope.isAbandoned && journal.handsOn(step, outcome)) {
        open.end();
        return await pendingForever();
      }
      this.#record(step, open, outcome);
      const given = valueOf(journal, step, outcome, as);
      // The end of its last call may pause the task and thereby end it (H5).
      open.end();
      return this.#isOver ? await pendingForever() : given;
    } catch (error) {
      open?.end();
      if (isAlone) return await this.#failed(error);
      throw error;
    } finally {
      if (isAlone) this.#open = undefined;
    }
  }

  /**
   * Whether the body of the step is executed although its scope starts no step, because its branches replay their
   * own steps.
   */
  #entersBranches({ hasBranches }: StepIdentity): boolean {
    return hasBranches === true && this.runner.onlyReplays && !this.cancelScope.wasAbandoned;
  }

  /** Stops the code of a scope that starts no step, because the step is not recorded. */
  #stopBefore(step: StepIdentity): Promise<never> {
    if (!this.cancelScope.wasAbandoned) this.runner.probe?.asked(step, false);
    return pendingForever();
  }

  #record(step: StepIdentity, open: ActiveStep, outcome: StepOutcome): void {
    const { journal, host, taskId } = this.runner;
    const { address } = step;
    journal.record(step, outcome, open.events, open.endedAt);
    if (open.nested?.isAbandoned === true) this.abandon({ step: address, settled: noBranches });
    if (open.firstBranch === undefined) return;
    const abandoned = { step: address, settled: [open.firstBranch] };
    // The record of a race with a winner is that of its abandoned branches.
    if (outcome.kind === "failed") this.abandon(abandoned);
    else host.cancelAbandoned(taskId, abandoned);
  }

  /**
   * Ends the step without some of its branches. The children of these branches are cancelled, and the values that
   * they have taken return to their waits (W1).
   */
  abandon(abandoned: Abandonment): void {
    const { journal, host, taskId } = this.runner;
    journal.abandon(abandoned, host.cancelAbandoned(taskId, abandoned));
  }

  #recordNow<Value>(step: StepIdentity, read: () => Value): Value {
    const { runner, cancelScope } = this;
    const { journal } = runner;
    const events = this.takeEvents();
    const found = journal.find(step);
    if (found !== undefined) return valueOf<Value>(journal, step, found);
    try {
      cancelScope.check();
    } catch (error) {
      this.#putBack(events);
      throw error;
    }
    // If an earlier owner has started the step, it has emitted these events.
    if (!runner.task.opened.has(step.address)) for (const draft of events) journal.emit(draft);
    const outcome = outcomeOf(step, read, runner.worker.sizes);
    this.#emptyPolls = undefined;
    journal.record(step, outcome, nothing);
    return valueOf<Value>(journal, step, outcome);
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

  /** Records the polls that returned nothing, because the next step does not record its start. */
  #recordEmptyPolls(): void {
    const polls = this.#emptyPolls;
    this.#emptyPolls = undefined;
    if (polls !== undefined) for (const step of polls) this.runner.journal.record(step, noneOutcome, nothing);
  }

  /**
   * Returns a call that does not settle any more. If the code of the task has ended, the call is rejected, because
   * only work that no code awaits, such as a timer of a tool, can still make calls. If the task was dropped before
   * its end, the call never settles, so that the code does not continue.
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
const nullOutcome = sealedOutcome(null);
/** The result of a poll that found nothing. */
const noneFound = Promise.resolve(none);
const noBranches: readonly string[] = [];
