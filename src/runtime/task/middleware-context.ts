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

/** The context that all middleware around a call shares. */
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
