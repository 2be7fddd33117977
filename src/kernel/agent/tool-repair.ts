import type { JsonValue } from "../base/json-value.ts";
import type { ToolSpec } from "../messages/model.ts";
import type { ToolCall } from "../messages/tool-call.ts";
import type { RunFacts } from "../run/run-facts.ts";

/** A tool call that cannot be executed as the model sent it. */
export interface MalformedCall {
  /** The call as the model sent it. Arguments that were not valid JSON are a text. */
  readonly call: ToolCall;
  /** What is wrong: the tool does not exist, or the arguments do not match its schema. */
  readonly problem: string;
  /** The tools of the agent. */
  readonly tools: readonly ToolSpec[];
  readonly facts: RunFacts;
}

/** The corrected parts of a call. An absent field stays as the model sent it. */
export interface RepairedCall {
  readonly toolName?: string;
  readonly input?: JsonValue;
}

/**
 * Corrects a malformed tool call. If the function returns `undefined`, the call stays as it is, and the model
 * receives the problem as an error result. The corrected call is validated and checked like any other. The result
 * is a journaled step. An error that the function throws is recorded as `hook_error` and leaves the call as it is
 * (S4).
 */
export type RepairToolCall = (
  malformed: MalformedCall,
) => RepairedCall | undefined | Promise<RepairedCall | undefined>;
