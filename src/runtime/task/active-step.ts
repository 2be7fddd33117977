import { BodySubmissions } from "../process/async-context.ts";
import { assertEmittable, sealMadeJson, type EventDraft, type StepAddress } from "../../kernel/index.ts";
import type { CallTimeout } from "../process/call-timeouts.ts";
import { pendingForever } from "../process/pending-forever.ts";
import type { InFlightCall } from "./in-flight-calls.ts";
import type { NestedScope } from "./nested-scope.ts";
import type { CancellationScope } from "./cancellation-scope.ts";
import type { TaskRunner } from "./task-runner.ts";

const nothing: readonly EventDraft[] = [];

/**
 * A step that is executing. The commit with its record also contains its events, and its call settles with the
 * record.
 */
export class ActiveStep {
  readonly runner: TaskRunner;
  readonly cancelScope: CancellationScope;
  readonly address: StepAddress;
  /** Sequence number (`seq`) of the event that reported the start of the step. -1 if there is none. */
  readonly startSeq: number;
  /** Whether an earlier owner had already started the step. */
  readonly isRepeated: boolean;
  /** When the step started in this process, in epoch milliseconds. */
  readonly startedAt: number;
  /** Time at which the call of the step ended, if it was recorded. */
  endedAt: number | undefined;
  /** For a tool step: whether the tool is not executed, because a rule or a person denied it. */
  isDenied = false;
  /** Whether the tool's body was started; only for tool steps. */
  isPerformed = false;
  /** The scope inside the body, once the body has started. */
  nested: NestedScope | undefined;
  /** Name of the branch of a race that settled first. */
  firstBranch: string | undefined;
  /** The timeout of a tool's body, while it runs. */
  timeout: CallTimeout | undefined;
  #submissions: BodySubmissions | undefined;
  #events: EventDraft[] | undefined;
  #call: InFlightCall | undefined;

  constructor(
    runner: TaskRunner,
    cancelScope: CancellationScope,
    address: StepAddress,
    startSeq: number,
    isRepeated: boolean,
    startedAt: number,
  ) {
    this.runner = runner;
    this.cancelScope = cancelScope;
    this.address = address;
    this.startSeq = startSeq;
    this.isRepeated = isRepeated;
    this.startedAt = startedAt;
  }

  get events(): readonly EventDraft[] {
    return this.#events ?? nothing;
  }

  emit(draft: EventDraft): void {
    if (this.#events === undefined) this.#events = [draft];
    else this.#events.push(draft);
  }

  /** J10: emits an event for code around the step, such as middleware. Only events that code may emit are accepted. */
  emitFromCode(draft: EventDraft): void {
    assertEmittable(draft);
    const where = `the data of event ${draft.type}`;
    sealMadeJson(draft.data, where);
    this.runner.worker.sizes.assert(draft.data, where);
    this.emit(draft);
  }

  /** J6: the submissions of the body of this step, over all its executions in this process. */
  submissionsOf(idempotencyKey: string): BodySubmissions {
    return (this.#submissions ??= new BodySubmissions(idempotencyKey));
  }

  /** Returns the milliseconds since `from`, and records that the call of the step has ended. */
  durationSince(from: number): number {
    this.endedAt = this.runner.worker.clock.now();
    return this.endedAt - from;
  }

  /** Clears the timeout, because the body has ended. */
  clearTimeout(): void {
    if (this.timeout !== undefined) this.runner.worker.callTimeouts.remove(this.timeout);
    this.timeout = undefined;
  }

  /** Emits the events that the body has emitted since its last step. */
  emitNestedEvents(): void {
    for (const draft of this.nested?.takeEvents() ?? nothing) this.emit(draft);
  }

  /** Removes the events after the first `count` and returns them, so that another record emits them. */
  takeEvents(count: number): readonly EventDraft[] {
    return this.#events?.splice(count) ?? nothing;
  }

  /**
   * C2, H7, J3: starts the call of the step. It starts nothing if the task is cancelled or has no seat, and first
   * waits until earlier records are durable.
   */
  begin(): InFlightCall | Promise<InFlightCall> {
    const { runner, cancelScope } = this;
    const wait = runner.activity.whenReady(cancelScope);
    if (wait !== undefined) return this.#beginAfter(wait);
    const call = this.start();
    const flushed = runner.log.flush();
    if (flushed !== undefined) return this.#beganAfter(call, flushed);
    return runner.isDropped ? pendingForever() : call;
  }

  async #beginAfter(wait: Promise<void>): Promise<InFlightCall> {
    await wait;
    return this.begin();
  }

  async #beganAfter(call: InFlightCall, flushed: Promise<void>): Promise<InFlightCall> {
    const { runner, cancelScope } = this;
    try {
      await flushed;
    } catch (error) {
      if (!runner.isDropped) throw error;
    }
    if (runner.isDropped) return pendingForever();
    cancelScope.check();
    return call;
  }

  /** Starts the call without checks, for a caller that has called `whenReady` and flushes the log itself. */
  start(): InFlightCall {
    this.#call = this.runner.activity.beginCall(this.cancelScope);
    return this.#call;
  }

  end(): void {
    if (this.#call !== undefined) this.runner.activity.endCall(this.#call);
    this.#call = undefined;
  }
}

/** E4: emits a step's start events, unless an earlier owner of the run has emitted them. */
export function openStep(
  runner: TaskRunner,
  address: StepAddress,
  cancelScope: CancellationScope,
  events: readonly EventDraft[],
  start?: EventDraft,
): ActiveStep {
  const at = runner.worker.clock.now();
  const known = runner.task.opened.get(address);
  if (known !== undefined) return new ActiveStep(runner, cancelScope, address, known, true, at);
  let seq = -1;
  for (let index = 0; index < events.length; index++)
    seq = runner.journal.emit(events[index] as EventDraft, at);
  if (start !== undefined) seq = runner.journal.emit(start, at);
  if (seq >= 0) runner.log.open({ taskId: runner.taskId, address, seq }, at, runner.task);
  return new ActiveStep(runner, cancelScope, address, seq, false, at);
}
