import {
  eventDraft,
  type AgentSession,
  type EmittableEvent,
  type FlowEvents,
  type RunStatus,
} from "../../../kernel/index.ts";
import { WorkerInterruption, endOnWorkerInterruption } from "../worker-interruption.ts";
import { stopOf } from "../../base/interruption-status.ts";
import { interruptionStatus } from "../../base/interruption-status.ts";

/**
 * Emits the start and the end event of a flow, also if the flow is stopped. If a step reaches a limit, the flow
 * ends with that limit.
 */
export async function* withFlowEvents(
  flow: string,
  session: AgentSession,
  work: AsyncIterable<EmittableEvent>,
): AsyncIterable<EmittableEvent> {
  yield eventDraft("flow_start", { flow });
  try {
    yield* endOnWorkerInterruption(session, work);
  } catch (error) {
    yield eventDraft("flow_end", { flow, status: statusOf(error) });
    throw error;
  }
  const { interrupted, interruptionReason } = session;
  const status = interrupted ? interruptionStatus(interruptionReason) : "completed";
  yield eventDraft("flow_end", { flow, status });
}

export function stepStart(data: FlowEvents["flow_step_start"]): EmittableEvent {
  return eventDraft("flow_step_start", data);
}

export function stepEnd(data: FlowEvents["flow_step_end"]): EmittableEvent {
  return eventDraft("flow_step_end", data);
}

export function statusOf(error: unknown): RunStatus {
  return error instanceof WorkerInterruption
    ? error.interruption.status
    : (stopOf(error)?.status ?? "failed");
}
