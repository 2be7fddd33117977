import type { GuardrailDecision } from "../run/guardrail-decision.ts";
import type { AgentId, TaskId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { Model } from "../messages/model.ts";
import type { RunContext } from "./run-context.ts";
import type { RunFacts } from "../run/run-facts.ts";
import type { SettledCall } from "./tool-gate.ts";
import type { ToolCall } from "../messages/tool-call.ts";
import type { Tool } from "./tool.ts";
import type { ToolResult } from "../messages/tool-result.ts";

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
