import { deepFreeze, type Tool, type ToolCall, type ToolResult } from "../../kernel/index.ts";
import type { ActiveStep } from "../task/active-step.ts";
import type { ToolCallOptions } from "./tool-body.ts";

/** The result for a call beyond the limit of its turn. */
export function pastLimit(limit: number): ToolResult {
  return failedResult(
    `not executed: only the first ${limit} tool calls of a turn are executed; make the call again in the next turn`,
  );
}

/** The result for a call of a tool that the agent does not have. */
export function unknownTool({ open, call, extra = [] }: ToolCallOptions): ToolResult {
  const sent = [...extra, ...(open.runner.agent.tools ?? [])].filter(({ foundBy }) => foundBy === undefined);
  const known = sent.map(({ name }) => name).join(", ");
  return failedResult(`there is no tool ${call.toolName}; there are: ${known || "none"}`);
}

/** The result for a call that the task, the turn or the tool itself does not allow. `undefined` if the call is allowed. */
export function findRefusal(
  options: ToolCallOptions,
  tool: Tool,
  only: readonly string[] | undefined,
): ToolResult | undefined {
  const { tools, inherits } = options.open.runner.task.record;
  const refusal = refusedBy(options, tools ?? undefined, "task") ?? refusedBy(options, only, "turn");
  return refusal ?? (inherits === undefined ? undefined : refusedInChild(options, tool, tools));
}

function refusedBy(
  { open, call: { callId, toolName } }: ToolCallOptions,
  allowed: readonly string[] | undefined,
  where: "task" | "turn",
): ToolResult | undefined {
  if (allowed === undefined || allowed.includes(toolName)) return undefined;
  return denied(
    open,
    { callId, toolName },
    `not one of this ${where}'s tools`,
    `${toolName} may not be called ${where === "task" ? "by this task; it" : "in this turn; you"} may call: ${allowed.join(", ") || "none"}`,
  );
}

/** Refuses a tool that a child which shares its parent's prompt may not call. */
function refusedInChild(
  { open, call }: ToolCallOptions,
  { inChildren }: Tool,
  listed: readonly string[] | null,
): ToolResult | undefined {
  const { toolName } = call;
  if (inChildren === undefined || (inChildren === "listed" && listed !== null)) return undefined;
  const reason = inChildren === "never" ? "only the parent may call it" : "the child's tools do not name it";
  return denied(open, call, reason, `${toolName} may not be called by this child: ${reason}`);
}

function denied(
  open: ActiveStep,
  { callId, toolName }: Pick<ToolCall, "callId" | "toolName">,
  reason: string,
  text: string,
): ToolResult {
  open.emit({ type: "permission_deny", data: { callId, toolName, by: "whitelist", reason } });
  open.isDenied = true;
  return failedResult(text);
}

export function failedResult(text: string): ToolResult {
  return deepFreeze({ output: { type: "text", text }, isError: true });
}
