import {
  assertJson,
  CancellationToken,
  describeValue,
  Fault,
  readProperty,
  RunMeta,
  modelFor,
  type HostedAgent,
  type AgentId,
  type AssistantMessage,
  type CancellationError,
  type ChatMessage,
  type CompensationContext,
  type JsonValue,
  type LlmReply,
  type LlmRequest,
  type Model,
  type RequestOfTask,
  type RequestPart,
  type RunFacts,
  type StepAddress,
  type StepOptions,
  type StopReason,
  type TaskFolder,
  type TaskId,
  type TaskReport,
  type ThinkingLevel,
  type Transcript,
} from "../../kernel/index.ts";
import type { RunLog } from "../journal/run-log.ts";
import type { RunState } from "../journal/run-state.ts";
import type { TurnRecord } from "../journal/shared-contents.ts";
import { hasCompensated, supervisionOf, type TaskState } from "../journal/task-state.ts";
import { deadlineOf } from "../journal/task-clock.ts";
import { factsOf, type TaskAsyncContext } from "../process/async-context.ts";
import { pendingForever } from "../process/pending-forever.ts";
import type { WorkerContext } from "../process/worker-context.ts";
import { CancellationScope, type CancellationRoot } from "./cancellation-scope.ts";
import { StepJournal, type ReplayProbe } from "./step-journal.ts";
import { unopened } from "./unopened.ts";
import { TaskActivity } from "./task-activity.ts";
import { isPromise, refusedPromise } from "./refused-promise.ts";
import type { TaskHost } from "./task-host.ts";

/**
 * J8: resources that the code of a task has opened with `ctx.resource`. They are closed in reverse order when the
 * task ends or is dropped.
 */
class TaskResources {
  readonly #onError: (error: unknown) => void;
  #closers: (() => Promise<void>)[] | undefined;
  /** Resolves the promise of `close` early. */
  #stopWaiting: (() => void) | undefined;

  /** `onError` receives the error of each resource that could not be closed. */
  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
  }

  get isEmpty(): boolean {
    return this.#closers === undefined;
  }

  add(close: () => Promise<void>): void {
    (this.#closers ??= []).push(close);
  }

  /** Resolves once all resources are closed, or `abandon` is called. */
  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#stopWaiting = resolve;
      void this.#closeAll().then(resolve);
    });
  }

  /** Stops waiting for resources that are still closing. */
  abandon(): void {
    this.#stopWaiting?.();
  }

  async #closeAll(): Promise<void> {
    const closers = this.#closers ?? [];
    this.#closers = undefined;
    for (const close of closers.toReversed()) {
      try {
        await close();
      } catch (error) {
        this.#onError(error);
      }
    }
  }
}

export interface TaskRunnerOptions {
  readonly taskId: TaskId;
  readonly agent: HostedAgent;
  readonly worker: WorkerContext;
  readonly log: RunLog;
  readonly state: RunState;
  readonly host: TaskHost;
  /** Present if the code of the task only replays its recorded steps and starts no others. */
  readonly probe?: ReplayProbe;
}

/** A history, given by the places and hashes under which it is stored. */
type StoredHistory = Pick<RequestOfTask, "sessionId" | "leafId" | "history" | "said">;

/** A request of a task that a model has answered. */
export interface AnsweredRequest {
  readonly request: LlmRequest;
  readonly role: string;
  readonly answer: AssistantMessage;
  /** Address of the model call, below which the calls of the answer are recorded (J2). */
  readonly address: StepAddress;
  /** The turn in which the call was made. `undefined` if the code had not started a turn. */
  readonly turn: TaskRunner["turn"];
}

/** J11: the request of a model call, apart from its messages. It shows what the next call changes. */
export interface FrameOfCall {
  readonly request: LlmRequest;
  readonly model: Model | undefined;
  readonly turn: TaskRunner["turn"];
  readonly ephemeral: number;
  /** The parts that middleware changed. */
  readonly changed: readonly RequestPart[];
}

/** A compensation that the code has registered. */
export interface RegisteredUndo {
  readonly undo: (step: CompensationContext) => Promise<unknown>;
  readonly timeoutMs: number;
  readonly options: Pick<StepOptions, "retry" | "idempotencyKey">;
}

/** How a task's code ended: it returned a value or threw an error. */
export type Ending = { readonly value: unknown } | { readonly error: unknown };

/**
 * One task that executes in this process: its cancellation, its report and its end. `journal` holds its recorded
 * steps, `activity` its seat and slot.
 *
 * States, and the moves between them:
 * - created: `begin` waits for a slot; `run` moves it to running.
 * - running: the agent's code executes. The code's own end moves it to ended, `abandon` to abandoned.
 * - ended: the code has returned or thrown; its resources are being closed.
 * - abandoned: the code ignored a cancellation, and `run` rejects with the cancellation in its place. `leave` moves
 *   to it as well, and `run` rejects with the reason.
 * - dropped: `drop` is possible in every state. No call of the code settles any more, so that the code does not
 *   continue.
 */
export class TaskRunner implements CancellationRoot {
  readonly taskId: TaskId;
  readonly agent: HostedAgent;
  readonly worker: WorkerContext;
  readonly log: RunLog;
  readonly state: RunState;
  readonly host: TaskHost;
  readonly facts: RunFacts;
  /** The async context of the task's code. */
  readonly inside: TaskAsyncContext;
  /** Cancels the task. `drop` and `abandon` cancel only `cancelScope`, which is below this token. */
  readonly token = new CancellationToken();
  /** Scope of the task's own code. The scopes of branches and tool bodies are below it. */
  readonly cancelScope: CancellationScope;
  /** Present if the code only replays. */
  readonly probe: ReplayProbe | undefined;
  readonly task: TaskState;
  readonly journal: StepJournal;
  readonly activity: TaskActivity;
  readonly #resources = new TaskResources((error) => this.#emitHookError("resource", error));
  /** Rejects the promise of `run`. Absent before `run` is called. */
  #fail: ((reason: unknown) => void) | undefined;
  #meta: RunMeta | undefined;
  #promptCacheKey: string | undefined;
  #isEnded = false;
  #isAbandoned = false;
  #stop: CancellationError | undefined;
  /** Number of parallel parts of code that no cancel reaches. */
  #shields = 0;
  #undoScope: CancellationScope | undefined;

  /** Whether the code of a workflow has returned or thrown. Its compensations may still run. */
  hasReturned = false;
  /**
   * The compensations that the code has registered in this process, by their addresses. Created with the first
   * compensation.
   */
  undos: Map<StepAddress, RegisteredUndo> | undefined;

  /** Cancels the timer that ends the time for stopping a cancelled task. */
  endGrace: (() => void) | undefined;
  /** What the code has reported about its result so far. It becomes part of the task's end, regardless of the outcome. */
  report: TaskReport = {};
  /** The last compaction that the code requested in this process. */
  compactionRequest: { readonly instructions?: string } | undefined;
  /**
   * Why the last model call of the task, or of the last child that it joined, ended. `undefined` before the first
   * call.
   */
  stopReason: StopReason | undefined;
  /** Limit of tool calls in the turn that the code took last. */
  maxToolCallsPerTurn = Infinity;
  /** The model that replaces the agent's main model from the last turn of the code on. */
  sessionModel: Model | undefined;
  /** The thinking level of the turn that the code took last. */
  thinkingLevel: ThinkingLevel | undefined;
  /** The folder in which the task works. */
  folder: TaskFolder | null;
  /** The turn that the code took last, with its history. */
  turn: { readonly record: TurnRecord; readonly history: Transcript } | undefined;
  /** The last request that a model answered, outside the bodies of tools and steps, with the answer. */
  lastRequest: AnsweredRequest | undefined;
  /** J11: the last request of each role that this process sent, apart from its messages. */
  sentFrames: Map<string, FrameOfCall> | undefined;
  /** What the last child of the task shares, so that the record of the next child contains only later messages. */
  shared: { readonly transcript: Transcript; readonly stored: StoredHistory } | undefined;
  /** The replies of models by their messages. */
  readonly replies = new WeakMap<ChatMessage, LlmReply>();

  constructor({ taskId, agent, worker, log, state, host, probe }: TaskRunnerOptions) {
    this.probe = probe;
    this.cancelScope = new CancellationScope(this);
    this.taskId = taskId;
    this.agent = agent;
    this.worker = worker;
    this.log = log;
    this.state = state;
    this.host = host;
    const { token } = this;
    const { clock, eventLoop, hash, slots } = worker;
    const task = state.task(taskId);
    this.task = task;
    this.folder = task.record.folder ?? null;
    this.facts = factsOf(host.tenantId, task.record, host.live);
    const onMismatch = (fault: Fault): void => {
      if (!this.isDropped) this.#fail?.(fault);
    };
    this.journal = new StepJournal({ taskId, task, log, waits: host.waits, clock, hash, onMismatch, probe });
    this.activity = new TaskActivity({ taskId, host, slots, token, eventLoop });
    this.inside = { facts: this.facts, task: this.activity };
    const { cancelled } = task;
    if (cancelled !== null) token.cancel(cancelled.reason, cancelled.status);
    // The code only replays: what it would do now could not be undone any more.
    else if (hasCompensated(task)) token.cancel("the compensations of the task have begun");
  }

  /** Whether the code only replays its recorded steps and starts no others. */
  get onlyReplays(): boolean {
    return this.probe !== undefined;
  }

  /** C2: scope of the compensations. Only the end of the task in this process cancels it. */
  get undoScope(): CancellationScope {
    return (this.#undoScope ??= CancellationScope.alone({
      token: new CancellationToken(),
      checkDeadline: () => undefined,
    }));
  }

  /** C2: whether code of the task executes that no cancel reaches. */
  get isShielded(): boolean {
    return this.#shields > 0;
  }

  /**
   * C2: runs code that no cancel reaches. If the task is cancelled, its time for stopping starts when this code has
   * ended.
   */
  async shielded<Value>(work: () => Promise<Value>): Promise<Value> {
    this.#shields++;
    this.endGrace?.();
    try {
      return await work();
    } finally {
      this.#shields--;
      if (!this.isShielded && this.token.cancelled && !this.isDropped) this.host.unshield(this.taskId);
    }
  }

  /** Whether the task was dropped, so that no call of its code settles any more. */
  get isDropped(): boolean {
    return this.activity.isDropped;
  }

  /** Whether the task's code has returned or thrown. */
  get hasEnded(): boolean {
    return this.#isEnded;
  }

  /** The output that the code has reported so far. If it cannot be read, the task ends without an output. */
  get output(): JsonValue | undefined {
    try {
      const { output } = this.report;
      const value = typeof output === "function" ? output() : output;
      if (isPromise(value)) throw refusedPromise(value, "the output that the task reports");
      if (value !== undefined) assertJson(value, "the output that the task reports");
      return value;
    } catch (error) {
      this.#emitHookError("report", error);
      return undefined;
    }
  }

  /** Returns the model for a role. The model of the session replaces the agent's main model. */
  modelFor(role: string): Model | undefined {
    const own = modelFor(this.agent, role);
    return this.sessionModel !== undefined && this.isMain(role) ? this.sessionModel : own;
  }

  /** Whether the agent uses its main model for the role. */
  isMain(role: string): boolean {
    const { models } = this.agent;
    return models !== undefined && modelFor(this.agent, role) === models["main"];
  }

  get agentId(): AgentId {
    return this.task.record.agentId;
  }

  /**
   * B5: the metadata of the run. It is a new object after each stop of the task's clock, because the deadline has
   * moved. It has no deadline while the clock is stopped.
   */
  get meta(): RunMeta {
    const deadline = this.task.clock.isStopped ? null : deadlineOf(this.task);
    if (this.#meta?.deadline !== deadline) this.#meta = this.#newMeta(deadline);
    return this.#meta;
  }

  /**
   * Key of the provider's prompt cache. It is the same for all tasks of a session, because a child often starts
   * with the prompt of its parent. It is a hash, because the provider must not learn the session id.
   */
  get promptCacheKey(): string {
    return (this.#promptCacheKey ??= this.worker.contentHashes
      .ofText(`prompt cache ${this.facts.sessionId}`)
      .slice(0, 32));
  }

  /** The cancellation that the code has received. */
  get stop(): CancellationError | undefined {
    return this.#stop;
  }

  /**
   * Resolves when the task holds a slot and its code may start. It is always asynchronous, so that one commit
   * contains `task_start` and the caller's current record. A child starts only after its parent has continued.
   * Never settles if the task is dropped.
   */
  begin(): Promise<void> {
    const isChild = this.task.record.parentId !== null;
    return this.activity.takeSlot() ?? (isChild ? nextTick.then(() => undefined) : nextTick);
  }

  /** Executes the agent's code to its end. Never settles if the task is dropped. Rejects if the code must not continue (J4, C2). */
  run(code: () => Promise<unknown>): Promise<Ending> {
    return new Promise((resolve, reject) => {
      const end = (ending: Ending): void => {
        if (this.isDropped || this.#isAbandoned) return;
        this.#isEnded = true;
        this.activity.end();
        resolve(
          this.#resources.isEmpty
            ? ending
            : this.activity.whileAlive(this.#resources.close()).then(() => ending),
        );
      };
      // Without a closure around it: a closure here would keep ended runs in old space until the next full collection.
      this.#fail = reject;
      try {
        promiseOf(this.agentId, code()).then(
          (value) => end({ value }),
          (error: unknown) => end({ error }),
        );
      } catch (error) {
        end({ error });
      }
    });
  }

  checkDeadline(): void {
    if (this.task.record.budget.deadlineMs !== null) this.meta.check();
  }

  /** Records that the code received a cancel. The first one determines the outcome of the task. */
  noteStop(stop: CancellationError): void {
    this.#stop ??= stop;
  }

  /**
   * Opens a resource of the code, which is closed when the task ends or is dropped. Code that only replays opens
   * none: it receives a placeholder that it can pass to the bodies of steps, which are not executed.
   */
  async openResource<Value>(
    open: () => Promise<Value>,
    close: (value: Value) => Promise<void>,
    cancelScope: CancellationScope,
  ): Promise<Value> {
    if (this.onlyReplays) return unopened("the resource of ctx.resource()") as Value;
    const value = await open();
    if (this.isDropped) await close(value);
    else this.#resources.add(() => close(value));
    return this.activity.whileAlive(Promise.resolve(value), cancelScope);
  }

  /** Ends a task whose code ignores a cancel. Returns `false` if the code has not started. */
  abandon(stop: CancellationError): boolean {
    if (this.#fail === undefined) return false;
    if (this.#isEnded) {
      this.#resources.abandon();
      return true;
    }
    this.#isAbandoned = true;
    this.cancelScope.abandon(stop.reason);
    try {
      this.report.abandoned?.(stop);
    } catch (error) {
      this.worker.onError(Fault.from(error));
    }
    this.#fail(stop);
    return true;
  }

  /**
   * J8: ends the code at this place. The promise of `run` rejects with `reason`. No call of the code settles any
   * more, so that neither `catch` nor `finally` continues; the resources of the code are closed first. Does nothing
   * if the code has already ended because it did not await this call.
   */
  async leave(reason: unknown): Promise<never> {
    // In a turn of its own, so that the end of code that has returned is known, and that a loop leaves time for others.
    await new Promise<void>((resolve) => this.worker.eventLoop.nextTurn(resolve));
    if (!this.isDropped && !this.#isEnded && !this.hasReturned) {
      this.#isAbandoned = true;
      if (!this.#resources.isEmpty) await this.activity.whileAlive(this.#resources.close());
      this.#fail?.(reason);
    }
    return pendingForever();
  }

  /**
   * Cancels what the code has in flight, so that sockets and processes end with the task, and closes its resources.
   */
  drop(): void {
    if (this.isDropped) return;
    this.activity.drop();
    this.endGrace?.();
    this.inside.task = undefined;
    if (!this.#isEnded || this.activity.hasCalls) {
      const reason = `task ${this.taskId} was dropped from memory`;
      this.cancelScope.abandon(reason);
      this.#undoScope?.abandon(reason);
    }
    this.token.dispose();
    if (!this.#resources.isEmpty) void this.#resources.close();
  }

  #emitHookError(hook: string, error: unknown): void {
    const data = { hook, failure: Fault.from(error).toJSON() };
    if (!this.isDropped) this.journal.emit({ type: "hook_error", data });
  }

  #newMeta(deadline: number | null): RunMeta {
    const { clock, ids } = this.worker;
    return RunMeta.standalone({
      clock,
      ids,
      supervision: supervisionOf(this.task),
      cancellation: this.token,
      deadline,
      traceId: this.facts.runId,
      tenantId: this.host.tenantId,
    });
  }
}

const nextTick = Promise.resolve();

/**
 * Returns the promise of an agent's code. Throws for code that is not asynchronous, because it cannot have waited
 * for its own calls.
 */
function promiseOf(agentId: AgentId, running: Promise<unknown>): Promise<unknown> {
  if (typeof readProperty(running, "then") === "function") return running;
  throw new Fault(
    "invalid_argument",
    `run() of agent ${agentId} returned ${describeValue(running)} and no promise; declare it as async run(ctx), and await what the methods of ctx return`,
  );
}
