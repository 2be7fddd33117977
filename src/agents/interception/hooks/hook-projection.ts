import {
  agentNameOf,
  copyJson,
  deepFreeze,
  noUsage,
  type Event,
  type EventType,
  type Failure,
  type HookEvent,
  type HookPayload,
  type ObservedTask,
} from "../../../kernel/index.ts";

/** Receives the payload of one hook event. */
export interface MomentViewer {
  show<Name extends HookEvent>(hook: Name, payload: HookPayload<Name>, task: ObservedTask): void;
}

/** The durable event from which each hook event is derived. `guardrail_trip` is derived from `task_end`. */
const onlyMoments: { readonly [Type in EventType]?: HookEvent } = {
  task_start: "run_start",
  turn_start: "step_start",
  turn_end: "step_end",
  message_start: "llm_start",
  message_end: "llm_end",
  tool_execution_start: "tool_start",
  tool_execution_end: "tool_end",
  handoff: "handoff",
  flow_start: "flow_start",
  flow_end: "flow_end",
};

/** Event types that are always read, because the decision of a guardrail is needed when its task ends. */
const followed: readonly EventType[] = ["guardrail_decision", "task_end"];

/** Returns the durable events that are needed for the given hook events. */
export function eventTypesOf(hooks: ReadonlySet<HookEvent>): ReadonlySet<EventType> {
  const types = new Set(followed);
  for (const type of Object.keys(onlyMoments) as EventType[]) {
    const hook = onlyMoments[type];
    if (hook !== undefined && hooks.has(hook)) types.add(type);
  }
  return types;
}

interface Trip {
  readonly guardrail: string;
  readonly reason: string;
}

/** Derives the twelve hook events from the durable events of a run. */
export class HookProjection {
  /**
   * For tasks that are about to stop, the guardrail that stopped them. It is needed if the end of the task does not
   * name it.
   */
  readonly #trips = new Map<string, Trip>();

  project(event: Event, task: ObservedTask, viewer: MomentViewer): void {
    switch (event.type) {
      case "task_start":
        // Copied, because an input may be frozen only at its surface and still belong to the caller.
        viewer.show("run_start", { ...baseOf(event, task), input: deepFreeze(copyJson(task.input)) }, task);
        break;
      case "task_end":
        this.#end(event, task, viewer);
        break;
      case "turn_start":
        viewer.show("step_start", { ...baseOf(event, task), step: event.data.turn }, task);
        break;
      case "turn_end":
        viewer.show("step_end", { ...baseOf(event, task), step: event.data.turn }, task);
        break;
      case "message_start": {
        const { role, attempt, model = unnamed, source } = event.data;
        // The message of a program is no model call.
        if (source !== undefined) break;
        const { provider, modelId } = model;
        if (role === "assistant")
          viewer.show("llm_start", { ...baseOf(event, task), provider, modelId, attempt }, task);
        break;
      }
      case "message_end": {
        const { message, model = unnamed, usage = noUsage, stopReason = null, durationMs = 0 } = event.data;
        if (event.data.source !== undefined) break;
        const { provider, modelId } = model;
        if (message.role !== "assistant") break;
        const payload = { ...baseOf(event, task), provider, modelId, usage, stopReason, durationMs };
        viewer.show("llm_end", payload, task);
        break;
      }
      case "tool_execution_start":
        viewer.show("tool_start", { ...baseOf(event, task), ...event.data }, task);
        break;
      case "tool_execution_end": {
        const { toolName, callId, durationMs, result } = event.data;
        const { status = result.isError ? "error" : "ok" } = event.data;
        viewer.show("tool_end", { ...baseOf(event, task), toolName, callId, status, durationMs }, task);
        break;
      }
      case "guardrail_decision":
        this.#noteTrip(event);
        break;
      case "handoff":
        viewer.show("handoff", { ...baseOf(event, task), ...event.data }, task);
        break;
      case "flow_start":
        viewer.show("flow_start", { ...baseOf(event, task), ...event.data }, task);
        break;
      case "flow_end":
        viewer.show("flow_end", { ...baseOf(event, task), ...event.data }, task);
        break;
      default:
        break;
    }
  }

  /**
   * Derives hook events from the end of a task. A stop by a guardrail always ends the task, so that its hook event
   * is derived only from this end, and emitted once, also if several processes took part.
   */
  #end(event: Event<"task_end">, task: ObservedTask, viewer: MomentViewer): void {
    const { status, usage = noUsage, failure, interruption, again = false } = event.data;
    const noted = this.#trips.get(keyOf(event));
    this.#trips.delete(keyOf(event));
    if (status === "guardrail_tripped") {
      const trip = tripOf(failure, noted, interruption?.reason);
      viewer.show("guardrail_trip", { ...baseOf(event, task), ...trip }, task);
    }
    if (again) return;
    const error = failure && { error: { code: failure.code, message: failure.message } };
    viewer.show("run_end", { ...baseOf(event, task), status, usage, ...error }, task);
  }

  #noteTrip(event: Event<"guardrail_decision">): void {
    const { guardrail, stage, decision, reason } = event.data;
    const stops = decision === "halt" || (decision === "block" && (stage === "input" || stage === "output"));
    if (stops) this.#trips.set(keyOf(event), { guardrail, reason });
  }
}

type Base = Omit<HookPayload<"step_start">, "step">;

const unnamed = { provider: "", modelId: "" };

function baseOf({ agentId, runId, taskId, at }: Event, { facts }: ObservedTask): Base {
  const { sessionId } = facts;
  return { agentName: agentNameOf(agentId), agentId, runId, taskId, sessionId, at };
}

function tripOf(
  failure: Failure | undefined,
  noted: Trip | undefined,
  interruption: string | undefined,
): Trip {
  const by = failure?.details?.["by"];
  const guardrail = noted?.guardrail ?? (typeof by === "string" ? by : "");
  return { guardrail, reason: noted?.reason ?? failure?.message ?? interruption ?? "" };
}

function keyOf({ runId, taskId }: Event): string {
  return `${runId} ${taskId}`;
}
