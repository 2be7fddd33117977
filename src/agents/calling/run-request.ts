import {
  Fault,
  type Architecture,
  type HostedAgent,
  type JsonSchema,
  type JsonValue,
  type SubmitOptions,
  type SchemaCheck,
} from "../../kernel/index.ts";
import { checkRootInput, readInput, requestOf, type AgentInput } from "../base/agent-input.ts";
import { acceptForm, acceptSchema } from "../base/answer-format.ts";
import { checkInputKeys, refusedInput } from "../base/input-problem.ts";
import type { SubmitRunOptions } from "./invoke-options.ts";

export interface RequestedAgent extends HostedAgent {
  readonly name: string;
  readonly architecture: Architecture;
}

/** The arguments that an agent passes to `Runtime.submit`. */
export interface RunRequest {
  readonly input: JsonValue;
  readonly options: SubmitOptions;
}

/** Creates the request for a run of the agent. Throws for an input or options that the agent cannot use. */
export async function runRequest(
  agent: RequestedAgent,
  check: SchemaCheck,
  given: AgentInput,
  requested: Omit<SubmitRunOptions<JsonSchema>, "runtime">,
): Promise<RunRequest> {
  const { timeoutMs, output, compactionInstructions, ...options } = requested;
  if (options.settings !== undefined) requireOwnModel(agent);
  const input = (await agent.readInput?.(given as JsonValue, "caller")) ?? given;
  await checkInput(agent, check, input as AgentInput, requested);
  // Callers without types may pass `budget: null` for no budget.
  const budget = options.budget ?? {};
  const deadlineMs =
    timeoutMs == null ? budget.deadlineMs : Math.min(timeoutMs, budget.deadlineMs ?? Infinity);
  const more = {
    ...(output !== undefined && { output }),
    ...(compactionInstructions !== undefined && { compactionInstructions }),
  };
  return {
    input: (Object.keys(more).length === 0
      ? input
      : { ...requestOf(input as AgentInput), ...more }) as JsonValue,
    options: { ...options, budget: deadlineMs == null ? budget : { ...budget, deadlineMs } },
  };
}

async function checkInput(
  agent: RequestedAgent,
  check: SchemaCheck,
  input: AgentInput,
  { output, sessionId }: Pick<SubmitRunOptions<JsonSchema>, "output" | "sessionId">,
): Promise<void> {
  const { name, architecture } = agent;
  const read = readInput(input as JsonValue);
  checkInputKeys(name, input);
  if (read === undefined) throw refusedInput(name, input);
  checkRootInput(name, read, architecture);
  if (read.message === undefined && sessionId === undefined)
    throw new Fault(
      "invalid_argument",
      `agent ${name} cannot continue without a session: sessionId is missing; use continue(sessionId)`,
    );
  const schema = output ?? read.output;
  if (schema === undefined) return;
  acceptForm(agent, architecture);
  await acceptSchema(check, schema);
}

/**
 * Throws for settings that would have no effect, because they apply only to model calls of this agent and not of
 * its sub-agents.
 */
function requireOwnModel({ name, models = {} }: RequestedAgent): void {
  if (Object.keys(models).length > 0) return;
  throw new Fault(
    "invalid_argument",
    `invalid settings of a run of agent ${name}: the agent calls no model itself; use withSettings() for the models of its sub-agents`,
  );
}
