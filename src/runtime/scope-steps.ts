import {
  CancellationError,
  Fault,
  JsonDigest,
  reviveFault,
  sealedOutcome,
  stepAt,
  type EventDraft,
  type JsonValue,
  type StepAddress,
  type StepKind,
  type StepOutcome,
  type StepScope,
} from "../kernel/index.ts";
import { never } from "./never.ts";
import type { OpenStep } from "./open-step.ts";
import type { Strand } from "./strand.ts";
import type { StepIdentity, TaskRunner } from "./task-runner.ts";

/**
 * What a step does. A function it resolves to is called in the breath in which the step is recorded: what it does and the record
 * are one commit.
 */
export type Body<Value> = (open: OpenStep) => Promise<Value | (() => Value)>;

/** The steps of one scope of a task: their addresses, one open at a time (J2), each performed once (J1). */
export class ScopeSteps {
  readonly runner: TaskRunner;
  readonly scope: StepScope;
  readonly strand: Strand;
  #index = 0;
  #open: Call | undefined;
  /** E4: told by the code since its last step. */
  #told: EventDraft[] = [];

  constructor(runner: TaskRunner, scope: StepScope, strand: Strand) {
    this.runner = runner;
    this.scope = scope;
    this.strand = strand;
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

  tell(...drafts: readonly EventDraft[]): void {
    for (const draft of drafts) this.#told.push(draft);
  }

  /** What was told since the last step, for whoever comes after this scope. */
  takeTold(): readonly EventDraft[] {
    if (this.#told.length === 0) return nothing;
    const told = this.#told;
    this.#told = [];
    return told;
  }

  /** C2. */
  check(): void {
    const { runner, scope, strand } = this;
    if (!runner.dropped && !runner.hasRecorded(scope)) runner.check(strand);
  }

  journaled<Value>(step: StepIdentity, body: Body<Value>, start?: EventDraft): Promise<Value> {
    return this.alone(step, () => this.recorded(step, body, start));
  }

  /** J2: one journaled call at a time in a scope, at the first run already. */
  async alone<Value>(call: Call, body: () => Value | Promise<Value>): Promise<Value> {
    if (this.#isOver) return never();
    if (this.#open !== undefined) {
      throw new Fault(
        "journal_ambiguous",
        `${shown(call)} was called while ${shown(this.#open)} is open: await it first, or use ctx.parallel, ctx.tools, ctx.joinAll or ctx.race`,
      );
    }
    this.#open = call;
    try {
      const value = await body();
      return this.#isOver ? await never() : value;
    } catch (error) {
      if (this.#isOver) return await never();
      if (error instanceof CancellationError) this.runner.noteStop(error);
      // J4: the task is failing; its code is not asked.
      if (Fault.is(error) && error.code === "journal_mismatch") return await never();
      throw error;
    } finally {
      this.#open = undefined;
    }
  }

  /** J1, J5: the recorded outcome, or the body's, recorded. */
  recorded<Value>(step: StepIdentity, body: Body<Value>, start?: EventDraft): Value | Promise<Value> {
    const told = this.takeTold();
    const found = this.runner.find(step);
    if (found !== undefined) return this.#delivered(step, found) as Value;
    return this.#perform(step, body, told, start);
  }

  async #perform<Value>(
    step: StepIdentity,
    body: Body<Value>,
    told: readonly EventDraft[],
    start: EventDraft | undefined,
  ): Promise<Value> {
    const { runner, strand } = this;
    try {
      const wait = runner.seated(strand);
      if (wait !== undefined) await wait;
    } catch (error) {
      this.#told.unshift(...told);
      throw error;
    }
    const open = runner.open(step.address, strand, told, start);
    try {
      let outcome: StepOutcome;
      try {
        const done = await body(open);
        if (runner.dropped) return await never();
        outcome = outcomeOf(step, done);
      } catch (error) {
        if (runner.dropped) return await never();
        // What a stop made of it is not what it came to: whoever goes on begins it anew.
        if (strand.givenUp) throw error;
        outcome = failureOf(error);
      }
      runner.record(step, outcome, open.told);
      return this.#delivered(step, outcome) as Value;
    } finally {
      open.end();
    }
  }

  #delivered({ address }: StepIdentity, outcome: StepOutcome): JsonValue {
    if (outcome.kind === "ok") return outcome.value;
    const fault = reviveFault(outcome.failure);
    this.runner.noteOrigins(fault, [address]);
    throw fault;
  }

  /** Nothing here is answered any more. */
  get #isOver(): boolean {
    return this.runner.dropped || this.strand.givenUp;
  }
}

/** What is open in a scope: a step, or a call of several. */
type Call = StepIdentity | string;

const nothing: readonly EventDraft[] = [];

function shown(call: Call): string {
  return typeof call === "string" ? call : `${call.kind} ${call.name}`;
}

/** J10: what is not JSON is refused here, before it is recorded anywhere. */
function outcomeOf({ kind, name }: StepIdentity, done: unknown): StepOutcome {
  try {
    const value: unknown = (typeof done === "function" ? (done as () => unknown)() : done) ?? null;
    // A tool's result was looked at by its call, where what is wrong with it is told to the model (T2).
    if (kind === "tool") return Object.freeze({ kind: "ok", value: value as JsonValue });
    return sealedOutcome(value, `the value of ${kind} ${name}`);
  } catch (error) {
    return failureOf(error);
  }
}

/** A stop is not an outcome of the step: whoever replays is stopped again (C2). Everything else that is thrown is recorded (J5). */
function failureOf(error: unknown): StepOutcome {
  const fault = Fault.from(error);
  if (fault instanceof CancellationError || fault.code === "lease_lost" || fault.code === "journal_mismatch")
    throw fault;
  return { kind: "failed", failure: fault.toJSON() };
}
