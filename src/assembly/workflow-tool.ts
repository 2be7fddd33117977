import { coerceInput } from "../capabilities/tools/coercion.ts";
import { toolOutput } from "../capabilities/tools/tool-result.ts";
import { markHandoff } from "../agents/team/handed-answers.ts";
import { describeWorkerFailure, stopIfBudgetSpent, toWorkerResult } from "../agents/team/run-worker.ts";
import { toolNameOf } from "../agents/team/sub-agents.ts";
import { refusal } from "../agents/base/own-tool.ts";
import {
  Fault,
  is,
  optionTable,
  spawnKinds,
  type HostedWorkflow,
  type JsonSchema,
  type JsonValue,
  type OptionKinds,
  type SpawnOptions,
  type Tool,
  type ToolContext,
  type ToolResult,
} from "../kernel/index.ts";

/** Options of `Workflow.asTool`. */
export interface WorkflowToolOptions extends Pick<SpawnOptions, "budget" | "priority"> {
  /** Name by which the model calls the tool. Default: the name of the workflow, with other characters replaced by `_`. */
  readonly name?: string;
  /** Text by which the model decides when to call the tool. Default: the description of the workflow. */
  readonly description?: string;
  /** Whether each call needs a person's approval. Default: `false`. */
  readonly needsApproval?: boolean;
}

const toolTable = optionTable({
  name: is.text(),
  description: is.text(),
  budget: spawnKinds.budget,
  priority: spawnKinds.priority,
  needsApproval: is.boolean({ default: false }),
} satisfies OptionKinds<WorkflowToolOptions>);

const anyObject: JsonSchema = Object.freeze({ type: "object" });

/** Tool names that every provider accepts. */
const validName = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/u;

/** Creates the tool of `Workflow.asTool`. */
export function workflowTool(workflow: HostedWorkflow<never>, options: WorkflowToolOptions): Tool {
  const owner = `asTool() of workflow ${workflow.name}`;
  const {
    name = toolNameOf(workflow),
    description = workflow.description,
    needsApproval,
    ...spawning
  } = toolTable.read(owner, options);
  if (!validName.test(name))
    throw new Fault(
      "invalid_argument",
      `invalid name ${JSON.stringify(name)} of ${owner}: expected 1 to 64 letters, digits, _ or -, starting with a letter or _`,
    );
  if (description === undefined)
    throw new Fault(
      "invalid_argument",
      `invalid description of ${owner}: a model needs one to decide when to call the tool; set description of the workflow or of asTool()`,
    );
  const { inputSchema = anyObject } = workflow;
  if (inputSchema["type"] !== "object")
    throw new Fault(
      "invalid_argument",
      `invalid input schema of ${owner}: the arguments of a tool are an object; use an object schema, such as z.object({ ... })`,
    );
  const tool: Tool = {
    name,
    description,
    inputSchema,
    risk: "safe",
    destructive: false,
    edits: false,
    concurrency: "parallel",
    timeoutMs: null,
    suspends: true,
    needsApproval: () => needsApproval,
    parse: (input) => acceptedBy(workflow, inputSchema, input),
    execute: (input, { ctx }) => call(workflow, input as JsonValue, spawning, ctx),
  };
  return markHandoff(tool, { name, agent: workflow });
}

/**
 * Checks the arguments and returns them as the model sent them, or coerced (T3). The schema of the workflow, with
 * its transforms, is applied only once, when the child task is created.
 */
async function acceptedBy(
  workflow: HostedWorkflow<never>,
  schema: JsonSchema,
  input: JsonValue,
): Promise<JsonValue> {
  try {
    await workflow.readInput?.(input, "parent");
    return input;
  } catch (error) {
    const meant = coerceInput(schema, input);
    if (meant === input) throw error;
    await workflow.readInput?.(meant, "parent");
    return meant;
  }
}

async function call(
  workflow: HostedWorkflow<never>,
  input: JsonValue,
  spawning: Pick<SpawnOptions, "budget" | "priority">,
  ctx: ToolContext["ctx"],
): Promise<ToolResult> {
  const spawned = await ctx.spawn(workflow.id, input, { onFull: "wait", ...spawning });
  if (spawned.kind === "refused") return refusal(describeWorkerFailure(workflow.name, spawned));
  const result = toWorkerResult(await ctx.join(spawned.handle));
  stopIfBudgetSpent({ ctx }, [result]);
  const metadata = { workflow: workflow.name, taskId: spawned.handle.taskId };
  if (result.kind === "answered") return { output: toolOutput(result.output), isError: false, metadata };
  return refusal(describeWorkerFailure(workflow.name, result), metadata);
}
