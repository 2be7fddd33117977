import {
  checkOptions,
  eventDraft,
  Fault,
  JsonDigest,
  optionNames,
  stopsTask,
  type JsonObject,
  type RepairedCall,
  type RepairToolCall,
  type Tool,
  type ToolCall,
} from "../../kernel/index.ts";
import type { ActiveStep } from "../task/active-step.ts";
import type { StepIdentity } from "../journal/step-identity.ts";
import { repairAddress } from "../journal/wait-names.ts";
import type { GatedCallOptions } from "./gate-context.ts";

const repairedNames = optionNames<RepairedCall>({ toolName: true, input: true });

/** A call that may need a repair. */
export interface RepairableCall extends GatedCallOptions {
  /** The tool that the call names. `undefined` if there is none. */
  readonly tool: Tool | undefined;
  /** All tools of the agent. */
  readonly tools: readonly Tool[];
}

/**
 * Returns the call, corrected by the agent's `repairToolCall` if it is malformed. The correction is recorded, so that the
 * records of the gate and of the approval stay valid when another process takes the call over.
 */
export async function repairedCall(options: RepairableCall, repair: RepairToolCall): Promise<ToolCall> {
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

async function problemOf({ tool, call }: RepairableCall): Promise<string | undefined> {
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
  { open, call, tools }: RepairableCall,
  repair: RepairToolCall,
  problem: string,
): Promise<RepairedCall> {
  try {
    const specs = tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
    const repaired = await repair({ call, problem, tools: specs, facts: open.runner.facts });
    if (repaired === undefined) return {};
    checkOptions("the result of repairToolCall", repaired, repairedNames);
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
