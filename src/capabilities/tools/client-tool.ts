import { nearestJson, type ToolContext, type ToolResult } from "../../kernel/index.ts";
import { errorResult, toolOutput } from "./tool-result.ts";

/**
 * Returns the body of a client-side tool: it waits durably until `RunHandle.toolResult` sends the result of the call. The
 * task's clock stops meanwhile. The value is the whole output, also if it has the form of a result, because the program
 * that sends it decides nothing else about the run.
 */
export function clientBody(
  toolName: string,
): (input: unknown, context: Pick<ToolContext, "ctx" | "callId">) => Promise<ToolResult> {
  return async (input, { ctx, callId }) => {
    const decision = await ctx.approval({
      kind: "client_tool",
      toolName,
      callId,
      input: nearestJson(input),
      reason: `${toolName} is executed by the client`,
    });
    if (decision.decision === "approved")
      return { output: toolOutput(decision.input ?? null), isError: false };
    if (decision.decision === "skipped") return errorResult("[skipped by the client]");
    return errorResult(decision.reason ?? "the client did not execute the call");
  };
}
