import type {
  AgentId,
  CallSettings,
  EmittableEvent,
  ExtensionPort,
  Headcount,
  JsonValue,
  Ledger,
  RunContext,
  RunFacts,
  RunKind,
  RunMeta,
  RunSnapshot,
  StoredChanges,
  TaskFolder,
  TaskId,
  Usage,
} from "../../kernel/index.ts";
import { bindToHost, refuseSlices } from "../task/host-binding.ts";
import { queueWait } from "../journal/wait-names.ts";
import { portFor } from "../process/worker-context.ts";
import type { TaskRunner } from "../task/task-runner.ts";

/** Creates the functions of the runtime that the extensions of a task's agent use. */
export function taskPort(runner: TaskRunner, signal: AbortSignal): ExtensionPort {
  const { worker, facts, state, taskId } = runner;
  const hasQueued = (): boolean =>
    state.resolutions.all(taskId, queueWait("steer")).length > 0 ||
    state.resolutions.all(taskId, queueWait("follow_up")).length > 0;
  const emitEvent = (event: EmittableEvent): void => {
    if (!runner.isDropped) runner.journal.emit(event);
  };
  return portFor(worker, { ...facts, signal, hasQueued, emitEvent });
}

/**
 * Shows the current seats and money of a run. It gives no access to the rest of the state, such as the records of
 * tasks.
 */
class StandingView implements RunSnapshot {
  readonly #state: RunSnapshot;

  constructor(state: RunSnapshot) {
    this.#state = state;
  }

  get headcount(): Headcount {
    return this.#state.headcount;
  }

  get ledger(): Ledger {
    return this.#state.ledger;
  }
}

/** The part of a `RunContext` that describes its task. It is the same in every scope of the task. */
export class TaskFacts implements Pick<RunContext, keyof TaskFacts> {
  readonly #runner: TaskRunner;
  #snapshot: RunSnapshot | undefined;

  constructor(runner: TaskRunner) {
    this.#runner = runner;
  }

  get meta(): RunMeta {
    return this.#runner.meta;
  }

  get facts(): RunFacts {
    return this.#runner.facts;
  }

  get taskId(): TaskId {
    return this.#runner.taskId;
  }

  get kind(): RunKind {
    return this.#runner.host.kind;
  }

  get compactionRequest(): { readonly instructions?: string } | null {
    return this.#runner.compactionRequest ?? this.#runner.state.compactionRequest;
  }

  get agentId(): AgentId {
    return this.#runner.agentId;
  }

  get snapshot(): RunSnapshot {
    return (this.#snapshot ??= new StandingView(this.#runner.state));
  }

  get usage(): Usage {
    return this.#runner.state.usageOf(this.#runner.taskId);
  }

  get streaming(): boolean {
    return this.#runner.task.record.streaming;
  }

  get heartbeat(): boolean {
    return this.#runner.task.record.heartbeat ?? false;
  }

  get settings(): CallSettings | null {
    return this.#runner.task.record.settings ?? null;
  }

  get addedInstructions(): string {
    return this.#runner.task.record.addedInstructions ?? "";
  }

  get changes(): StoredChanges | null {
    return this.#runner.task.record.changes ?? null;
  }

  get sharesPrompt(): boolean {
    return this.#runner.task.record.inherits !== undefined;
  }

  get folder(): TaskFolder | null {
    return this.#runner.folder;
  }

  useFolder(folder: TaskFolder): void {
    this.#runner.folder = folder;
  }

  stayOnHost(program: string): void {
    const what = `a task with a ${program}`;
    refuseSlices(this.#runner, what);
    bindToHost(this.#runner, what, program);
  }

  async keepHome(name: string): Promise<void> {
    const { worker, facts, task, activity } = this.#runner;
    const { retention } = task.record.supervision;
    await activity.whileAlive(worker.homes.keep(name, facts, retention));
  }

  get input(): JsonValue {
    return this.#runner.task.input;
  }
}
