import type { GuardrailDecision, OnGuardrailError } from "../run/approval.ts";
import type { AgentId, TaskId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { Model } from "../messages/model.ts";
import type { RunContext } from "./run-context.ts";
import type { RunFacts } from "../run/run-facts.ts";
import type { SettledCall } from "./call-pipeline.ts";
import type { ToolCall, ToolResult } from "../messages/tool-call.ts";
import type { Tool } from "./tool.ts";

type Verdict = GuardrailDecision | Promise<GuardrailDecision>;

/** The invocation that a guardrail checks. */
export interface GuardrailContext<Context = unknown> {
  /** Id of the agent. */
  readonly agentId: AgentId;
  /** Id of the task. */
  readonly taskId: TaskId;
  /** User, session, run and context of the task. */
  readonly facts: RunFacts<Context>;
  /**
   * Run context for steps of the guardrail, for example a model call that judges the text. The runtime reserves,
   * charges and journals such a call.
   */
  readonly ctx: RunContext;
}

/** The tool call that a guardrail checks. */
export interface GuardedCall<Context = unknown> extends GuardrailContext<Context> {
  /** The tool that the model called. */
  readonly tool: Tool;
  /** Arguments as the model sent them. `call.input` holds the parsed arguments, which are executed. */
  readonly sent: JsonValue;
  /**
   * The settled calls of this invocation, oldest first, including calls from the journal. A decision based on this list
   * is the same after a restart; a counter in memory would start again at zero.
   */
  readonly history: readonly SettledCall[];
}

/**
 * Checks the input, tool calls, tool results or output of an agent and may block them. A guardrail implements a method
 * for each stage that it checks. One instance serves all runs of its agent concurrently, so its decisions must depend
 * on its arguments only.
 *
 * @example
 * ```ts
 * import { Agent, type Guardrail } from "reeve";
 * import { scriptedModel } from "reeve/testing";
 *
 * const noDeletes: Guardrail = {
 *   name: "no-deletes",
 *   beforeCall: ({ toolName }) =>
 *     toolName.startsWith("delete_")
 *       ? { decision: "block", reason: "Deleting is not allowed." }
 *       : { decision: "allow" },
 * };
 *
 * const agent = new Agent({ name: "clerk", model: scriptedModel(["Done."]), guardrails: [noDeletes] });
 * ```
 */
export interface Guardrail<Context = unknown> {
  /** Name of the guardrail, as it appears in `guardrail_decision`. */
  readonly name: string;
  /**
   * Models that the guardrail calls through `ctx.llm`, by role. The agent adds these roles to its own models. The value
   * `"main"` means the agent's main model, called under the guardrail's role, so that middleware for the agent's
   * answers does not apply to verdicts.
   */
  readonly models?: Readonly<Record<string, Model | "main">>;
  /**
   * S4: the verdict that replaces an error of the guardrail or a decision that cannot be read. Default: `"block"`
   * for the input and for tool calls, `"allow"` for tool results and the output.
   */
  readonly onError?: OnGuardrailError;
  /** Called at the start of every invocation, and again when another worker takes over the run. */
  onTurnStart?(facts: RunFacts<Context>): void;
  /** Checks the input of an invocation before the first model call. */
  onInput?(input: JsonValue, context: GuardrailContext<Context>): Verdict;
  /** Checks a tool call before it is executed. `call.input` is the parsed arguments in JSON form. */
  beforeCall?(call: ToolCall, context: GuardedCall<Context>): Verdict;
  /** Checks the result of an executed tool call before the model receives it. Called for failed calls as well. */
  afterCall?(call: ToolCall, result: ToolResult, context: GuardedCall<Context>): Verdict;
  /** Checks the final output of an invocation. */
  onOutput?(output: string, context: GuardrailContext<Context>): Verdict;
}
