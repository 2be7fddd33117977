import {
  digestOf,
  Fault,
  type AgentId,
  type Hash,
  type RunId,
  type StepAddress,
  type StepRecord,
  type TaskId,
} from "../../kernel/index.ts";
import { ContinueAsNew } from "../context/continue-as-new.ts";
import { abandonmentOf, isInside } from "../journal/branch-values.ts";
import type { StepIdentity } from "../journal/step-identity.ts";
import type { TaskState } from "../journal/task-state.ts";
import { isCompensating, isPatch } from "../journal/wait-names.ts";
import { systemClock, systemEventLoop } from "../process/system-sources.ts";
import type { ReplayProbe } from "../task/step-journal.ts";
import type { SourceUse } from "./watched-sources.ts";

/**
 * The ways in which the code of a task can differ from its journal:
 * - `changed`: at the position, the code requests another step than the recorded one.
 * - `removed`: the code does not request the recorded step.
 * - `added`: the task has completed, and the code requests a further step.
 * - `failed`: the task has completed, and the code throws an error.
 * - `unsteady`: two replays request different steps, because the code depends on the time or on random numbers.
 * - `stuck`: the code waits for something that is not a step.
 */
export type DifferenceKind = "changed" | "removed" | "added" | "failed" | "unsteady" | "stuck";

/** The first difference between the journal of a task and the code of its workflow. */
export interface ReplayDifference {
  /** Id of the run. */
  readonly runId: RunId;
  /** Id of the task whose journal was replayed. */
  readonly taskId: TaskId;
  /** Id of the workflow. */
  readonly agentId: AgentId;
  /** What differs. */
  readonly kind: DifferenceKind;
  /**
   * Address of the step: the numbers of the steps, counted from 0, and the names of the branches that lead to it,
   * as in `2/left/0`. `end` is the end of the journal.
   */
  readonly position: string;
  /** The recorded step, as its kind and its name. `null` if the journal ends before the position. */
  readonly recorded: string | null;
  /** The step that the code requests. `null` if it requests none. */
  readonly asked: string | null;
  /** What differs, and how to fix it. */
  readonly message: string;
}

export type FoundDifference = Omit<ReplayDifference, "runId" | "taskId" | "agentId">;

/** How the code of a replayed task ended: it returned, threw an error, or requested a step that does not match. */
export type ReplayEnd =
  | { readonly value: unknown }
  | { readonly error: unknown }
  | { readonly mismatch: Fault };

/**
 * Number of turns of the event loop without a request, after which code that has stopped at a step is assumed to
 * request nothing more.
 */
const quietTurns = 3;
/** Maximum time in milliseconds for code that waits for something other than a step. */
const stuckMs = 5_000;
/**
 * Maximum time in milliseconds for code that waits for something other than a step, if another part of it has
 * stopped at a step.
 */
const partMs = 200;

const upgradeFix =
  'guard the new code with ctx.patched("name"), pass formerly to a step that was renamed, or give the workflow another version with versionPolicy: "pin", so that workers of the former version end the run';

/** The steps that the code of one task requests in one replay. */
export class TaskReplay implements ReplayProbe {
  readonly #task: TaskState;
  /** The records in the store. The replay adds records of races that end during the replay. */
  readonly #records: ReadonlyMap<StepAddress, StepRecord>;
  readonly #asked = new Map<StepAddress, StepIdentity>();
  readonly #reached = new Set<StepAddress>();
  /** Addresses of the steps at which the code has stopped, because they are not recorded. */
  readonly #stops: StepAddress[] = [];
  #requests = 0;
  #end: ReplayEnd | undefined;
  #isStuck = false;

  constructor(task: TaskState) {
    this.#task = task;
    this.#records = new Map(task.steps);
  }

  /** Number of recorded steps that the code has requested. */
  get reached(): number {
    return this.#reached.size;
  }

  asked(step: StepIdentity, isRecorded: boolean): void {
    this.#requests++;
    this.#asked.set(step.address, step);
    if (isRecorded) this.#reached.add(step.address);
    else this.#stops.push(step.address);
  }

  end(end: ReplayEnd): void {
    this.#end = end;
  }

  /** Resolves when the code has ended, or has stopped at a step and requests nothing more. */
  async settled(): Promise<void> {
    let seen = -1;
    let quiet = 0;
    let since = 0;
    let isComplete = false;
    while (this.#end === undefined) {
      await new Promise<void>((resolve) => systemEventLoop.nextTurn(resolve));
      if (this.#requests !== seen) {
        seen = this.#requests;
        quiet = 0;
        since = systemClock.now();
        continue;
      }
      quiet++;
      const hasStopped = this.#stops.length > 0;
      if (quiet === quietTurns) isComplete = hasStopped && this.#unreached() === undefined;
      // A part of the code may still wait for something else, such as a file.
      const isOver = systemClock.now() - since >= (hasStopped ? partMs : stuckMs);
      if (quiet < quietTurns || (!isComplete && !isOver)) continue;
      this.#isStuck = !hasStopped;
      return;
    }
  }

  /** Returns the first difference between the journal and the requests of the code. `undefined` if there is none. */
  judge(): FoundDifference | undefined {
    const end = this.#end;
    if (end !== undefined && "mismatch" in end) return this.#changed(end.mismatch);
    if (this.#isStuck)
      return {
        kind: "stuck",
        position: "end",
        recorded: null,
        asked: null,
        message: `the code waits for something that is no step, after ${this.reached} recorded steps; move it into ctx.step(), and use ctx.sleep() in place of a timer`,
      };
    const unreached = this.#unreached();
    if (unreached !== undefined) return this.#removed(unreached);
    return this.#task.outcome?.status === "completed" ? this.#afterEnd() : undefined;
  }

  /** Returns the first step that the two replays do not request in the same way. */
  compare(other: TaskReplay, hash: Hash, uses: readonly SourceUse[]): FoundDifference | undefined {
    const own = this.#unlike(other, hash) ?? other.#unlike(this, hash);
    if (own === undefined) return undefined;
    const { address } = own;
    const [first, second] = [this.#asked.get(address), other.#asked.get(address)].map((step) =>
      step === undefined ? "nothing" : shown(step),
    );
    const because = uses.map(({ source, where }) => `${source} in ${where}`).join(", ");
    return {
      kind: "unsteady",
      position: address,
      recorded: this.#shownRecord(address),
      asked: shown(own),
      message: `two replays ask for different steps at ${address}: ${first}, then ${second}${first === second ? " with another input" : ""}${because === "" ? "" : `; the code uses ${because}`}; use ctx.now(), ctx.random() and ctx.uuid(), which are recorded`,
    };
  }

  #unlike(other: TaskReplay, hash: Hash): StepIdentity | undefined {
    for (const [address, step] of this.#asked) {
      const same = other.#asked.get(address);
      if (same === undefined || shown(same) !== shown(step) || digestOf(same, hash) !== digestOf(step, hash))
        return step;
    }
    return undefined;
  }

  #changed({ message, details }: Fault): FoundDifference {
    const position = (details?.["address"] ?? "end") as StepAddress;
    const step = this.#asked.get(position);
    const recorded = this.#shownRecord(position);
    const asked = step === undefined ? null : shown(step);
    const isSame = recorded === asked;
    return {
      kind: "changed",
      position,
      recorded,
      asked,
      message:
        step === undefined
          ? message
          : `the journal has ${recorded} at ${position}, and the code asks for ${isSame ? "it with another input" : asked}; ${upgradeFix}`,
    };
  }

  #removed(record: StepRecord): FoundDifference {
    const { address } = record;
    const scope = address.slice(0, address.lastIndexOf("/") + 1);
    const stop = this.#stops.find((each) => each.startsWith(scope)) ?? this.#stops[0];
    const step = stop === undefined ? undefined : this.#asked.get(stop);
    const asked = step === undefined ? null : shown(step);
    const instead =
      step === undefined ? `the code ${this.#shownEnd()}` : `the code asks for ${asked} at ${step.address}`;
    return {
      kind: "removed",
      position: address,
      recorded: shown(record),
      asked,
      message: `the journal has ${shown(record)} at ${address}, and ${instead}; ${upgradeFix}`,
    };
  }

  /** Returns the difference for a task that has completed and whose code has reached all records. */
  #afterEnd(): FoundDifference | undefined {
    const end = this.#end;
    const [stop] = this.#stops;
    const step = stop === undefined ? undefined : this.#asked.get(stop);
    if (end !== undefined && "value" in end) return undefined;
    const isContinued = end !== undefined && "error" in end && end.error instanceof ContinueAsNew;
    if (end !== undefined && !isContinued)
      return {
        kind: "failed",
        position: "end",
        recorded: null,
        asked: null,
        message: `the run has completed, and the code ${this.#shownEnd()}; change the code so that it replays this run`,
      };
    const asked = step === undefined ? "continueAsNew" : shown(step);
    return {
      kind: "added",
      position: stop ?? "end",
      recorded: null,
      asked,
      message: `the run has completed, and the code asks for ${asked} after its last step; ${upgradeFix}`,
    };
  }

  /**
   * Returns the first recorded step that the code has not requested. Steps inside a step that the code has reached,
   * or at which it has stopped, are ignored, because they belong to its body. Steps in abandoned branches are
   * ignored too, because these may end anywhere.
   */
  #unreached(): StepRecord | undefined {
    const abandoned = [...this.#records.values()].flatMap((record) => abandonmentOf(record) ?? []);
    const stops = new Set(this.#stops);
    for (const [address, record] of this.#records) {
      if (this.#reached.has(address) || record.kind === "abandon") continue;
      if (isCompensating(address) || isPatch(address)) continue;
      if (outerSteps(address).some((outer) => this.#reached.has(outer) || stops.has(outer))) continue;
      if (abandoned.some((each) => isInside(address, each))) continue;
      return record;
    }
    return undefined;
  }

  #shownRecord(address: StepAddress): string | null {
    const record = this.#records.get(address);
    return record === undefined ? null : shown(record);
  }

  #shownEnd(): string {
    const end = this.#end;
    if (end === undefined) return "asks for nothing";
    if (!("error" in end)) return "returns";
    if (end.error instanceof ContinueAsNew) return "continues as new";
    return `throws ${Fault.from(end.error).message}`;
  }
}

function shown({ kind, name }: Pick<StepRecord, "kind" | "name">): string {
  return `${kind} ${name}`;
}

/** Returns the addresses around this one, the outermost first. */
function outerSteps(address: StepAddress): readonly StepAddress[] {
  const outer: StepAddress[] = [];
  for (let end = address.indexOf("/"); end !== -1; end = address.indexOf("/", end + 1))
    outer.push(address.slice(0, end) as StepAddress);
  return outer;
}
