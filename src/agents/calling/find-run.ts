import { Fault, type HostedAgent, type RunHandle, type Runtime } from "../../kernel/index.ts";

/**
 * Returns a run of the agent and registers the agent, because a worker without it would never finish the run. Throws
 * `not_found`, and `invalid_argument` for a run of another agent. `isDefault` tells whether the caller named no runtime.
 */
export async function findRunOf(
  agent: HostedAgent,
  runId: string,
  runtime: Runtime,
  isDefault: boolean,
): Promise<RunHandle> {
  const run = await runtime.find(runId);
  if (run === undefined)
    throw new Fault(
      "not_found",
      `run ${runId} not found in this runtime's store${isDefault ? ", which is in memory: pass the runtime on which the run was started, as { runtime }" : ""}`,
    );
  if (run.agentId !== agent.id)
    throw new Fault(
      "invalid_argument",
      `${runId} is a run of agent ${run.agentId}, not of ${agent.id}; call the method on that agent`,
    );
  runtime.register(agent);
  return run;
}
