import type { RunFacts } from "../run/run-facts.ts";
import type { ToolCall } from "../messages/tool-call.ts";
import type { ToolResult } from "../messages/tool-result.ts";

/** Deny, or say nothing: a hook's silence is not an approval. */
export type PreToolVerdict = { readonly deny: string } | undefined | void;

/**
 * The hooks of the tool gate (seed 003): `preTool` may deny, `postTool` observes. Not the `HookManager`, whose callbacks
 * can do neither.
 *
 * - The first deny wins. A `preTool` that throws denies; a `postTool` that throws is recorded and changes nothing (S4).
 */
export interface HookRegistry {
  preTool(call: ToolCall, facts: RunFacts): PreToolVerdict | Promise<PreToolVerdict>;
  postTool(call: ToolCall, result: ToolResult, facts: RunFacts): void | Promise<void>;
}
