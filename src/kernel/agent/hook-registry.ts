import type { RunFacts } from "../run/run-facts.ts";
import type { ToolCall } from "./tool-host.ts";
import type { ToolResult } from "./tool.ts";

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
