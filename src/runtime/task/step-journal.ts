import {
  Fault,
  JsonDigest,
  sealedOutcome,
  type Clock,
  type EventDraft,
  type Hash,
  type StepAddress,
  type StepOutcome,
  type StepRecord,
  type TaskId,
} from "../../kernel/index.ts";
import { abandonmentAddress, abandonmentOf, type Abandonment } from "../journal/branch-values.ts";
import { ReplayProgress } from "../journal/replay-progress.ts";
import type { RunLog } from "../journal/run-log.ts";
import { hasCompensated, type TaskState } from "../journal/task-state.ts";
import { findMismatch, type StepIdentity } from "../journal/step-identity.ts";
import { isCompensating, isPatch, isShared, resolutionsTaken } from "../journal/wait-names.ts";
import type { WaitRegistry } from "./wait-registry.ts";

export interface StepJournalOptions {
  readonly taskId: TaskId;
  readonly task: TaskState;
  readonly log: RunLog;
  readonly waits: WaitRegistry;
  readonly clock: Clock;
  readonly hash: Hash;
  /** J4: called if the code requests a step that differs from the recorded one. It must end the task's code. */
  readonly onMismatch: (fault: Fault) => void;
  readonly probe?: ReplayProbe | undefined;
}

/** Receives the steps that code requests which only replays. */
export interface ReplayProbe {
  /**
   * Called when the code requests a step. `isRecorded` says whether the journal has a step at this address. If not,
   * the code stops here.
   */
  asked(step: StepIdentity, isRecorded: boolean): void;
}

/**
 * The recorded steps of one task. A replay reads them here, and the first execution adds new ones.
 *
 * States of a step, and the moves between them:
 * - recorded by an earlier owner: `find` returns the outcome and moves the step to replayed. `hasRecorded` counts
 *   the steps of a scope that are still in this state.
 * - replayed: its outcome was returned to the code.
 * - absent: `find` returns `undefined`, and the caller executes the step. `record` stores its outcome (J1). The
 *   code cannot ask for the same address again in this process, so the step needs no further state.
 */
export class StepJournal {
  readonly #taskId: TaskId;
  readonly #task: TaskState;
  readonly #log: RunLog;
  readonly #waits: WaitRegistry;
  readonly #clock: Clock;
  readonly #hash: Hash;
  readonly #onMismatch: (fault: Fault) => void;
  readonly #probe: ReplayProbe | undefined;
  readonly #cursor: ReplayProgress;
  /** The progress of the compensations, if an earlier owner has begun them. They follow the code of the task. */
  readonly #undone: ReplayProgress | undefined;
  /** Addresses of the records that contain each fault which the code received. Created with the first fault. */
  #origins: WeakMap<object, readonly StepAddress[]> | undefined;

  constructor({ taskId, task, log, waits, clock, hash, onMismatch, probe }: StepJournalOptions) {
    this.#taskId = taskId;
    this.#task = task;
    this.#log = log;
    this.#waits = waits;
    this.#clock = clock;
    this.#hash = hash;
    this.#onMismatch = onMismatch;
    this.#probe = probe;
    this.#cursor = new ReplayProgress(task, isWork);
    this.#undone = hasCompensated(task) ? new ReplayProgress(task, isCompensating) : undefined;
  }

  #progressOf(address: string): ReplayProgress {
    return this.#undone !== undefined && isCompensating(address) ? this.#undone : this.#cursor;
  }

  /** Whether the step has a record that the code has not replayed yet. */
  isRecorded({ address }: StepIdentity): boolean {
    return this.#progressOf(address).remain && this.#task.steps.has(address);
  }

  /** J1, J4: returns the outcome of a step like `recorded`, or `undefined` if the step is not recorded. */
  find(step: StepIdentity): StepOutcome | undefined {
    return this.isRecorded(step) ? this.recorded(step) : undefined;
  }

  /**
   * J1, J4: returns the outcome of a recorded step. Throws `journal_mismatch`, and ends the task's code, if another step is
   * recorded at this address.
   */
  recorded(step: StepIdentity): StepOutcome {
    const recorded = this.#task.steps.get(step.address);
    if (recorded === undefined) throw new Fault("internal", `step ${step.address} is not recorded`);
    this.#probe?.asked(step, true);
    const mismatch = findMismatch(recorded, step, this.#hash);
    if (mismatch !== undefined) {
      this.#onMismatch(mismatch);
      throw mismatch;
    }
    this.#progressOf(step.address).visit(step.address, step.kind);
    return recorded.outcome;
  }

  /** Whether steps of this scope, or of a scope inside it, are recorded and not yet replayed. */
  hasRecorded(scope: string): boolean {
    return this.#progressOf(scope).remainIn(scope);
  }

  /** Whether earlier owners recorded or began steps of the task's code that the replay has not reached yet. */
  get hasUnreached(): boolean {
    return this.#cursor.remain || this.#cursor.hasBegun;
  }

  /** E4: whether replay is over in a scope, so that its pending events are not in the log yet. */
  isPastReplay(scope: string): boolean {
    const progress = this.#progressOf(scope);
    return !progress.remainIn(scope) && !progress.hasBegun;
  }

  /** Whether this step has no record although an earlier owner had already started a later step of its scope. */
  wasSkipped(address: StepAddress): boolean {
    return this.#progressOf(address).wentPast(address) && !this.#task.steps.has(address);
  }

  /** Records the outcome of a step. The events and the record are part of one commit. */
  record(
    step: StepIdentity,
    outcome: StepOutcome,
    events: readonly EventDraft[],
    at = this.#clock.now(),
  ): void {
    for (let index = 0; index < events.length; index++) this.emit(events[index] as EventDraft, at);
    const { address, kind, name, digest } = step;
    const record: StepRecord = { taskId: this.#taskId, address, kind, name, digest, outcome };
    this.#log.record(record, at, this.#task);
    this.#waits.recorded(record);
    if (this.#task.steps.size === longJournal)
      this.emit({ type: "journal_warning", data: { steps: longJournal } });
  }

  /**
   * W1: records that branches of a step were abandoned, so that the values that they took return to their waits. If
   * they took no value and had no children, nothing is recorded.
   */
  abandon({ step, settled }: Abandonment, hadChildren: boolean): void {
    if (!hadChildren && this.#task.branchValues?.isAnyIn({ step, settled }) !== true) return;
    const address = abandonmentAddress(step, this.#abandonments(step));
    const identity = { address, kind: "abandon", name: "branches", digest: JsonDigest.ofNull } as const;
    this.record(identity, sealedOutcome({ settled: [...settled] }), []);
  }

  /**
   * Notes that a step without a record of its own runs again: the replay passes the records of its abandoned
   * branches. Returns the last abandonment, if there is one.
   */
  passAbandonments(step: StepAddress): Abandonment | undefined {
    const progress = this.#progressOf(step);
    if (!progress.remain) return undefined;
    const count = this.#abandonments(step);
    for (let ordinal = count - 1; ordinal >= 0; ordinal--)
      progress.visit(abandonmentAddress(step, ordinal), "abandon");
    const last = this.#task.steps.get(abandonmentAddress(step, count - 1));
    return last && abandonmentOf(last);
  }

  #abandonments(step: StepAddress): number {
    let count = 0;
    while (this.#task.steps.has(abandonmentAddress(step, count))) count++;
    return count;
  }

  /**
   * W1: whether the step of an abandoned branch has received a value that other steps may wait for. If so, the step
   * is not recorded, and the next waiter receives the value.
   */
  handsOn({ kind, name, address }: StepIdentity, outcome: StepOutcome): boolean {
    const taken = resolutionsTaken({ kind, name, address, outcome });
    if (taken === undefined || !isShared(taken)) return false;
    this.#waits.taken(this.#taskId, taken.wait);
    return true;
  }

  /** Adds an event of this task to the next commit, and returns its sequence number. */
  emit(draft: EventDraft, at?: number): number {
    return this.#log.emit(this.#taskId, draft, at, this.#task).seq;
  }

  /** J5: stores which records contain the fault, so that `resume` can make them void if the task ends with it. */
  noteOrigins(fault: unknown, addresses: readonly StepAddress[]): void {
    if (typeof fault === "object" && fault !== null) (this.#origins ??= new WeakMap()).set(fault, addresses);
  }

  /**
   * Returns the addresses of the records that contain this fault or, if the code wrapped it, one of its causes.
   * Empty if there are none.
   */
  originsOf(error: unknown): readonly StepAddress[] {
    let at: unknown = error;
    for (let depth = 0; depth < maxCauses && typeof at === "object" && at !== null; depth++) {
      const known = this.#origins?.get(at);
      if (known !== undefined) return known;
      at = (at as { readonly cause?: unknown }).cause;
    }
    return [];
  }

  /**
   * Returns the values of concurrent steps. J2: if steps failed, throws the first fault in declaration order. J5:
   * the records of all faults then belong to that fault, so that `resume` makes them void together.
   */
  valuesOf<Value>(settled: readonly PromiseSettledResult<Value>[]): readonly Value[] {
    const failed = settled.filter((each) => each.status === "rejected");
    const [first] = failed;
    if (first !== undefined) {
      const origins = failed.flatMap(({ reason }) => this.originsOf(reason));
      if (origins.length > 0) this.noteOrigins(first.reason, origins);
      throw first.reason;
    }
    return settled.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  }
}

/** Whether a record belongs to the task's code in its order, and not to a compensation or to `ctx.patched`. */
function isWork(address: StepAddress): boolean {
  return !isCompensating(address) && !isPatch(address);
}

/** J8: number of steps at which the task emits `journal_warning`. */
const longJournal = 5_000;

/** Maximum number of levels of `cause` that are searched for a recorded fault. */
const maxCauses = 8;
