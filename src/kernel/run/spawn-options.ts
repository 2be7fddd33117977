import type { AgentId, RunId, SessionId, TaskId } from "../base/identity.ts";
import type { JsonObject, JsonValue } from "../base/json-value.ts";
import type { ExecutionBudget } from "../limits/execution-budget.ts";
import type { RefusalReason, SeatHolder } from "../limits/headcount.ts";
import type { HistoryRetention } from "../limits/history-retention.ts";
import type { Priority } from "../limits/priority.ts";
import type { UserPart } from "../messages/content.ts";
import type { ThinkingLevel } from "../messages/model.ts";
import type { OnParentEnd, OnPause } from "./run-result.ts";

/** Options of `ctx.spawn`. */
export interface SpawnOptions {
  /** Priority of the child (H3). Default: `Priority.NORMAL`. */
  readonly priority?: Priority;
  /**
   * H4: what happens if no seat is free. `refuse` returns the outcome `refused`. `wait` creates the child as
   * `pending`; it starts when a seat becomes free. If no seat can ever become free, because all tasks with seats
   * wait for the child, the child is refused also with `wait`. Use `wait` in code that cannot react to a refusal.
   * Default: `refuse`.
   */
  readonly onFull?: "refuse" | "wait";
  /**
   * Budget of the child and its descendants, to which the limits of the parent apply too (B6). If absent, only the
   * parent's budget applies.
   */
  readonly budget?: Partial<ExecutionBudget>;
  /**
   * How long the child's history is kept. Default: `HistoryRetention.RUN`. A child of a task with `NONE` always has
   * `NONE`.
   */
  readonly retention?: HistoryRetention;
  /**
   * Role in which the parent spawns the child. For a child that keeps history, each role has a separate session per
   * user. If absent, all tasks of the child's agent in the run's session share one conversation per user.
   */
  readonly role?: string;
  /**
   * Whether the parent hands over the conversation to the child, so that the child's answer becomes the parent's
   * answer. If `AgentStream.text` and the result of the run contain the parent's messages, they then also contain
   * those of the child. The option is not part of the step's digest. Default: `false`.
   */
  readonly handsOver?: boolean;
  /** What happens to the child if the parent ends first. Default: `cancel`. */
  readonly onParentEnd?: OnParentEnd;
  /** H5: what the child does when it is preempted. Default: `suspend`. */
  readonly onPause?: OnPause;
  /**
   * Names of the tools that the child may call. The child's model still receives all tools, so that the provider's
   * prompt cache stays valid. If absent, the child may call all tools of its agent.
   */
  readonly tools?: readonly string[];
}

/** Options of `ctx.child`. */
export interface ChildRequest extends Pick<SpawnOptions, "priority" | "onFull" | "budget" | "onParentEnd"> {
  /** The message that is added after the parent's request: a text, or content parts with images and files. */
  readonly prompt: string | readonly UserPart[];
  /**
   * Names of the tools that the child may call. A call of another tool gets an error result; the model still
   * receives the parent's list of tools. If absent, the child may call all tools except those with
   * `Tool.inChildren`.
   */
  readonly tools?: readonly string[];
}

/** Options of `Runtime.spawnChild`. */
export interface SpawnChildOptions<Context = unknown> extends Pick<
  ChildRequest,
  "prompt" | "tools" | "budget" | "priority"
> {
  /** Session whose last closed invocation the child continues. */
  readonly sessionId: string;
  /** Data of the caller, as in `SubmitOptions`. Default: the metadata of the invocation that the child continues. */
  readonly metadata?: JsonObject;
  /** Live value for tools and hooks, as in `SubmitOptions`. */
  readonly context?: Context;
  /** Whether readers receive text while it is written (E2). Default: `false`. */
  readonly streaming?: boolean;
  /** Id of the run, as in `SubmitOptions`. */
  readonly runId?: string;
}

/** Identifies a spawned task. */
export interface TaskHandle {
  /** Id of the task. */
  readonly taskId: TaskId;
  /** Id of the agent that runs the task. */
  readonly agentId: AgentId;
}

/**
 * The outcome of `ctx.spawn`. H4: a refused seat is an outcome and not an error, so that a model can react to it;
 * `holders` lists the tasks with seats.
 */
export type SpawnOutcome =
  | { readonly kind: "spawned"; readonly handle: TaskHandle }
  | { readonly kind: "refused"; readonly reason: RefusalReason; readonly holders: readonly SeatHolder[] };

/**
 * The request with which a child that shares its parent's prompt starts: the last request of a task, or of an ended
 * run.
 */
export type InheritedRequest = RequestOfTask | RequestOfRun;

/** The last request of a task of the same run. `RunContext.child` stores it with the child. */
export interface RequestOfTask {
  /** Hash of the system prompt. */
  readonly instructions: string;
  /** Hash of the tool list. */
  readonly tools: string;
  /** Session that the parent's history comes from. `null` if the history comes from no session. */
  readonly sessionId: SessionId | null;
  /** Id of the last session entry of the history. `null` for a history that ends before the first entry. */
  readonly leafId: string | null;
  /** Hash of the messages that replace the history of the session path. Absent if the session path is the history. */
  readonly history?: string;
  /** Hashes of the lists of messages that come after the history, in order. */
  readonly said: readonly string[];
  /** Role whose model the request called. */
  readonly role: string;
  /** The model that the session sets. Absent if it sets no model. */
  readonly model?: { readonly provider: string; readonly modelId: string };
  /** The thinking level that the session sets. Absent if it sets no level. */
  readonly thinkingLevel?: ThinkingLevel;
  /** Limit of tool calls per turn. Absent if all calls are executed. */
  readonly maxToolCallsPerTurn?: number;
  /** Contents that no earlier record of the run contains, by hash. */
  readonly contents?: Readonly<Record<string, JsonValue>>;
}

/** The last request of the root of an ended run. The child reads it from that run's journal when it starts. */
export interface RequestOfRun {
  /** Id of the ended run. */
  readonly runId: RunId;
  /** Session of the ended run. */
  readonly sessionId: SessionId;
}
