import { agentNameOf, type ChatContext } from "../../kernel/index.ts";
import type { ActiveStep } from "./active-step.ts";

type LayerContext = Pick<
  ChatContext,
  | "agentName"
  | "agentId"
  | "runId"
  | "taskId"
  | "sessionId"
  | "tenantId"
  | "facts"
  | "signal"
  | "metadata"
  | "emitEvent"
  | "waitFor"
>;

/** What every layer around a call is told of where it stands. */
export function middlewareContext(open: ActiveStep): LayerContext {
  const { runner, cancelScope } = open;
  const { agentId, facts, taskId } = runner;
  return {
    agentName: agentNameOf(agentId),
    agentId,
    runId: facts.runId,
    taskId,
    sessionId: facts.sessionId,
    tenantId: runner.host.tenantId,
    facts,
    signal: cancelScope.signal,
    metadata: {},
    emitEvent: (event) => open.emitFromCode(event),
    waitFor: (wait) => runner.activity.pauseFor(cancelScope, wait),
  };
}
