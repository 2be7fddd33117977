import {
  Fault,
  firstUnfinishedRun,
  type SessionNavigation,
  type SessionSummary,
} from "../../kernel/index.ts";
import { portFor, type WorkerContext } from "../process/worker-context.ts";
import { sessionBusy } from "./submit-run.ts";

/**
 * Asks the extensions of the session's agent before a change of an idle session. S5: throws `agent_busy` if a run in the
 * session is unfinished; the change itself checks that again, because a run may start while a handler runs. Throws
 * `permission_denied` if an extension refuses. An agent that is not registered with this runtime is not asked.
 */
export async function askExtensions(
  worker: WorkerContext,
  { sessionId, agentId, tenantId, userId }: SessionSummary,
  navigation: SessionNavigation,
): Promise<void> {
  const open = await firstUnfinishedRun(worker.store.journal, { sessionId });
  if (open !== undefined) throw sessionBusy(open);
  const agent = worker.agents.get(agentId);
  if (agent?.beforeNavigation === undefined) return;
  const port = portFor(worker, { sessionId, runId: null, tenantId, userId });
  const reason = await agent.beforeNavigation(navigation, port);
  if (reason === undefined) return;
  throw new Fault("permission_denied", `session ${sessionId} stays as it is: ${reason}`, {
    details: { sessionId, event: navigation.type },
  });
}
