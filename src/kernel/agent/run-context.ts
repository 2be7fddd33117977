import type { StoredChanges } from "../run/run-changes.ts";
import type { StepRetry } from "../errors/retry.ts";
import type { RunKind } from "../run/run-record.ts";
import type { AskOutcome } from "../run/run-result.ts";
import type { CallSettings } from "../messages/call-settings.ts";
import type { LlmReply } from "../messages/llm-reply.ts";
import type { CancelSignal } from "../base/cancel-signal.ts";
import type { ChildContext } from "./child-context.ts";
import type {
  CompactedTranscript,
  CompactionStep,
  SessionCompactionOutcome,
  SessionCompactionStep,
} from "./compaction.ts";
import type { MapOptions, ParallelOptions, SettledItem, UncancellableOptions } from "./branch-options.ts";
import type { ExtensionPort } from "./extension-context.ts";
import type { EmittableEvent, TurnEvent } from "../events/emittable-event.ts";
import type { AgentId, TaskId, TopicId } from "../base/identity.ts";
import type { DrainMode, RunMeta } from "../run/run-meta.ts";
import type { Duration } from "../base/duration.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { Message } from "../messages/message.ts";
import type { RunFacts } from "../run/run-facts.ts";
import type { RunSnapshot } from "../limits/account.ts";
import type { TaskHandle } from "../run/spawn-options.ts";
import type { PromiseOutcome, SignalOptions } from "../run/run-messages.ts";
import type { WaitContext } from "../run/wait-context.ts";
import type { TaskFolder } from "../run/task-folder.ts";
import type { ToolCall, ToolResult } from "../messages/tool-call.ts";
import type { Usage } from "../messages/usage.ts";
import type { LlmRequest } from "./llm-request.ts";
import type { ProgramContext } from "./foreign-program.ts";
import type { AttemptOptions, MeteredContext } from "./metered.ts";
import type { TaskReport } from "./task-report.ts";
import type { Tool } from "./tool.ts";
import type { Turn, TurnOpening, TurnPlan } from "./turn.ts";

/** What the body of `ctx.step` receives. */
export interface StepContext {
  /** J6: key that is the same on every attempt of this step. Pass it to services that detect repeated requests. */
  readonly idempotencyKey: string;
  /** Number of this attempt, from 1. An attempt that ended because its process died is not counted. */
  readonly attempt: number;
  /** Aborted when the step is cancelled, and when the attempt times out. */
  readonly signal: CancelSignal;
  /**
   * Run context for steps inside the body. They belong to this step. J7: if this step is in the journal, its body
   * and the steps in it do not run.
   */
  readonly ctx: RunContext;
}

/** Options of `ctx.step`. */
export interface StepOptions {
  /** Value that identifies the step in addition to its name (J4). Default: `null`. */
  readonly input?: JsonValue;
  /**
   * J5: how the step is retried if its body throws. The journal records each failed attempt, with an event
   * `step_retry`, and a later worker continues with the next attempt. Between two attempts the run holds no slot
   * and may be dropped from memory. The step fails with the error of the last attempt; `details.attempts` lists all
   * attempts. Some errors end the step at once: a `FatalError`, an error with `retryable: false`, a fault that no
   * retry can fix, and a cancel. Default: one attempt.
   */
  readonly retry?: Partial<StepRetry> | false;
  /**
   * Maximum duration of one attempt, in milliseconds. When it has passed, `signal` is aborted and the attempt fails
   * with `step_timeout`; the runtime ignores what the body does later. Default: no limit.
   */
  readonly timeoutMs?: number;
  /** The key that the body receives. Default: a key that is unique to the step of the run. */
  readonly idempotencyKey?: string;
  /** J9: former names of the step. A replay accepts a record with one of them. */
  readonly formerly?: string | readonly string[];
}

/**
 * What the body of `ctx.attempt` receives. Calls through it may run at the same time. The runtime charges them and
 * writes their events and audit entries, but never replays them.
 */
export interface AttemptContext
  extends ProgramContext, Pick<RunContext, "llm" | "metered" | "tool" | "step" | "approval"> {
  /** Number of this attempt, from 1. An attempt that ended because its process died is counted. */
  readonly number: number;
  /** J6: key that is the same on every attempt of the step. */
  readonly idempotencyKey: string;
  /** Aborted when the attempt is cancelled, and when this process drops the task. */
  readonly signal: CancelSignal;
  /** Writes an event to the log of the run. */
  emitEvent(event: EmittableEvent): void;
}

/** What the function of a compensation receives. A compensation undoes a part of the work of a failed run. */
export interface CompensationContext extends StepContext {
  /** How the run ends: it failed, was cancelled, or passed its deadline. */
  readonly status: "failed" | "cancelled" | "deadline_exceeded";
  /** The message of the error, or the reason of the cancel. */
  readonly reason: string;
}

/** Options of `ctx.compensate`. */
export interface CompensationOptions extends Pick<StepOptions, "retry" | "idempotencyKey" | "formerly"> {
  /** Maximum duration of the compensation with all its attempts, in milliseconds. Default: 600_000. */
  readonly timeoutMs?: number;
}

/** Options of `ctx.tools`. */
export interface ToolsOptions {
  /**
   * Tools in addition to the agent's own. They take precedence over tools of the agent with the same name, and pass
   * the same checks.
   */
  readonly extra?: readonly Tool[];
  /**
   * Names of the tools that may be called. A call of another tool gets an error result. If absent, all tools may be
   * called.
   */
  readonly only?: readonly string[];
  /**
   * Maximum number of calls that run at the same time. Further calls start in order, each as soon as an earlier
   * call has its result. If absent, there is no limit.
   */
  readonly maxParallel?: number;
  /**
   * Called with each result and the position of its call as soon as the result is available. The caller thus gets
   * each result before later calls of the batch start, and also if a cancel ends the other calls.
   */
  readonly onResult?: (result: ToolResult, index: number) => void;
}

/**
 * One branch of `ctx.parallel` or `ctx.race`. Its steps must use the `ctx` that it receives and not the outer one,
 * because each branch has its own scope in the journal (J2).
 */
export type Branch<Value> = (ctx: RunContext) => Promise<Value>;
/** The results of `ctx.parallel`, by branch name. */
export type BranchResults<Branches extends Readonly<Record<string, Branch<unknown>>>> = {
  readonly [Name in keyof Branches]: Awaited<ReturnType<Branches[Name]>>;
};

/**
 * The interface through which a task does its work (`ctx`). Its asynchronous methods are journaled steps: each runs
 * once, its result or fault is recorded (J5), and after a crash the same call returns the record instead of running
 * again (J1). `resource` is not journaled.
 *
 * J2: a scope has at most one journaled call in flight; a second one fails with `journal_ambiguous`. Use
 * `parallel`, `map`, `tools`, `joinAll`, `race` or `any` for concurrent work. A child or a started run is not a
 * call in flight; waiting for it with `join` is.
 */
export interface RunContext extends ChildContext, WaitContext, MeteredContext {
  // The task.

  /** Run id, cancellation, deadline, trace and tenant of the task. */
  readonly meta: RunMeta;
  /** User, session, run and metadata of the task. */
  readonly facts: RunFacts;
  /** What the run does. */
  readonly kind: RunKind;
  /** Id of this task. */
  readonly taskId: TaskId;
  /** Id of the agent that runs this task. */
  readonly agentId: AgentId;
  /** The input with which the task was started. `null` for a task that inbox messages started. */
  readonly input: JsonValue;
  /** Whether a reader streams the text of this task while it is written (E2). */
  readonly streaming: boolean;
  /** Whether the run is a heartbeat (`SubmitOptions.heartbeat`). `false` for a child. */
  readonly heartbeat: boolean;
  /**
   * Settings for the model calls of this task. `null` if the submission has none. A task that `child` created has
   * the settings of its parent's last request; other child tasks have none.
   */
  readonly settings: CallSettings | null;
  /** Text that the submission adds after the agent's instructions. Empty if it adds none, and for a child task. */
  readonly addedInstructions: string;
  /**
   * What the submission or a fork changes of the agent for this task, such as its model or tools. `null` if
   * nothing.
   */
  readonly changes: StoredChanges | null;
  /**
   * Whether this task continues the prompt of another task, because `child` or `Agent.spawnChild` created it. The
   * settings of its turn are copied from the last request of that task.
   */
  readonly sharesPrompt: boolean;
  /**
   * The folder in which the task works: that of the last `useFolder`, or else the folder of the parent task (D2).
   * `null` if each tool of the task works in the folder for which it was made.
   */
  readonly folder: TaskFolder | null;
  /**
   * Sets the folder in which the task, its tools and its later children work from now on. The call is not a step:
   * make it on every replay, with a folder that a recorded step returned (`Isolation.open`).
   */
  useFolder(folder: TaskFolder): void;
  /**
   * L21: binds the run to this machine from its next commit on, because `program` leaves something here that the
   * run needs later, such as files. The call is not a step. Throws `unsupported` if the engine may move runs
   * between workers (`Engine.hostsPrograms`).
   */
  stayOnHost(program: string): void;
  /**
   * Records the name of a home folder for a program before the folder is created. The folder is kept as long as the
   * history of the run, and then `removeHome` of the runtime removes it. The call is not a step.
   */
  keepHome(name: string): Promise<void>;
  /**
   * Aborted when the task is cancelled, and when this process drops the task. A process drops a task when its
   * worker loses the run, closes, or suspends the run.
   */
  readonly signal: CancelSignal;
  /** Current seats and ledger of the run. Read-only. */
  readonly snapshot: RunSnapshot;
  /**
   * Usage that providers have reported for the task and its descendants so far. The value is not journaled, so that
   * decisions which a replay must repeat must not depend on it.
   */
  readonly usage: Usage;
  /** What the runtime provides to the extensions of the agent. These calls are not journaled. */
  readonly extensionPort: ExtensionPort;

  // Model and tools.

  /**
   * Starts an invocation. Calls `plan` once and records its result (J4): input, instructions, tools and history. A
   * replay uses the recorded values, not the current ones. Contents are stored once and referenced by hash; a
   * history is referenced by the last entry of its session path.
   */
  turn(plan: (opening: TurnOpening) => TurnPlan | Promise<TurnPlan>): Promise<Turn>;
  /**
   * Starts an invocation like the other overload. `plan` also receives a run context for steps inside this step,
   * such as a question to a person. The event `input` is written before `plan` is called.
   */
  turn(
    plan: (opening: TurnOpening, ctx: RunContext) => TurnPlan | Promise<TurnPlan>,
    options: { readonly withSteps: boolean },
  ): Promise<Turn>;
  /**
   * Calls the model. The step reserves the upper bound of the cost before the call (B1), retries inside the step by
   * kind of error (J5) and settles the cost afterwards (B3). Each call counts as one turn of `budget.maxTurns`.
   *
   * @example
   * ```ts
   * import type { RunContext } from "reeve";
   * import { messageText, Transcript, userMessage } from "reeve/kernel";
   *
   * async function summarize(ctx: RunContext, text: string): Promise<string> {
   *   const { message } = await ctx.llm({
   *     instructions: "Summarise the text in one sentence.",
   *     transcript: Transcript.of([userMessage(text)]),
   *   });
   *   return messageText(message);
   * }
   * ```
   */
  llm(request: LlmRequest): Promise<LlmReply>;
  /**
   * Calls a tool of the agent. First all checks decide about the call: hooks, extensions, guardrails, permissions
   * and a person's approval (J7). A tool that fails gives a result with `isError`, not a fault.
   *
   * @example
   * ```ts
   * import type { RunContext } from "reeve";
   *
   * async function search(ctx: RunContext, query: string): Promise<boolean> {
   *   const { isError } = await ctx.tool({ callId: "search-1", toolName: "search", input: { query } });
   *   return !isError;
   * }
   * ```
   */
  tool(call: ToolCall): Promise<ToolResult>;
  /**
   * Calls several tools, concurrently where their `concurrency` allows it. Returns the results in the order of the
   * calls.
   */
  tools(calls: readonly ToolCall[], options?: ToolsOptions): Promise<readonly ToolResult[]>;
  /**
   * Shortens a transcript once and records the result, which starts a new digest chain (J4). S3: a tool call stays
   * together with its result, and stored session entries do not change.
   */
  compact(step: CompactionStep): Promise<CompactedTranscript>;
  /**
   * Requests a compaction of the session. The compaction is a run of its own, which starts in the commit that ends
   * the invocation. The request is recorded with the step in which it is made. A later request replaces the
   * instructions of an earlier one.
   */
  requestCompaction(instructions?: string): void;
  /** The last `requestCompaction` of this invocation. `null` if there is none. */
  readonly compactionRequest: { readonly instructions?: string } | null;
  /** S5: whether another run of the session has not ended. Not a step: a replay may return another answer. */
  hasOtherRuns(): Promise<boolean>;
  /**
   * Compacts the session of a run of kind `compaction`. The entry becomes visible in the commit that ends the run, with
   * `session_compact` and `save_point`. Throws `invalid_argument` in any other run.
   */
  compactSession(step: SessionCompactionStep): Promise<SessionCompactionOutcome>;
  /**
   * Returns steering input that arrived since the last call, oldest first: one input, or all with `mode: "all"`.
   * Default: `one`. The commit that records the call also removes the returned inputs from the mailbox. Each input
   * is therefore returned by one call only, and a replay returns the same inputs (J4). The call never waits, and
   * steering never ends another wait.
   */
  steering(options?: { readonly mode?: DrainMode }): Promise<readonly JsonValue[]>;
  /** Returns follow-up input, with the same options as `steering`. Call it when the task would otherwise end. */
  followUps(options?: { readonly mode?: DrainMode }): Promise<readonly JsonValue[]>;

  // Effects and values.

  /**
   * Runs an effect and records its result. J6: the body runs at least once, its result is recorded exactly once. `name`
   * and `options.input` identify the step: a replay with other values fails with `journal_mismatch` (J4).
   *
   * @example
   * ```ts
   * import type { RunContext } from "reeve";
   *
   * declare function chargeCard(cents: number, options: { key: string }): Promise<string>;
   *
   * async function charge(ctx: RunContext, cents: number): Promise<string> {
   *   return ctx.step("charge", ({ idempotencyKey }) => chargeCard(cents, { key: idempotencyKey }), {
   *     input: { cents },
   *   });
   * }
   * ```
   */
  step<Value extends JsonValue>(
    name: string,
    body: (step: StepContext) => Promise<Value>,
    options?: StepOptions,
  ): Promise<Value>;
  /**
   * Runs code that lives as long as this process, such as another program, and records the value that it returns.
   * J2: its calls may run at the same time. A crash ends the attempt, and the next owner starts another attempt,
   * which sees no record of the earlier ones. Questions of an attempt that has ended are withdrawn.
   *
   * While the attempt runs, the run stays in memory, and the time limits of the task continue to count.
   */
  attempt<Value extends JsonValue>(
    name: string,
    body: (attempt: AttemptContext) => Promise<Value>,
    options?: AttemptOptions,
  ): Promise<Value>;
  /**
   * J9: whether changed code takes its new path. Returns `false` if the journal has later records that the code
   * wrote before it was changed, otherwise `true`. The first call with a name decides for the whole journal of the
   * task, and the decision is recorded.
   */
  patched(name: string): boolean;
  /** Returns the current time in epoch milliseconds. Recorded: a replay returns the same time. */
  now(): Promise<number>;
  /** Returns a random number from 0 (inclusive) to 1 (exclusive). Recorded: a replay returns the same number. */
  random(): Promise<number>;
  /** Returns a new unique id. Recorded: a replay returns the same id. */
  uuid(): Promise<string>;
  /**
   * Registers a compensation, which is a function that undoes the work so far. If the run of a workflow fails, is
   * cancelled or passes its deadline, the registered functions run in reverse order. Each runs as a step of this
   * name with its own attempts (J5), in a scope that no cancel reaches (C2). A compensation that fails is reported,
   * and the next ones follow. After the first compensation has started, the run cannot be resumed. A run that
   * completes, is paused or stops at its budget runs no compensation; if a run that stopped at its budget is
   * cancelled, its compensations run.
   *
   * Only the code of a workflow may call it, not the body of a step or tool.
   */
  compensate(
    name: string,
    undo: (step: CompensationContext) => Promise<unknown>,
    options?: CompensationOptions,
  ): Promise<void>;
  /**
   * C2: runs a branch that no cancel and no deadline of the task reaches, also after a cancel, and returns its
   * value, which must be JSON. A cancel does not reach the children of the branch either. Only the branch's own
   * time limit ends it.
   */
  uncancellable<Value extends JsonValue>(
    branch: Branch<Value>,
    options?: UncancellableOptions,
  ): Promise<Value>;
  /**
   * Opens something that cannot be journaled, such as a connection. The call is not a step: `close` is called when
   * the task ends or is dropped, and a replay calls `open` again.
   */
  resource<Value>(open: () => Promise<Value>, close: (value: Value) => Promise<void>): Promise<Value>;

  // Branches.

  /**
   * Runs branches concurrently, each in its own scope, and waits for all of them. If branches fail, it throws the
   * fault of the first failed branch in declaration order.
   *
   * With `stopOnFault` it throws the first fault without waiting for the other branches. Signals and inputs that
   * the other branches have taken are then available to the next waits. C1: the children of these branches are
   * cancelled, except those whose `onParentEnd` is not `cancel`.
   *
   * @example
   * ```ts
   * import type { RunContext } from "reeve";
   *
   * declare function fetchText(url: string): Promise<string>;
   *
   * async function compare(ctx: RunContext): Promise<boolean> {
   *   const { left, right } = await ctx.parallel({
   *     left: (branch) => branch.step("fetch", () => fetchText("https://example.com/a")),
   *     right: (branch) => branch.step("fetch", () => fetchText("https://example.com/b")),
   *   });
   *   return left === right;
   * }
   * ```
   */
  parallel<Branches extends Readonly<Record<string, Branch<unknown>>>>(
    branches: Branches,
    options?: ParallelOptions,
  ): Promise<BranchResults<Branches>>;
  /**
   * Runs branches concurrently. The first branch to settle wins, and the journal records the winner. The other
   * branches and the children that they have spawned are cancelled (C1), except children whose `onParentEnd` is not
   * `cancel`. Signals and queued inputs that a losing branch took are available to the next waits. If the first
   * branch to settle fails, the race fails with its fault.
   */
  race<Value>(
    branches: Readonly<Record<string, Branch<Value>>>,
  ): Promise<{ readonly winner: string; readonly value: Value }>;
  /**
   * Runs branches concurrently. The first branch that succeeds wins, and the journal records the winner. The other
   * branches are cancelled, as in `race`. If all branches fail, the call fails with the fault of the first one in
   * declaration order, whose `details.branches` list all faults.
   */
  any<Value>(
    branches: Readonly<Record<string, Branch<Value>>>,
  ): Promise<{ readonly winner: string; readonly value: Value }>;
  /**
   * Calls a function for each item, each in its own scope, and waits for all of them. An error becomes the result
   * of its item and does not end the calls for the other items. The results are recorded in the order of the items,
   * and a replay does not call the function again.
   */
  map<Item, Value extends JsonValue>(
    items: readonly Item[],
    perform: (item: Item, ctx: RunContext, index: number) => Promise<Value>,
    options?: MapOptions,
  ): Promise<readonly SettledItem<Value>[]>;

  /**
   * Runs a branch that may take at most `limit`, and returns its value, which must be JSON. If the branch takes
   * longer, the branch and its children are cancelled, as in `race`, and the call throws `timeout`. The start time
   * is journaled, so that a replay continues with the remaining time.
   */
  timeout<Value extends JsonValue>(limit: Duration, branch: Branch<Value>): Promise<Value>;

  // Messages.

  /**
   * Sends `body` to an agent's inbox and waits for the reply. With a `TaskHandle` it sends nothing and only waits
   * for the output of that child.
   *
   * H5: a timeout cancels the child. The timeout of a child follows the child's clock, which stops while the child
   * is paused or waits for a person.
   *
   * @example
   * ```ts
   * import type { AgentId, RunContext } from "reeve";
   *
   * async function consult(ctx: RunContext, expert: AgentId, question: string): Promise<string> {
   *   const answer = await ctx.ask(expert, question, { timeoutMs: 60_000 });
   *   return answer.kind === "replied" ? String(answer.body) : `No answer: ${answer.kind}`;
   * }
   * ```
   */
  ask(
    target: AgentId | TaskHandle,
    body: JsonValue,
    options?: { readonly timeoutMs?: number },
  ): Promise<AskOutcome>;
  /** Answers a message that was sent with `ask`. */
  reply(message: Message, body: JsonValue): Promise<void>;
  /** Sends a message to an agent's inbox without waiting for an answer. */
  send(target: AgentId, body: JsonValue): Promise<void>;
  /** Sends a message to every agent that follows the topic. */
  emit(topic: TopicId, body: JsonValue): Promise<void>;
  /**
   * Sends a signal to another run, in the commit that records this call. With `id`, a second signal with the same
   * name and id has no effect, also if different senders sent them. Throws `not_found` if the run has ended, or
   * does not exist in the tenant of this run (S6).
   */
  sendSignal(runId: string, name: string, value: JsonValue, options?: SignalOptions): Promise<void>;
  /**
   * Settles a promise of another run, in the commit that records this call. Has no effect on a promise that is
   * already settled. Throws `not_found` if the run has ended, or does not exist in the tenant of this run (S6).
   */
  settlePromise(id: string, outcome: PromiseOutcome): Promise<void>;
  /** Makes this agent a follower of the topic. */
  follow(topic: TopicId): Promise<void>;
  /** Removes this agent from the followers of the topic. */
  unfollow(topic: TopicId): Promise<void>;

  // Log and life of the task.

  /**
   * Sets values that the runtime uses when the task ends, such as a finish reason. A later report replaces the
   * fields that it contains.
   */
  report(report: TaskReport): void;
  /**
   * Publishes a value that `RunHandle.read` returns in any process, without waking the run. The next step of this
   * scope commits the value. If the code starts no step during a full turn of the JavaScript event loop, the
   * runtime commits it earlier (E4).
   */
  publish(name: string, value: JsonValue): void;
  /**
   * L19: returns the state of the object key to which this run belongs, or `undefined` if the key has no state. The
   * result is recorded, so that a replay returns the same state. Throws `invalid_argument` in a run that is not a
   * call of an object.
   */
  objectState(): Promise<JsonValue | undefined>;
  /**
   * L19: sets the state of the object key to which this run belongs, or removes it with `undefined`. The next step
   * of this scope or the end of the task commits it. If the code starts no step during a full turn of the
   * JavaScript event loop, the runtime commits it earlier (E4). Throws `invalid_argument` in a shared call, in a
   * run that is not a call of an object, and while another call of the scope is open.
   */
  setObjectState(state: JsonValue | undefined): void;
  /**
   * Writes an event to the run's log. The next step of this scope commits the event. If the code starts no step
   * during a full turn of the JavaScript event loop, the runtime commits it earlier. A replay does not write it
   * again (E4). Throws `invalid_argument` for an event that only the runtime may emit.
   */
  emitEvent(event: EmittableEvent): void;
  /**
   * Writes an event like the other overload, and also accepts the events that start and end the invocation of
   * `turn`.
   */
  emitEvent(event: EmittableEvent | TurnEvent, turn: Turn): void;
  /**
   * C2: throws if the task is cancelled or past its deadline. During a replay it does not throw while this scope
   * has recorded steps that the replay has not reached.
   */
  check(): void;
  /**
   * J8: ends this task's journal and restarts the task's code with an empty journal and `state` as its input. The
   * code after the call does not run, not even `catch` and `finally` blocks. Resources of `resource` are closed.
   * Live children continue. Children that have ended leave memory: they can no longer be joined or read.
   */
  continueAsNew(state: JsonValue): Promise<never>;
}
