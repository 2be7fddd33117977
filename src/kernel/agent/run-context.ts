import type { Interruption, OnParentEnd, OnPause, TaskOutcome } from "../run/task-outcome.ts";
import type { LlmReply } from "../messages/llm-reply.ts";
import type { ApprovalDecision, PersonQuestion } from "../run/approval.ts";
import type { CancelSignal } from "../base/cancel-signal.ts";
import type { CancellationError } from "../errors/cancellation-error.ts";
import type { CompactedTranscript, CompactionStep } from "./compaction.ts";
import type { EphemeralSource } from "./ephemeral-source.ts";
import type { EmittableEvent, TurnEvent } from "../events/emittable-event.ts";
import type { ExecutionBudget } from "../limits/execution-budget.ts";
import type { Failure } from "../base/fault.ts";
import type { RefusalReason, SeatHolder } from "../limits/headcount.ts";
import type { HistoryRetention } from "../limits/history-retention.ts";
import type { AgentId, TaskId, TopicId } from "../base/identity.ts";
import type { DrainMode } from "../run/input-queue.ts";
import type { JsonObject, JsonValue } from "../base/json-value.ts";
import type { Message } from "../messages/message.ts";
import type { ModelRequest } from "../messages/model.ts";
import type { Priority } from "../limits/priority.ts";
import type { RunFacts } from "../run/run-facts.ts";
import type { RunMeta } from "../run/run-meta.ts";
import type { SessionChange } from "../sessions/sessions.ts";
import type { RunSnapshot } from "../limits/run-snapshot.ts";
import type { ToolCall } from "../messages/tool-call.ts";
import type { Tool } from "./tool.ts";
import type { ToolResult } from "../messages/tool-result.ts";
import type { Transcript } from "../messages/transcript.ts";
import type { Turn, TurnOpening, TurnPlan } from "./turn.ts";

/** J4: the digest covers `transcript` and `role`; the rest is sent and not journaled. */
export interface LlmRequest extends Omit<ModelRequest, "messages"> {
  readonly transcript: Transcript;
  readonly instructions?: string;
  /** Live state for this call only, after the transcript: asked for when the model is, never on a replay, and never kept. */
  readonly ephemeral?: readonly EphemeralSource[];
  /** Which of the agent's models; absent: the main one. */
  readonly role?: string;
}

export interface SpawnOptions {
  readonly priority?: Priority;
  /**
   * H4: `refuse` unless told. `wait`: it is hired, and begins once a seat frees; refused only where none can, since all who have one wait
   * for it. For code that has nothing else to do about a refusal; a model has.
   */
  readonly onFull?: "refuse" | "wait";
  /** Tightened by the parent's (B6). */
  readonly budget?: Partial<ExecutionBudget>;
  /** RUN unless told. */
  readonly retention?: HistoryRetention;
  /**
   * As what its employer hires it, where it is to remember: each role has a session of its own, and each user has one in it. Absent: all
   * it does in the run's session under its own name is one conversation, of each user.
   */
  readonly role?: string;
  /** `cancel` unless told. */
  readonly onParentEnd?: OnParentEnd;
  readonly onPause?: OnPause;
  /** The tools it may call. It is still told of all, so that the provider's cache of the prompt holds. */
  readonly tools?: readonly string[];
}

export interface TaskHandle {
  readonly taskId: TaskId;
  readonly agentId: AgentId;
}

/** H4: a refused seat is a value, which a model can react to. */
export type SpawnOutcome =
  | { readonly kind: "spawned"; readonly handle: TaskHandle }
  | { readonly kind: "refused"; readonly reason: RefusalReason; readonly holders: readonly SeatHolder[] };

/** What is to be said of a task, however it ends. */
export interface TaskReport {
  /** What there is of an answer so far, or who says it when asked: kept when the task is stopped or fails (B5). */
  readonly output?: JsonValue | (() => string | undefined);
  /** A return then counts as this, not as an answer. */
  readonly interruption?: Interruption;
  /**
   * S1: written in the commit that ends the task, unless it failed, when the invocation stays hidden and resumable, or its history is not to
   * be kept.
   */
  readonly sessions?: readonly SessionChange[];
  /** What else it wants known: plans, scores, whom it hands over to. */
  readonly metadata?: JsonObject;
  /**
   * Called if the task's code ignores a stop and is given up where it stands: the last that it can report and tell, at once. Nothing else
   * of the code runs on then.
   */
  readonly abandoned?: (stop: CancellationError) => void;
}

/** `timed_out`: the target is alive; never a failure of it. */
export type AskOutcome =
  | { readonly kind: "replied"; readonly body: JsonValue }
  | { readonly kind: "timed_out" | "target_paused"; readonly partial: JsonValue }
  | { readonly kind: "target_failed" | "target_cancelled"; readonly failure: Failure | null };

/** What the body of a `step` is given. */
export interface StepContext {
  /** The same on every attempt (J6). */
  readonly idempotencyKey: string;
  readonly signal: CancelSignal;
  /** For a body that itself takes journaled steps, scoped under this one (J7): on a hit none of them runs. */
  readonly ctx: RunContext;
}

export interface ToolsOptions {
  /** Tools beside the agent's own, found first. They pass the same gate. */
  readonly extra?: readonly Tool[];
  /**
   * For each call that has its result, by its place, as soon as it has: what was done is known to the calls that come after it, and also
   * when a stop ends the rest.
   */
  readonly onResult?: (result: ToolResult, index: number) => void;
}

export type Branch<Value> = (ctx: RunContext) => Promise<Value>;
export type BranchResults<Branches extends Readonly<Record<string, Branch<unknown>>>> = {
  readonly [Name in keyof Branches]: Awaited<ReturnType<Branches[Name]>>;
};

export interface ParallelOptions {
  /** The first fault gives the other branches up: they are never answered again, and what they have open is told to stop. */
  readonly stopOnFault?: boolean;
}

/**
 * What a task does its work through. Every call that takes time is a step of the journal: recorded once, returned from the record
 * ever after (J1), recorded also when it fails (J5).
 *
 * J2: in one scope at most one journaled call is open; a second is `journal_ambiguous`. Do several things at once with
 * `parallel`, `tools`, `joinAll` or `race`.
 */
export interface RunContext {
  readonly meta: RunMeta;
  readonly facts: RunFacts;
  readonly taskId: TaskId;
  readonly agentId: AgentId;
  /** Aborted by a stop, and when the task is let go of here: its owner lost the run, closed, or put it to sleep. */
  readonly signal: CancelSignal;
  /** The run's seats and money, to look at. */
  readonly snapshot: RunSnapshot;
  /** Someone reads its text as it is written (E2). */
  readonly streaming: boolean;
  /** What the task was started with; `null` for one that messages started. */
  readonly input: JsonValue;

  /**
   * How an invocation begins: `plan` runs once, and what it comes to is frozen (J4). Instructions, tools and history are stored once
   * and referred to by hash, or by the leaf of their path; whoever replays goes by them, not by what they have become.
   */
  turn(plan: (opening: TurnOpening) => TurnPlan | Promise<TurnPlan>): Promise<Turn>;
  /** One turn's model call. Reserves before, retries by kind of error inside, settles after (B1, B3, J5). */
  llm(request: LlmRequest): Promise<LlmReply>;
  /** Through the gate: hooks, guardrails, permissions, a person's approval (J7). A tool that fails is a result. */
  tool(call: ToolCall): Promise<ToolResult>;
  /** Side by side, as the tools' concurrency allows; results in the order of the calls. */
  tools(calls: readonly ToolCall[], options?: ToolsOptions): Promise<readonly ToolResult[]>;

  /**
   * What was said to the run since the last time, in the order of arrival; `one` unless told. Consumed with the record of the drain, so
   * by one drain only; a replay drains the same (J4). Only the root is spoken to: elsewhere it is empty. Nothing waits for it, and it
   * ends no wait: a task that waits hears of it at its next drain.
   */
  steering(options?: { readonly mode?: DrainMode }): Promise<readonly JsonValue[]>;
  /** The same, of what is to be done once there is nothing else to do. */
  followUps(options?: { readonly mode?: DrainMode }): Promise<readonly JsonValue[]>;

  /**
   * Makes a long transcript short, once: what it came to is recorded, and a new chain begins (J4). S3: a call stays with its result;
   * what is stored of the session is not touched.
   */
  compact(step: CompactionStep): Promise<CompactedTranscript>;

  /** Hires an agent for a task of its own; does not wait for it. H6: not checked again on replay. */
  spawn(agentId: AgentId, input: JsonValue, options?: SpawnOptions): Promise<SpawnOutcome>;
  /**
   * A stop that the child was told of, too, ends it when it has ended the child as well, and then says what that had to show
   * (`CancellationError.childOutput`). Any other ends it at once.
   */
  join(handle: TaskHandle): Promise<TaskOutcome>;
  /** A stop ends it at once, and has nobody's words: to hear each, `join` them in branches. */
  joinAll(handles: readonly TaskHandle[]): Promise<readonly TaskOutcome[]>;
  /** C1: the task and everything below it. */
  cancel(handle: TaskHandle, reason: string): Promise<void>;

  /** Waits for all, then throws the first fault in the order of declaration; with `stopOnFault` it waits for nobody after a fault. */
  parallel<Branches extends Readonly<Record<string, Branch<unknown>>>>(
    branches: Branches,
    options?: ParallelOptions,
  ): Promise<BranchResults<Branches>>;
  /** The first to settle wins; the winner is journaled and the others are cancelled. */
  race<Value>(
    branches: Readonly<Record<string, Branch<Value>>>,
  ): Promise<{ readonly winner: string; readonly value: Value }>;

  /**
   * Sends and waits; on a spawned handle, waits only. H5: a timed-out ask of a child cancels it; its time is the child's, which stands
   * still while the child is paused or waits for a person.
   */
  ask(
    target: AgentId | TaskHandle,
    body: JsonValue,
    options?: { readonly timeoutMs?: number },
  ): Promise<AskOutcome>;
  reply(message: Message, body: JsonValue): Promise<void>;
  send(target: AgentId, body: JsonValue): Promise<void>;
  /** To everyone who follows the topic. */
  emit(topic: TopicId, body: JsonValue): Promise<void>;
  follow(topic: TopicId): Promise<void>;
  unfollow(topic: TopicId): Promise<void>;

  /** Epoch milliseconds. Holds over restarts. */
  sleepUntil(atMs: number): Promise<void>;
  /** What `resolve`s the name; one that came early is kept, each is consumed once. */
  waitForSignal(name: string, options?: { readonly timeoutMs?: number }): Promise<JsonValue | undefined>;
  /**
   * Asks a person, as the gate does for a tool that wants a yes: durably, answered by `RunHandle.approve`, with the task's clock
   * standing still. What `approved` means is the asker's to say; its `input`, if any, is the answer.
   */
  approval(question: PersonQuestion): Promise<ApprovalDecision>;

  /** Something that cannot be journaled, such as a connection: closed when the task is dropped, opened again on replay. */
  resource<Value>(open: () => Promise<Value>, close: (value: Value) => Promise<void>): Promise<Value>;
  /** Any effect of your own. J6: at least once; its result exactly once. */
  step<Value extends JsonValue>(
    name: string,
    body: (step: StepContext) => Promise<Value>,
    options?: { readonly input?: JsonValue },
  ): Promise<Value>;
  now(): Promise<number>;
  random(): Promise<number>;
  uuid(): Promise<string>;

  /** Says what is to be said of this task should it end now; the last word on each point stands. */
  report(report: TaskReport): void;
  /**
   * Puts an event into the run's log with the next step of this scope; told once, however often it is replayed (E4). One that is the
   * runtime's to tell is refused with `invalid_argument`. `turn`: of the invocation whose start or end is told.
   */
  emitEvent(event: EmittableEvent): void;
  emitEvent(event: EmittableEvent | TurnEvent, turn: Turn): void;
  /** C2: throws once cancelled or past the deadline, but not while recorded steps remain in this scope. */
  check(): void;
  /** J8: ends this task's journal and goes on in a new one that starts from `state`. */
  continueAsNew(state: JsonValue): Promise<never>;
}
