import {
  canonicalJson,
  CancellationError,
  Fault,
  reviveFault,
  sealJson,
  stepAt,
  type EventDraft,
  type Hash,
  type StepAddress,
  type StepKind,
  type StepOutcome,
  type StepScope,
} from "../kernel/index.ts";
import { OpenStep } from "./open-step.ts";
import type { Strand } from "./strand.ts";
import { never, type StepIdentity, type TaskRunner } from "./task-runner.ts";

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
  #open: string | undefined;
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
    return { address: this.next(), kind, name, digest: (hash: Hash) => hash(canonicalJson(input)) };
  }

  idempotencyKey(address: StepAddress): string {
    return `${this.runner.facts.runId}/${this.runner.taskId}/${address}`;
  }

  tell(...drafts: readonly EventDraft[]): void {
    this.#told.push(...drafts);
  }

  /** What was told since the last step, for whoever comes after this scope. */
  takeTold(): readonly EventDraft[] {
    return this.#told.splice(0);
  }

  /** C2. */
  check(): void {
    const { runner, scope, strand } = this;
    if (!runner.dropped && !runner.hasRecorded(scope)) runner.check(strand);
  }

  journaled<Value>(step: StepIdentity, body: Body<Value>, start?: EventDraft): Promise<Value> {
    return this.alone(`${step.kind} ${step.name}`, () => this.recorded(step, body, start));
  }

  /** J2: one journaled call at a time in a scope, at the first run already. */
  async alone<Value>(name: string, body: () => Promise<Value>): Promise<Value> {
    const { runner, strand } = this;
    if (runner.dropped || strand.givenUp) return never();
    if (this.#open !== undefined) {
      throw new Fault(
        "journal_ambiguous",
        `${name} was called while ${this.#open} is open: await it first, or use ctx.parallel, ctx.tools, ctx.joinAll or ctx.race`,
      );
    }
    this.#open = name;
    try {
      return await runner.live(body(), strand);
    } catch (error) {
      if (error instanceof CancellationError) runner.noteStop(error);
      // J4: the task is failing; its code is not asked.
      if (Fault.is(error) && error.code === "journal_mismatch") return await never();
      throw error;
    } finally {
      this.#open = undefined;
    }
  }

  /** J1, J5: the recorded outcome, or the body's, recorded. Both leave by the same lines. */
  async recorded<Value>(step: StepIdentity, body: Body<Value>, start?: EventDraft): Promise<Value> {
    const { runner } = this;
    const told = this.takeTold();
    const found = runner.find(step);
    const outcome = found ?? (await runner.live(this.#perform(step, body, told, start)));
    if (outcome.kind === "failed") {
      const fault = reviveFault(outcome.failure);
      runner.noteOrigins(fault, [step.address]);
      throw fault;
    }
    return outcome.value as Value;
  }

  async #perform(
    step: StepIdentity,
    body: Body<unknown>,
    told: readonly EventDraft[],
    start: EventDraft | undefined,
  ): Promise<StepOutcome> {
    const { runner, strand } = this;
    const { address } = step;
    try {
      await runner.seated(strand);
    } catch (error) {
      this.#told.unshift(...told);
      throw error;
    }
    const opening = runner.open(address, start === undefined ? told : [...told, start]);
    const open = new OpenStep({ runner, strand, address, ...opening });
    try {
      const done = await body(open);
      if (runner.dropped) return await never();
      const outcome = outcomeOf(step, () => (typeof done === "function" ? done() : done));
      runner.record(step, outcome, open.told);
      return outcome;
    } catch (error) {
      if (runner.dropped) return await never();
      const outcome = failureOf(error);
      runner.record(step, outcome, open.told);
      return outcome;
    } finally {
      open.end();
    }
  }
}

/** J10: what is not JSON is refused here, before it is recorded anywhere. */
function outcomeOf({ kind, name }: StepIdentity, settle: () => unknown): StepOutcome {
  try {
    const value = settle() ?? null;
    sealJson(value, `the value of ${kind} ${name}`);
    return { kind: "ok", value };
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
