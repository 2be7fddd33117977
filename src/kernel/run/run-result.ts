import type { Failure } from "../base/fault.ts";
import type { AgentId, RunId, SessionId } from "../base/identity.ts";
import type { JsonObject, JsonValue } from "../base/json-value.ts";
import type { AssistantMessage, ToolMessage, UserMessage } from "../messages/chat-message.ts";
import type { FilePart } from "../messages/content.ts";
import type { FinishReason } from "../messages/llm-reply.ts";
import type { Usage } from "../messages/usage.ts";
import type { PendingApproval } from "./approval.ts";
import type { RunStep, RunToolCall } from "./step.ts";
import type { FolderWork } from "./task-folder.ts";

/**
 * How a run ended. The list is complete, so that a `switch` over it can be exhaustive. Stores save the index of a
 * status in this list, so that a new status must be added at the end.
 */
export const runStatuses = Object.freeze([
  /** The agent answered. */
  "completed",
  /**
   * The loop of the root agent reached its `maxTurns` option. Exceeding `budget.maxTurns` is `budget_exhausted`
   * instead.
   */
  "max_turns",
  /** A budget of the run has no tokens, money or turns left for the next model call (B5). */
  "budget_exhausted",
  /** The deadline of the run passed. */
  "deadline_exceeded",
  /** A guardrail or middleware stopped the run. */
  "guardrail_tripped",
  /** A caller cancelled the run. */
  "cancelled",
  /** The run is paused. */
  "paused",
  /** A fault or a dead end of the architecture ended the run. */
  "failed",
  /** The answer was cut at the model's output limit. An answer that the budget cut is `budget_exhausted` instead. */
  "max_output",
] as const);

/** How a run ended. */
export type RunStatus = (typeof runStatuses)[number];

/** B3: charge for calls that ended without reported usage. */
export interface UnreportedSpend {
  /** Charged tokens. */
  readonly tokens: number;
  /** The amount that was charged. The real cost cannot exceed it. `null` if a price is unknown. */
  readonly costUsd: number | null;
  /**
   * The estimated cost of the calls, from the average of the reported calls of the run. `null` if no call of the
   * run was reported, or a price is unknown. Absent if there are no unreported calls.
   */
  readonly likelyUsd?: number | null;
}

/**
 * The result of a run. `output` holds the answer, or the partial answer if the run did not complete.
 *
 * @example
 * ```ts
 * import { Agent } from "reeve";
 * import { scriptedModel } from "reeve/testing";
 *
 * const agent = new Agent({ name: "clerk", model: scriptedModel(["42"]), maxTurns: 5 });
 * const result = await agent.invoke("What is six times seven?");
 *
 * if (result.status === "completed") console.log(result.output, result.costUsd);
 * else if (result.status === "max_turns") console.log(`stopped after ${result.turns} turns`);
 * else console.error(result.status, result.error?.message);
 * ```
 */
export interface RunResult<Output = string> {
  /** The answer. If the run did not complete, the part of the answer that exists. */
  readonly output: Output;
  /** How the run ended. */
  readonly status: RunStatus;
  /** Why the model stopped in the call that gave the final answer. `null` if the root agent made no model call. */
  readonly finishReason: FinishReason | null;
  /**
   * The messages that the run added to the conversation, without its input. They are the messages of the root agent
   * and of the agents to which it handed over the conversation, the results of their tool calls, and user messages
   * that were added during the run, such as steering. Computed at the first access, like `steps`, `toolCalls`,
   * `reasoning` and `files`.
   */
  readonly messages: readonly (UserMessage | AssistantMessage | ToolMessage)[];
  /** The model calls of the agents whose messages are in `messages`, in order, with their tool calls and usage. */
  readonly steps: readonly RunStep[];
  /** The tool calls of the agents whose messages are in `messages`, in order, with their results. */
  readonly toolCalls: readonly RunToolCall[];
  /** The reasoning of the turns in `messages`, separated by empty lines. Empty if the providers returned none. */
  readonly reasoning: string;
  /** The files that the models created in `messages`. */
  readonly files: readonly FilePart[];
  /**
   * Questions that wait for a person. Always empty here, because a run with a result no longer waits: see
   * `WaitingResult`.
   */
  readonly pendingApprovals: readonly PendingApproval[];
  /**
   * Why the run did not complete: the reason of the architecture, or the message of the fault. `null` for a completed
   * run.
   */
  readonly interruptionReason: string | null;
  /** Usage of all tasks of the run, as providers reported it. */
  readonly usage: Usage;
  /** Total charge, including `unreported`. `null` if a price is unknown. */
  readonly costUsd: number | null;
  /** B3: charge for calls that ended without reported usage. */
  readonly unreported: UnreportedSpend;
  /** Number of turns of all tasks of the run. Compare it with `budget.maxTurns`, not with an agent's `maxTurns`. */
  readonly turns: number;
  /** Id of the run. */
  readonly runId: RunId;
  /**
   * Id of the session. Pass it to the next invocation to continue the conversation. The result of a workflow has no such
   * field (`WorkflowResult`).
   */
  readonly sessionId: SessionId;
  /** Id of the root agent. */
  readonly agentId: AgentId;
  /** The fault that ended the run. `null` if no fault ended it. */
  readonly error: Failure | null;
  /** Data that the agent reported with `ctx.report`. */
  readonly metadata: { readonly [key: string]: JsonValue };
}

/**
 * Returns a copy of a run's result with some fields changed. Fields that are computed at the first access, such as
 * `messages`, are not computed by the copy.
 */
export function changedResult<Result extends object, Changes extends object>(
  result: Result,
  changes: Changes,
): Omit<Result, keyof Changes> & Changes {
  const fields: PropertyDescriptorMap = Object.getOwnPropertyDescriptors(result);
  for (const [name, value] of Object.entries(changes))
    fields[name] = { value, enumerable: true, writable: true, configurable: true };
  return Object.defineProperties({}, fields) as Omit<Result, keyof Changes> & Changes;
}

/** How a task ended. */
export interface TaskOutcome {
  /** Status of the ended task. */
  readonly status: "completed" | "failed" | "cancelled" | "paused";
  /** The output, or the partial output if the task did not complete. */
  readonly output: JsonValue;
  /** The fault that ended the task. `null` if no fault ended it. */
  readonly failure: Failure | null;
  /** Present if the agent itself ended early, for example at `maxTurns`. */
  readonly interruption?: Interruption;
  /** Why the model stopped in the call that gave the output. Absent if the task made no model call. */
  readonly finishReason?: FinishReason;
  /** Data that the task reported with `ctx.report`. */
  readonly metadata?: JsonObject;
  /**
   * The work that the task left in its own folder. Absent if it had no folder, or ended before it could record its
   * work.
   */
  readonly work?: FolderWork;
}

/** An end before completion that the agent itself decided. */
export interface Interruption {
  /**
   * Status of the end. `max_turns` means that the agent's loop reached the agent's `maxTurns` option. The budget's
   * `maxTurns`, which counts the model calls of the task and its descendants, ends a task with the fault
   * `budget_exhausted` instead. `max_output` means that the answer was cut at the model's output limit.
   */
  readonly status: Extract<RunStatus, "max_turns" | "max_output" | "guardrail_tripped" | "failed">;
  /** Reason in the words of the architecture. */
  readonly reason: string;
}

/**
 * What happens to a child when its parent ends first: the parent waits for the child, cancels it, or lets it continue
 * alone (`detach`).
 */
export type OnParentEnd = "wait" | "cancel" | "detach";

/**
 * H5: what a preempted task does: `suspend` waits until it is recalled, `return-partial` ends with its partial output.
 */
export type OnPause = "suspend" | "return-partial";

/**
 * B5: what happens when a call does not fit into the budget of a task. `end`: the call fails with
 * `budget_exhausted`. `ask`: a person is asked for a top-up. Until then the task that made the call is paused and
 * has no seat (H1, H5). If a spending cap is exhausted (B7) or a bill exceeds its bound (B1), the call fails in
 * both cases.
 */
export type OnBudget = "ask" | "end";

/**
 * The outcome of `ctx.ask`. `timed_out` means that the target did not answer in time, although it has not failed.
 * `partial` is the partial output of a paused target; it is `null` after a timeout.
 */
export type AskOutcome =
  | { readonly kind: "replied"; readonly body: JsonValue }
  | { readonly kind: "timed_out" | "target_paused"; readonly partial: JsonValue }
  | { readonly kind: "target_failed" | "target_cancelled"; readonly failure: Failure | null };

/**
 * Returns the run status for a task's outcome. The outcome `null`, which means that the task has not ended, gives
 * `paused`.
 */
export function outcomeStatus(
  outcome: (Pick<TaskOutcome, "status" | "interruption"> & Partial<Pick<TaskOutcome, "failure">>) | null,
): RunStatus {
  if (outcome === null || outcome.status === "paused") return "paused";
  if (outcome.status === "completed") return outcome.interruption?.status ?? "completed";
  const { failure } = outcome;
  if (failure?.code === "budget_exhausted") return "budget_exhausted";
  if (failure?.code === "guardrail_tripped") return "guardrail_tripped";
  if (failure?.code === "cancelled")
    return failure.details?.["status"] === "deadline_exceeded" ? "deadline_exceeded" : "cancelled";
  return "failed";
}
