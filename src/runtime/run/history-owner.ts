import {
  HistoryRetention,
  rootTaskId as root,
  type HostedAgent,
  type RunRecord,
} from "../../kernel/index.ts";
import type { RunState } from "../journal/run-state.ts";
import type { WorkerContext } from "../process/worker-context.ts";

/** An agent that keeps the history of its runs in the application's own store and can delete it there. */
export type HistoryOwner = HostedAgent & Required<Pick<HostedAgent, "clearHistory">>;

/** R14: returns the root's agent if the end of the run requires that it deletes the history of the run, and that is not recorded yet. */
export function historyOwnerToClear(
  { agents }: WorkerContext,
  { agentId }: RunRecord,
  state: RunState,
): HistoryOwner | undefined {
  const { retention } = state.task(root).record.supervision;
  if (retention !== HistoryRetention.RUN || state.isHistoryCleared) return undefined;
  const agent = agents.get(agentId);
  return agent !== undefined && ownsHistory(agent) ? agent : undefined;
}

function ownsHistory(agent: HostedAgent): agent is HistoryOwner {
  return agent.clearHistory !== undefined;
}
