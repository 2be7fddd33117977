import type { ToolCall, ToolResult } from "../messages/tool-call.ts";
import type { ToolSpec } from "../messages/model.ts";
import type { Tool } from "./tool.ts";
import type { Transcript } from "../messages/transcript.ts";

/**
 * The tools of one agent. Inside a run, `deps.tools` is a journaled implementation: every call passes the checks, the
 * journal and the guardrails (J7), whichever architecture makes it.
 */
export interface ToolHost {
  /**
   * Returns the tools to send to the model, in a stable order, because the order is part of the provider's cache
   * key.
   *
   * A tool with `foundBy` is listed only if a search in `conversation` has found it. Found tools come after all
   * other tools, in the order in which they were found. If `conversation` is absent, all tools are listed, for
   * example for a planner's prompt.
   */
  list(conversation?: Transcript): readonly ToolSpec[];
  /** Returns the tool with this name, or `undefined` if there is none. */
  find(name: string): Tool | undefined;
  /** Calls one tool. */
  call(call: ToolCall): Promise<ToolResult>;
  /** Calls several tools, like `RunContext.tools`. Returns the results in the order of the calls. */
  callAll(
    calls: readonly ToolCall[],
    options?: {
      readonly only?: readonly string[];
      readonly onResult?: (result: ToolResult, index: number) => void;
    },
  ): Promise<readonly ToolResult[]>;
}
