import type { ToolCall } from "../messages/tool-call.ts";
import type { ToolSpec } from "../messages/model.ts";
import type { Tool } from "./tool.ts";
import type { ToolResult } from "../messages/tool-result.ts";

/**
 * The tools of one agent. Inside a run, `deps.tools` is the journaled front of it: calls go through the gate, the journal
 * and the guardrails (J7), whatever architecture makes them.
 */
export interface ToolHost {
  /** What the model is told, in a stable order: the order is part of the provider's cache key. */
  list(): readonly ToolSpec[];
  find(name: string): Tool | undefined;
  call(call: ToolCall): Promise<ToolResult>;
  /** As `RunContext.tools`: side by side, as their concurrency allows; results in the order of the calls. */
  callAll(
    calls: readonly ToolCall[],
    options?: { readonly onResult?: (result: ToolResult, index: number) => void },
  ): Promise<readonly ToolResult[]>;
}
