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
} from "../kernel/index.ts";
import { never } from "./never.ts";
import type { OpenStep } from "./open-step.ts";
import type { Strand } from "./strand.ts";
import type { StepIdentity, TaskRunner } from "./task-runner.ts";

/**
 * What a step does. A function it comes to is called in the breath in which the step is recorded: what it does and the record
 * are one commit.
 */
export type Body<Value> = (open: OpenStep) => Done<Value> | Promise<Done<Value>>;

type Done<Value> = Value | (() => Value);

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

  /** J1, J2, J5: the recorded outcome, or the body's, recorded; no other call of the scope meanwhile. `as`: what the code is given of it. */
  journaled<Value, Given = Value>(
    step: StepIdentity,
    body: Body<Value>,
    start?: EventDraft,
    as?: (value: Value) => Given,
  ): Promise<Given> {
    if (this.#isOver) return never();
    if (this.#open !== undefined) return Promise.reject(ambiguous(step, this.#open));
    const told = this.takeTold();
    try {
      const found = this.runner.find(step);
      if (found !== undefined) return Promise.resolve(this.#given(step, found, as));
    } catch (error) {
      return isMismatch(error) ? never() : Promise.reject(error);
    }
    this.#open = step;
    return this.#performAlone(step, body, told, start, as);
  }

  /** The same for a step that is over in the breath in which it is begun. */
  breath<Value>(step: StepIdentity, read: () => Value): Promise<Value> {
    const { runner, strand } = this;
    if (this.#isOver) return never();
    if (this.#open !== undefined) return Promise.reject(ambiguous(step, this.#open));
    const told = this.takeTold();
    try {
      const found = runner.find(step);
      if (found !== undefined) return Promise.resolve(this.#given<Value>(step, found));
      if (!runner.isSeated) {
        this.#open = step;
        return this.#performAlone<Value, Value>(step, () => read, told);
      }
      this.#check(strand, told);
      // An earlier owner may have told what was to be told, and no more.
      if (!runner.task.opened.has(step.address)) for (const draft of told) runner.tell(draft);
      const outcome = outcomeOf(step, read);
      runner.record(step, outcome, nothing);
      return Promise.resolve(this.#given<Value>(step, outcome));
    } catch (error) {
      if (error instanceof CancellationError) runner.noteStop(error);
      return isMismatch(error) ? never() : Promise.reject(error);
    }
  }

  /** J2: one journaled call at a time in a scope, at the first run already. */
  async alone<Value>(call: Call, body: () => Value | Promise<Value>): Promise<Value> {
    if (this.#isOver) return never();
    if (this.#open !== undefined) throw ambiguous(call, this.#open);
    this.#open = call;
    try {
      const value = await body();
      return this.#isOver ? await never() : value;
    } catch (error) {
      if (this.#isOver || isMismatch(error)) return await never();
      if (error instanceof CancellationError) this.runner.noteStop(error);
      throw error;
    } finally {
      this.#open = undefined;
    }
  }

  /** J1, J5: for a call that is alone in its scope already, or one of several in one. */
  recorded<Value>(step: StepIdentity, body: Body<Value>, start?: EventDraft): Value | Promise<Value> {
    const told = this.takeTold();
    const found = this.runner.find(step);
    if (found !== undefined) return this.#given<Value>(step, found);
    return this.#perform(step, body, told, start);
  }

  /** Both `alone` and `#perform`, in one function: each that waits costs, and this is where every step goes. */
  async #performAlone<Value, Given>(
    step: StepIdentity,
    body: Body<Value>,
    told: readonly EventDraft[],
    start?: EventDraft,
    as?: (value: Value) => Given,
  ): Promise<Given> {
    let open: OpenStep | undefined;
    try {
      const wait = this.#seated(told);
      if (wait !== undefined) await wait;
      open = this.runner.open(step.address, this.strand, told, start);
      let outcome: StepOutcome;
      try {
        const begun = body(open);
        const done = begun instanceof Promise ? await begun : begun;
        if (this.runner.dropped) return await never();
        outcome = outcomeOf(step, done);
      } catch (error) {
        if (this.runner.dropped) return await never();
        // What a stop made of it is not what it came to: whoever goes on begins it anew.
        if (this.strand.givenUp) throw error;
        outcome = failureOf(error);
      }
      this.runner.record(step, outcome, open.told);
      const given = this.#given(step, outcome, as);
      return this.#isOver ? await never() : given;
    } catch (error) {
      if (this.#isOver || isMismatch(error)) return await never();
      if (error instanceof CancellationError) this.runner.noteStop(error);
      throw error;
    } finally {
      open?.end();
      this.#open = undefined;
    }
  }

  async #perform<Value>(
    step: StepIdentity,
    body: Body<Value>,
    told: readonly EventDraft[],
    start: EventDraft | undefined,
  ): Promise<Value> {
    const { runner } = this;
    const wait = this.#seated(told);
    if (wait !== undefined) await wait;
    const open = runner.open(step.address, this.strand, told, start);
    try {
      let outcome: StepOutcome;
      try {
        const done = await body(open);
        if (runner.dropped) return await never();
        outcome = outcomeOf(step, done);
      } catch (error) {
        if (runner.dropped) return await never();
        // What a stop made of it is not what it came to: whoever goes on begins it anew.
        if (this.strand.givenUp) throw error;
        outcome = failureOf(error);
      }
      runner.record(step, outcome, open.told);
      return this.#given<Value>(step, outcome);
    } finally {
      open.end();
    }
  }

  /** C2, H7. What was to be told is told by whoever comes next, if this step never begins. */
  #seated(told: readonly EventDraft[]): Promise<void> | undefined {
    const { runner, strand } = this;
    if (!runner.isSeated) return this.#seatedLater(told);
    this.#check(strand, told);
    return undefined;
  }

  async #seatedLater(told: readonly EventDraft[]): Promise<void> {
    try {
      await this.runner.seated(this.strand);
    } catch (error) {
      this.#told.unshift(...told);
      throw error;
    }
  }

  #check(strand: Strand, told: readonly EventDraft[]): void {
    try {
      this.runner.check(strand);
    } catch (error) {
      this.#told.unshift(...told);
      throw error;
    }
  }

  #given<Given>({ address }: StepIdentity, outcome: StepOutcome, as?: (value: never) => Given): Given {
    if (outcome.kind === "ok")
      return as === undefined ? (outcome.value as Given) : as(outcome.value as never);
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
    const value: unknown = (typeof done === "function" ? (done as () => unknown)() : done) ?? null;
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

/** What a step gives that found nothing. */
export const none: readonly never[] = Object.freeze([]);
const noneOutcome: StepOutcome = Object.freeze({ kind: "ok", value: none });

/** A stop is not an outcome of the step: whoever replays is stopped again (C2). Everything else that is thrown is recorded (J5). */
function failureOf(error: unknown): StepOutcome {
  const fault = Fault.from(error);
  if (fault instanceof CancellationError || fault.code === "lease_lost" || fault.code === "journal_mismatch")
    throw fault;
  return { kind: "failed", failure: fault.toJSON() };
}
