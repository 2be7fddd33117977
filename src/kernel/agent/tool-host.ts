import type { ToolCall } from "../messages/tool-call.ts";
import type { ToolSpec } from "../messages/model.ts";
import type { Tool } from "./tool.ts";
import type { ToolResult } from "../messages/tool-result.ts";

/**
 * The tools of one agent. Inside a run, `deps.tools` is a journaled implementation: every call passes the gate, the
 * journal and the guardrails (J7), whichever architecture makes it.
 */
export interface ToolHost {
  /**
   * Returns the tools that the model sees, in a stable order, because the order is part of the provider's cache key.
   */
  list(): readonly ToolSpec[];
  /** Returns the tool with this name, or `undefined` if there is none. */
  find(name: string): Tool | undefined;
  /** Calls one tool. */
  call(call: ToolCall): Promise<ToolResult>;
  /** Calls several tools, like `RunContext.tools`. Returns the results in the order of the calls. */
  callAll(
    calls: readonly ToolCall[],
    options?: { readonly onResult?: (result: ToolResult, index: number) => void },
  ): Promise<readonly ToolResult[]>;
}
