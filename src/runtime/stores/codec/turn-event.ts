import type { Event } from "../../../kernel/index.ts";
import { isWhole, memberCount } from "./member-count.ts";
import type { BriefEvent, PlainEvent, Reference } from "./stored-commit.ts";

/**
 * Returns a frequent event as a list of values without member names. The order of the values is part of the stored
 * format. Returns `undefined` for other types, and for an event with additional or missing members.
 */
export function encodeTurnEvent(event: Event, from: Reference | undefined): BriefEvent | undefined {
  switch (event.type) {
    case "turn_start":
      return whole(event, 1, [event.type, event.data.turn]);
    case "turn_end": {
      const { turn, stopReason, toolCalls } = event.data;
      return whole(event, 3, [event.type, turn, stopReason, toolCalls]);
    }
    case "step_end": {
      const { name, durationMs } = event.data;
      return whole(event, 2, [event.type, name, durationMs]);
    }
    case "message_start": {
      const { role, attempt, model } = event.data;
      return whole(event, 3, [event.type, role, attempt, model]);
    }
    case "message_end":
      return from?.length === 1 ? whole(event, 5, [event.type, from[0], event.data.durationMs]) : undefined;
    case "tool_execution_start":
      return from === undefined ? undefined : whole(event, 3, [event.type, from[0], from[1]]);
    case "tool_execution_end": {
      const { callId, toolName, durationMs, status } = event.data;
      return from === undefined
        ? undefined
        : whole(event, 5, [event.type, from[0], callId, toolName, durationMs, status]);
    }
    default:
      return undefined;
  }
}

/** Restores the member names of an event that `encodeTurnEvent` encoded. */
export function decodeTurnEvent([type, ...values]: BriefEvent): PlainEvent {
  const [first, second, third, fourth, fifth] = values;
  switch (type) {
    case "turn_start":
      return { type, data: { turn: first } };
    case "turn_end":
      return { type, data: { turn: first, stopReason: second, toolCalls: third } };
    case "step_end":
      return { type, data: { name: first, durationMs: second } };
    case "message_start":
      return { type, data: { role: first, attempt: second, model: third } };
    case "message_end":
      return { type, data: { durationMs: second }, from: [first as number] };
    case "tool_execution_start":
      return { type, from: [first as number, second as number] };
    case "tool_execution_end":
      return {
        type,
        data: { callId: second, toolName: third, durationMs: fourth, status: fifth },
        from: [first as number],
      };
    default:
      throw new SyntaxError(
        `an event of type ${type} is stored without member names, which that type does not support`,
      );
  }
}

function whole(event: Event, members: number, brief: BriefEvent): BriefEvent | undefined {
  return memberCount(event.data) === members && isWhole(brief) ? brief : undefined;
}
