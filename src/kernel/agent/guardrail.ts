import type { AgentId, TaskId } from "../base/identity.ts";
import type { JsonValue } from "../base/json.ts";
import type { Model } from "../messages/model.ts";
import type { RunContext } from "./run-context.ts";
import type { RunFacts } from "../run/run-facts.ts";
import type { SettledCall } from "./tool-gate.ts";
import type { ToolCall } from "./tool-host.ts";
import type { Tool, ToolResult } from "./tool.ts";

export type GuardrailStage = "input" | "tool_call" | "tool_result" | "output";

/**
 * What a guardrail decides. A value: a guardrail that throws is recorded and has decided nothing (S4).
 *
 * | stage | warn | block | halt |
 * |---|---|---|---|
 * | input | noted | refused: the invocation ends as `guardrail_tripped`, nothing is paid | the same |
 * | tool_call | noted | not executed; the model gets an error result with the reason | the run stops |
 * | tool_result | the reason is added to the result | **withheld**: the call happened and stays recorded, the model gets an error result with the reason in its place (trap O6) | the run stops |
 * | output | noted | withheld: `output` is the reason, status `guardrail_tripped` | the same |
 */
export type GuardrailDecision =
  | { readonly decision: "allow" }
  | { readonly decision: "warn" | "block" | "halt"; readonly reason: string };

type Verdict = GuardrailDecision | Promise<GuardrailDecision>;

/** Where a guardrail stands when it looks. */
export interface GuardrailContext {
  readonly agentId: AgentId;
  readonly taskId: TaskId;
  readonly facts: RunFacts;
  /** For steps of its own. A judge's model call is reserved, paid and journaled like any other. */
  readonly ctx: RunContext;
}

/** The same at a call of a tool. */
export interface GuardedCall extends GuardrailContext {
  readonly tool: Tool;
  /**
   * The invocation's calls that have settled, oldest first, those from the journal as well: what is decided from them is the same
   * after a restart, which a count of one's own would not be.
   */
  readonly history: readonly SettledCall[];
}

/**
 * A watcher with a say, at the stages it has a method for. One instance serves every run of its agent, side by side: what it decides
 * depends on what it is given.
 */
export interface Guardrail {
  readonly name: string;
  /**
   * Models it calls through `ctx.llm`, by role; its agent takes them in. `main` stands for the agent's own, asked in a role of the
   * guardrail's: what layers do to the agent's answers is not for its verdicts.
   */
  readonly models?: Readonly<Record<string, Model | "main">>;
  /** At the start of every invocation (the seed's "turn"), and again when a run is taken over. */
  onTurnStart?(facts: RunFacts): void;
  onInput?(input: JsonValue, context: GuardrailContext): Verdict;
  beforeCall?(call: ToolCall, context: GuardedCall): Verdict;
  /** Of every call that was made, failed ones as well. */
  afterCall?(call: ToolCall, result: ToolResult, context: GuardedCall): Verdict;
  onOutput?(output: string, context: GuardrailContext): Verdict;
}
