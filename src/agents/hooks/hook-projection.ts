import {
  noUsage,
  outcomeStatus,
  parseAgentId,
  type Event,
  type EventType,
  type Failure,
  type HookEvent,
  type HookPayload,
  type ObservedTask,
} from "../../kernel/index.ts";

/** One thing to be shown, made when somebody watches. */
export type HookMoment = {
  [Name in HookEvent]: { readonly hook: Name; readonly payload: () => HookPayload<Name> };
}[HookEvent];

/** Events that are one moment and nothing else. They are most of a log. */
export const onlyMoment: { readonly [Type in EventType]?: HookEvent } = {
  turn_start: "step_start",
  turn_end: "step_end",
  message_start: "llm_start",
  message_end: "llm_end",
  tool_execution_start: "tool_start",
  tool_execution_end: "tool_end",
};

interface Trip {
  readonly guardrail: string;
  readonly reason: string;
}

/** The twelve moments, as the durable events of a run tell of them. */
export class HookProjection {
  /** Of tasks about to stop: which guardrail it was, should their end not say. */
  readonly #trips = new Map<string, Trip>();

  moments(event: Event, task: ObservedTask): readonly HookMoment[] {
    const base = (): Base => baseOf(event, task);
    switch (event.type) {
      case "task_start":
        return [{ hook: "run_start", payload: () => ({ ...base(), input: task.input }) }];
      case "task_end":
        return this.#ending(event, base);
      case "turn_start":
        return [{ hook: "step_start", payload: () => ({ ...base(), step: event.data.turn }) }];
      case "turn_end":
        return [{ hook: "step_end", payload: () => ({ ...base(), step: event.data.turn }) }];
      case "message_start": {
        const { role, attempt, model = unnamed } = event.data;
        if (role !== "assistant") return [];
        return [{ hook: "llm_start", payload: () => ({ ...base(), ...model, attempt }) }];
      }
      case "message_end": {
        const { message, model = unnamed, usage = noUsage, stopReason = null, durationMs = 0 } = event.data;
        if (message.role !== "assistant") return [];
        return [{ hook: "llm_end", payload: () => ({ ...base(), ...model, usage, stopReason, durationMs }) }];
      }
      case "tool_execution_start":
        return [{ hook: "tool_start", payload: () => ({ ...base(), ...event.data }) }];
      case "tool_execution_end": {
        const { toolName, callId, durationMs, result } = event.data;
        const { status = result.isError ? "error" : "ok" } = event.data;
        return [{ hook: "tool_end", payload: () => ({ ...base(), toolName, callId, status, durationMs }) }];
      }
      case "guardrail_decision":
        this.#noteTrip(event);
        return [];
      case "handoff":
        return [{ hook: "handoff", payload: () => ({ ...base(), ...event.data }) }];
      case "flow_start":
        return [{ hook: "flow_start", payload: () => ({ ...base(), ...event.data }) }];
      case "flow_end":
        return [{ hook: "flow_end", payload: () => ({ ...base(), ...event.data }) }];
      default:
        return [];
    }
  }

  /** A stop ends the task, so that its end tells of it, and only that: however many processes it took to come to it. */
  #ending(event: Event<"task_end">, base: () => Base): readonly HookMoment[] {
    const { usage = noUsage, failure, interruption, again = false } = event.data;
    const status = outcomeStatus(event.data);
    const noted = this.#trips.get(keyOf(event));
    this.#trips.delete(keyOf(event));
    const moments: HookMoment[] = [];
    if (status === "guardrail_tripped") {
      const trip = tripOf(failure, noted, interruption?.reason);
      moments.push({ hook: "guardrail_trip", payload: () => ({ ...base(), ...trip }) });
    }
    if (again) return moments;
    const error = failure && { error: { code: failure.code, message: failure.message } };
    moments.push({ hook: "run_end", payload: () => ({ ...base(), status, usage, ...error }) });
    return moments;
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
  return { agentName: parseAgentId(agentId).name, agentId, runId, taskId, sessionId, at };
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
