import type { AgentId, RunId, SessionId } from "../base/identity.ts";
import type { Failure } from "../base/fault.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { AssistantMessage, ToolMessage, UserMessage } from "../messages/chat-message.ts";
import type { FilePart } from "../messages/content.ts";
import type { FinishReason } from "../messages/stop-reason.ts";
import type { Usage } from "../messages/usage.ts";
import type { PendingApproval } from "./approval.ts";
import type { RunStep, RunToolCall } from "./run-step.ts";

/**
 * How a run ended. A closed list, so a `switch` over it can be exhaustive. Stores keep the index of a status in this
 * list, so a new status is added at its end.
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
  /** Charged cost. `null` if a price is unknown. */
  readonly costUsd: number | null;
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
  /** The answer. If the run did not complete, what there is of an answer. */
  readonly output: Output;
  /** How the run ended. */
  readonly status: RunStatus;
  /**
   * Why the model stopped that gave the final answer. `null` if the root agent made no model call.
   */
  readonly finishReason: FinishReason | null;
  /**
   * The messages that the run added to the conversation, without its input: those of the root agent and of the agents to
   * which it handed the conversation over, with the results of their tool calls, and the user messages that were added
   * on the way, such as steering. Computed when it is first read, like `steps`, `toolCalls`, `reasoning` and `files`.
   */
  readonly messages: readonly (UserMessage | AssistantMessage | ToolMessage)[];
  /** The model calls of the agents of `messages`, in order, with their tool calls and usage. */
  readonly steps: readonly RunStep[];
  /** The tool calls of the agents of `messages`, in order, with their results. */
  readonly toolCalls: readonly RunToolCall[];
  /** The reasoning of the turns of `messages`, separated by empty lines. Empty if the providers returned none. */
  readonly reasoning: string;
  /** The files that the models of `messages` made. */
  readonly files: readonly FilePart[];
  /** Questions that wait for a person. Always empty here: `WaitingResult` has the questions of a run that waits. */
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
  /** Id of the session. Pass it to the next invocation to continue the conversation. */
  readonly sessionId: SessionId;
  /** Id of the root agent. */
  readonly agentId: AgentId;
  /** The fault that ended the run. `null` if no fault ended it. */
  readonly error: Failure | null;
  /** Data that the agent reported with `ctx.report`. */
  readonly metadata: { readonly [key: string]: JsonValue };
}
