import { describeWorkerFailure, toWorkerResult } from "../agents/team/run-worker.ts";
import {
  describeValue,
  Fault,
  is,
  jsonText,
  optionTable,
  readProperty,
  reviveFault,
  spawnKinds,
  type CallAgentOptions,
  type HostedAgent,
  type Infer,
  type JsonObject,
  type JsonValue,
  type OptionKinds,
  type RunContext,
  type Schema,
  type UserPart,
} from "../kernel/index.ts";
import { outputReader } from "./answer-shape.ts";

const callTable = optionTable({
  budget: spawnKinds.budget,
  priority: spawnKinds.priority,
  role: spawnKinds.role,
  output: is.any,
} satisfies OptionKinds<CallAgentOptions>);

/** Implements `ctx.agent`: runs an agent as a child task and returns its answer. */
export async function callAgent<const Output extends Schema = never>(
  ctx: RunContext,
  agent: HostedAgent,
  input: string | readonly UserPart[],
  options: CallAgentOptions<Output> = {},
): Promise<[Output] extends [never] ? string : Infer<Output>> {
  if (typeof readProperty(agent, "id") !== "string")
    throw new Fault(
      "invalid_argument",
      `invalid agent ${describeValue(agent)} of ctx.agent(): expected an agent; use new Agent({ ... }) and list it in the option agents of the workflow`,
    );
  const { output, ...spawning } = callTable.read("ctx.agent()", options);
  const reader = output === undefined ? undefined : outputReader(output);
  const asked = reader === undefined ? input : { prompt: input, output: reader.jsonSchema };
  const spawned = await ctx.spawn(agent.id, asked as JsonValue, { onFull: "wait", ...spawning });
  const result = spawned.kind === "refused" ? spawned : toWorkerResult(await ctx.join(spawned.handle));
  if (result.kind !== "answered") {
    ctx.check();
    const failure = result.kind === "stopped" ? result.outcome.failure : null;
    if (failure?.code === "budget_exhausted") throw reviveFault(failure);
    throw new Fault("child_failed", describeWorkerFailure(agent.id, result), {
      details: {
        agent: agent.id,
        status: result.kind === "stopped" ? result.status : "refused",
        ...(failure !== null && { failure: failure as unknown as JsonObject }),
      },
    });
  }
  if (reader === undefined) return jsonText(result.output) as never;
  return Promise.resolve(reader.parse(result.output)) as never;
}
