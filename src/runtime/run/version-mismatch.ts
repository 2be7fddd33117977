import { Fault, type AgentId, type RunRecord } from "../../kernel/index.ts";
import type { RunState } from "../journal/run-state.ts";
import type { WorkerContext } from "../process/worker-context.ts";

/**
 * J9: returns the fault for the first agent of the run that this worker hosts in another version. Compares the root's agent and the
 * agents of all live tasks.
 */
export function findVersionMismatch(
  { agents }: WorkerContext,
  { runId, agentId: rootAgent, agentVersion: rootVersion }: RunRecord,
  state: RunState,
): Fault | undefined {
  const compare = (agentId: AgentId, started: string | null): Fault | undefined => {
    const here = agents.get(agentId)?.version ?? null;
    if (here === started) return undefined;
    return new Fault(
      "version_mismatch",
      `run ${runId} was started by version ${started ?? "none"} of agent ${agentId}, and this worker hosts version ${here ?? "none"}; host the same version, or set versionPolicy to "resume"`,
      { details: { agentId, started, here } },
    );
  };
  const rootMismatch = compare(rootAgent, rootVersion);
  if (rootMismatch !== undefined) return rootMismatch;
  for (const { record, outcome } of state.tasks.values()) {
    if (record.parentId === null || outcome !== null) continue;
    const mismatch = compare(record.agentId, record.agentVersion ?? null);
    if (mismatch !== undefined) return mismatch;
  }
  return undefined;
}
