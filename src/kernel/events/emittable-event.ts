import { describeValue } from "../base/describe-value.ts";
import type { EventDraft, EventType } from "./event.ts";
import { Fault } from "../base/fault.ts";

const codeEventTypes = [
  "architecture_event",
  "turn_start",
  "turn_end",
  "handoff",
  "flow_start",
  "flow_step_start",
  "flow_step_end",
  "flow_end",
  "guardrail_decision",
  "guardrail_error",
  "hook_error",
  "extension_error",
  "model_fallback",
  "retry_start",
  "retry_end",
  "memory_recall",
  "memory_write",
] as const satisfies readonly EventType[];

const turnEventTypes = [
  "agent_start",
  "agent_end",
  "save_point",
  "settled",
] as const satisfies readonly EventType[];

/**
 * What code may tell: agents, architectures, tools, layers, gates and observers, ours and others'. All other events are the runtime's, which
 * tells them because they happened: nobody can put an approval, a price or an end into the log that there was not (E1).
 */
export type EmittableEvent = EventDraft<(typeof codeEventTypes)[number]>;

/** Start and end of an invocation: told by the agent that began it, which has its turn. */
export type TurnEvent = EventDraft<(typeof turnEventTypes)[number]>;

const codeEvents: ReadonlySet<EventType> = new Set(codeEventTypes);
const turnEvents: ReadonlySet<EventType> = new Set(turnEventTypes);

/** `isOfTurn`: whoever tells it has the turn of the invocation. */
export function assertEmittable(draft: EventDraft, isOfTurn = false): void {
  if (typeof draft !== "object" || (draft as unknown) === null)
    throw new Fault(
      "invalid_argument",
      `${describeValue(draft)} was told: what code tells, and what an architecture yields, must be an event, { type, data }`,
    );
  const { type } = draft;
  if (codeEvents.has(type) || (isOfTurn && turnEvents.has(type))) return;
  const whose = turnEvents.has(type)
    ? `${type} is told by the agent itself, with its turn: ctx.emitEvent(event, turn)`
    : `${describeValue(type ?? draft)} is no event that code may tell`;
  throw new Fault("invalid_argument", `${whose}. What it may tell: ${codeEventTypes.join(", ")}`);
}
