import {
  deepFreeze,
  eventDraft,
  Fault,
  JsonDigest,
  is,
  optionTable,
  type OptionKinds,
  stopsTask,
  type Denial,
  type HostedAgent,
  type JsonObject,
  type RepairedCall,
  type RepairToolCall,
  type Tool,
  type ToolCall,
  type ToolResult,
} from "../../kernel/index.ts";
import type { ActiveStep } from "../task/active-step.ts";
import type { StepIdentity } from "../journal/step-identity.ts";
import { repairAddress } from "../journal/wait-names.ts";
import type { ToolCallOptions } from "./gate-context.ts";

// The first entries of a tool call, in their order. They see the call as the model sent it.

/** Returns the result for a call that exceeds the limit of calls in its turn. */
export function callLimit(limit: number): ToolResult {
  return failedResult(
    `not executed: only the first ${limit} tool calls of a turn are executed; make the call again in the next turn`,
  );
}

const repairedTable = optionTable({ toolName: is.any, input: is.any } satisfies OptionKinds<RepairedCall>);

/**
 * Returns the call, corrected by the agent's `repairToolCall` if it is malformed. The correction is recorded, so
 * that the records of the checks and of the approval stay valid when another process takes over the call.
 */
export async function repairedCall(options: ToolCallOptions, repair: RepairToolCall): Promise<ToolCall> {
  const { open, call, from } = options;
  const problem = await problemOf(options);
  if (problem === undefined) return call;
  const step: StepIdentity = {
    address: repairAddress(open.address),
    kind: "step",
    name: `repair ${call.toolName}`,
    digest: new JsonDigest(call.input),
  };
  const repaired = await from.steps.runInScope<RepairedCall>(step, (repairing) =>
    askForRepair(repairing, options, repair, problem),
  );
  return { ...call, ...repaired };
}

async function problemOf({ open, call, extra }: ToolCallOptions): Promise<string | undefined> {
  const tool = findTool(open.runner.agent, call.toolName, extra);
  if (tool === undefined) return `there is no tool ${call.toolName}`;
  try {
    await tool.parse(call.input);
    return undefined;
  } catch (error) {
    return Fault.from(error).message;
  }
}

async function askForRepair(
  repairing: ActiveStep,
  { open, call, extra = [] }: ToolCallOptions,
  repair: RepairToolCall,
  problem: string,
): Promise<RepairedCall> {
  try {
    const tools = [...extra, ...(open.runner.agent.tools ?? [])];
    const specs = tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
    const repaired = await repair({ call, problem, tools: specs, facts: open.runner.facts });
    if (repaired === undefined) return {};
    repairedTable.read("the result of repairToolCall", repaired);
    const data: JsonObject = {
      callId: call.callId,
      toolName: call.toolName,
      problem,
      repaired: { ...repaired },
    };
    repairing.emit(
      eventDraft("architecture_event", { architecture: "agent", name: "agent.tool_call_repaired", data }),
    );
    return repaired;
  } catch (error) {
    if (stopsTask(error)) throw error;
    repairing.emit({
      type: "hook_error",
      data: { hook: "repairToolCall", failure: Fault.from(error).toJSON() },
    });
    return {};
  }
}

export function findTool(
  { tools }: Pick<HostedAgent, "tools">,
  name: string,
  extra?: readonly Tool[],
): Tool | undefined {
  if (extra !== undefined) for (const tool of extra) if (tool.name === name) return tool;
  if (tools !== undefined) for (const tool of tools) if (tool.name === name) return tool;
  return undefined;
}

/** Returns the result for a call of a tool that the agent does not have. */
export function unknownTool({ open, call, extra = [] }: ToolCallOptions): ToolResult {
  const sent = [...extra, ...(open.runner.agent.tools ?? [])].filter(({ foundBy }) => foundBy === undefined);
  const known = sent.map(({ name }) => name).join(", ");
  return failedResult(`there is no tool ${call.toolName}; there are: ${known || "none"}`);
}

/**
 * Returns a denial for a call that the task, the turn or the tool itself does not allow. `only` are the tools of
 * the turn.
 */
export function narrowedTools(
  { open, call: { toolName }, extra }: ToolCallOptions,
  tool: Tool,
  only: readonly string[] | undefined,
): Denial | undefined {
  const { inChildren } = tool;
  const { tools, inherits, changes } = open.runner.task.record;
  // A caller chooses from the tools of the agent, not from those that the architecture adds.
  if (changes?.tools !== undefined && !changes.tools.includes(toolName) && extra?.includes(tool) !== true)
    return denied(
      "not one of this run's tools",
      `${toolName} may not be called in this run; you`,
      changes.tools,
    );
  if (tools !== null && !tools.includes(toolName))
    return denied("not one of this task's tools", `${toolName} may not be called by this task; it`, tools);
  if (only !== undefined && !only.includes(toolName))
    return denied("not one of this turn's tools", `${toolName} may not be called in this turn; you`, only);
  if (inherits === undefined || inChildren === undefined) return undefined;
  if (inChildren === "listed" && tools !== null) return undefined;
  // A child that shares its parent's prompt sees the tool, but may not call it.
  const reason = inChildren === "never" ? "only the parent may call it" : "the child's tools do not name it";
  return denied(reason, `${toolName} may not be called by this child: ${reason}`);
}

function denied(reason: string, text: string, allowed?: readonly string[]): Denial {
  const may = allowed === undefined ? "" : ` may call: ${allowed.join(", ") || "none"}`;
  return { decision: "deny", by: "whitelist", reason, text: `${text}${may}` };
}

export function failedResult(text: string): ToolResult {
  return deepFreeze({ output: { type: "text", text }, isError: true });
}
