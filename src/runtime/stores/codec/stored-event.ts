import {
  rootTaskId as rootTask,
  type AgentId,
  type Event,
  type RunId,
  type TaskId,
} from "../../../kernel/index.ts";
import { restOf, restoreData, SharedContent, type ContentHolders } from "./shared-content.ts";
import type { BriefEvent, PlainEvent, Reference, StoredEvent, StoredHeading } from "./stored-commit.ts";
import { decodeTurnEvent, encodeTurnEvent } from "./turn-event.ts";

type Heading = Pick<Event, "taskId" | "agentId" | "parentId" | "at">;

/** The run, the time and the content of the commit that contains the events. */
export interface EventFrame extends ContentHolders {
  readonly runId: RunId;
  readonly agentId: AgentId;
  readonly at: number;
}

export function encodeEvents(
  events: readonly Event[],
  { agentId, at, steps, tasks }: EventFrame,
): (StoredEvent | StoredHeading)[] {
  const stored: (StoredEvent | StoredHeading)[] = [];
  const shared = new SharedContent({ steps, tasks });
  let before: Heading = { taskId: rootTask, agentId, parentId: null, at };
  for (const event of events) {
    if (!isUnder(event, before)) stored.push(headingOf(event, before, at));
    const from = shared.referenceOf(event);
    stored.push(encodeTurnEvent(event, from) ?? plainEvent(event, from));
    before = event;
  }
  return stored;
}

/** `end` is the seq after the last event. */
export function decodeEvents(
  stored: readonly (StoredEvent | StoredHeading)[],
  { runId, agentId: runAgentId, at: committedAt, steps, tasks }: EventFrame,
  end: number,
): Event[] {
  const events: Event[] = [];
  let [taskId, agentId, parentId, at]: [TaskId, AgentId, TaskId | null, number] = [
    rootTask,
    runAgentId,
    null,
    committedAt,
  ];
  let seq = end - stored.filter(isEvent).length;
  for (const each of stored) {
    if (isEvent(each)) {
      const { type, data = {}, from } = isBrief(each) ? decodeTurnEvent(each) : each;
      const whole = from === undefined ? data : restoreData({ type, data, from }, { steps, tasks });
      events.push({ seq: seq++, runId, taskId, agentId, parentId, type, at, data: whole } as Event);
      continue;
    }
    if (each.taskId !== undefined) ({ taskId } = each);
    if (each.agentId !== undefined) ({ agentId } = each);
    if (each.parentId !== undefined) ({ parentId } = each);
    if (each.ago !== undefined) at = committedAt - each.ago;
  }
  return events;
}

function plainEvent(event: Event, from: Reference | undefined): PlainEvent {
  const { type, data } = event;
  return from === undefined ? { type, data } : { type, data: restOf(event, from), from };
}

function isEvent(stored: StoredEvent | StoredHeading): stored is StoredEvent {
  return isBrief(stored) || "type" in stored;
}

function isBrief(stored: StoredEvent | StoredHeading): stored is BriefEvent {
  return Array.isArray(stored);
}

function isUnder({ taskId, agentId, parentId, at }: Heading, before: Heading): boolean {
  return (
    at === before.at && taskId === before.taskId && agentId === before.agentId && parentId === before.parentId
  );
}

function headingOf(event: Heading, before: Heading, committedAt: number): StoredHeading {
  const heading: { -readonly [Key in keyof StoredHeading]: StoredHeading[Key] } = {};
  if (event.taskId !== before.taskId) heading.taskId = event.taskId;
  if (event.agentId !== before.agentId) heading.agentId = event.agentId;
  if (event.parentId !== before.parentId) heading.parentId = event.parentId;
  if (event.at !== before.at) heading.ago = committedAt - event.at;
  return heading;
}
