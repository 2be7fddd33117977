import { describeValue } from "../base/describe-value.ts";
import type { EventDraft, EventType } from "./event.ts";
import { Fault } from "../base/fault.ts";

const codeEventTypes = [
  "architecture_event",
  "gateway_request",
  "turn_start",
  "turn_end",
  "user_message",
  "handoff",
  "flow_start",
  "flow_step_start",
  "flow_step_end",
  "flow_end",
  "worktree_open",
  "worktree_finish",
  "worktree_merge",
  "worktree_remove",
  "guardrail_decision",
  "guardrail_error",
  "hook_error",
  "extension_error",
  "extension_notice",
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
  "compaction_skipped",
  "settled",
] as const satisfies readonly EventType[];

/**
 * An event that agents, architectures, tools, middleware, checks and observers may emit. E1: only the runtime emits
 * the other events, so that code cannot write an approval, a price or an end into the log that did not happen.
 */
export type EmittableEvent = EventDraft<(typeof codeEventTypes)[number]>;

/** An event that starts or ends an invocation. Only the agent that holds the invocation's `Turn` may emit it. */
export type TurnEvent = EventDraft<(typeof turnEventTypes)[number]>;

const codeEvents: ReadonlySet<EventType> = new Set(codeEventTypes);
const turnEvents: ReadonlySet<EventType> = new Set(turnEventTypes);

/**
 * Throws `invalid_argument` if code may not emit this event. `isOfTurn` says whether the caller holds the `Turn` of
 * the invocation.
 */
export function assertEmittable(draft: EventDraft, isOfTurn = false): void {
  if (typeof draft !== "object" || (draft as unknown) === null)
    throw new Fault(
      "invalid_argument",
      `cannot emit ${describeValue(draft)}: emitEvent takes, and an architecture yields, an event { type, data }`,
    );
  const { type } = draft;
  if (codeEvents.has(type) || (isOfTurn && turnEvents.has(type))) return;
  const problem = turnEvents.has(type)
    ? `only the agent may emit ${type}, with its turn: ctx.emitEvent(event, turn)`
    : `code may not emit ${describeValue(type ?? draft)}`;
  throw new Fault("invalid_argument", `${problem}. Events that code may emit: ${codeEventTypes.join(", ")}`);
}
