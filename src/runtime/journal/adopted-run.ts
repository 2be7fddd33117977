import {
  defaultSpawnBudget,
  executionBudget,
  Fault,
  formatAgentId,
  spawnBudget,
  type EventData,
  type HostedAgent,
  type RunFlow,
  type RunRecord,
  type TaskRecord,
} from "../../kernel/index.ts";
import { budgetOf, seatsOf } from "./new-run.ts";
import { asksForTopUp } from "./task-record.ts";

/** L18: creates a placeholder for a workflow that this process does not host. */
export function namedWorkflow(name: string, version: string | undefined): HostedAgent {
  const run = async (): Promise<never> => {
    throw new Fault("internal", `workflow ${name} is known here only by its name`);
  };
  const id = formatAgentId({ name });
  return { id, runKind: "workflow", run, ...(version !== undefined && { version }) };
}

/** The parts that a worker adds to a run that was started by the name of its workflow. */
export interface Adoption {
  /** The root task, as a start with the workflow itself would have created it. */
  readonly task: TaskRecord;
  /** L17: the limits of the run. `undefined` if it has no limits. */
  readonly flow: RunFlow | undefined;
  readonly event: EventData["run_adopt"];
}

/**
 * L18: reads the input of a run that was started by name, and applies the budgets and the limits of its workflow.
 * If the workflow does not accept the input, throws its error.
 */
export async function adoptionOf(
  agent: HostedAgent,
  { runId, tenantId, userId }: RunRecord,
  { byName, ...named }: TaskRecord,
): Promise<Adoption> {
  if (agent.runKind !== "workflow")
    throw new Fault(
      "invalid_argument",
      `${runId} was started as a workflow, but ${agent.id} is an agent; start a run of it with submit(), or with POST /api/runs of a server that serves it`,
      { details: { runId, agentId: agent.id } },
    );
  const input = (await agent.readInput?.(named.input, "caller")) ?? named.input;
  const flow = agent.flowOf?.({ input, tenantId, userId });
  if (flow?.collect !== undefined)
    throw new Fault(
      "invalid_argument",
      `${runId} cannot be started by name: workflow ${agent.id} joins several starts to one run; start it with runtime.start() in a process that has the workflow`,
      { details: { runId, agentId: agent.id } },
    );
  const seats = seatsOf(agent, byName ?? {});
  const budget = executionBudget(budgetOf(agent, { budget: named.budget }));
  const supervision = {
    ...named.supervision,
    executionBudget: budget,
    spawnBudget: seats === undefined ? defaultSpawnBudget : spawnBudget(seats),
  };
  const { version, topUp } = agent;
  const own = version === undefined ? {} : { agentVersion: version };
  return {
    task: { ...named, ...own, ...asksForTopUp(agent), supervision, budget, input },
    flow,
    event: {
      supervision,
      ...(version !== undefined && { version }),
      ...(topUp !== undefined && { topUp }),
    },
  };
}
