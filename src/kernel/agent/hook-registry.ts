import type { RunFacts } from "../run/run-facts.ts";
import type { ToolCall } from "../messages/tool-call.ts";
import type { ToolResult } from "../messages/tool-result.ts";

/** The answer of a `preTool` hook: a denial with its reason, or no opinion. A hook cannot approve a call. */
export type PreToolVerdict = { readonly deny: string } | undefined | void;

/**
 * The hooks of the tool gate (seed 003): `preTool` may deny a call, `postTool` observes its result. Not to be confused
 * with `HookManager`, whose callbacks only observe.
 *
 * The first denial wins. A `preTool` that throws denies the call. A `postTool` that throws is recorded and changes
 * nothing (S4).
 */
export interface HookRegistry {
  /** Called before a tool call passes the gate. */
  preTool(call: ToolCall, facts: RunFacts): PreToolVerdict | Promise<PreToolVerdict>;
  /** Called after a tool call has a result. */
  postTool(call: ToolCall, result: ToolResult, facts: RunFacts): void | Promise<void>;
}
