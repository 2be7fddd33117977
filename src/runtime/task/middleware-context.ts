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
export function layerContext(open: ActiveStep): LayerContext {
  const { runner, strand } = open;
  const { agentId, facts, taskId } = runner;
  return {
    agentName: agentNameOf(agentId),
    agentId,
    runId: facts.runId,
    taskId,
    sessionId: facts.sessionId,
    tenantId: runner.host.tenantId,
    facts,
    signal: strand.signal,
    metadata: {},
    emitEvent: (event) => open.tellFromCode(event),
    waitFor: (wait) => runner.pauseFor(strand, wait),
  };
}
