import type { AgentEvents } from "./agent-event.ts";
import type { ApprovalEvents } from "./approval-event.ts";
import type { ArchitectureEvents } from "./architecture-event.ts";
import type { BudgetEvents } from "./budget-event.ts";
import type { EngineEvents } from "./engine-event.ts";
import type { FlowEvents } from "./flow-event.ts";
import type { GuardrailEvents } from "./guardrail-event.ts";
import type { AgentId, RunId, TaskId } from "../base/identity.ts";
import type { RunEvents } from "./run-event.ts";
import type { SpawnEvents } from "./spawn-event.ts";
import type { TaskEvents } from "./task-event.ts";

/** All event types with their data. */
export interface EventData
  extends
    EngineEvents,
    AgentEvents,
    RunEvents,
    TaskEvents,
    BudgetEvents,
    SpawnEvents,
    GuardrailEvents,
    ApprovalEvents,
    FlowEvents,
    ArchitectureEvents {}

/** The type of an event. */
export type EventType = keyof EventData;

/**
 * One durable entry of a run's log. E1: events of a run are numbered from 0 without gaps, are published after their
 * commit and never change. Switch on `type` to narrow `data`.
 *
 * @example
 * ```ts
 * import type { Event } from "reeve";
 *
 * function describeEvent(event: Event): string {
 *   switch (event.type) {
 *     case "tool_execution_start":
 *       return `calls ${event.data.toolName}`;
 *     case "run_end":
 *       return `ended as ${event.data.status}`;
 *     default:
 *       return event.type;
 *   }
 * }
 * ```
 */
export type Event<Type extends EventType = EventType> = Type extends EventType
  ? {
      /** Number of the event in its run, from 0. */
      readonly seq: number;
      /** Id of the run. */
      readonly runId: RunId;
      /** Id of the task that the event belongs to. */
      readonly taskId: TaskId;
      /** Id of the agent of that task. */
      readonly agentId: AgentId;
      /** Id of the task that spawned that task. `null` for the root. */
      readonly parentId: TaskId | null;
      /** Type of the event. */
      readonly type: Type;
      /** Time of the event, in epoch milliseconds. */
      readonly at: number;
      /** Data of the event. */
      readonly data: EventData[Type];
      /** Present if retention erased the texts of the event. The hash chain covers the hash of the original. */
      readonly erased?: true;
    }
  : never;

/** An event that is not in a log yet. The commit adds number, time and ids (E4). */
export type EventDraft<Type extends EventType = EventType> = Type extends EventType
  ? { readonly type: Type; readonly data: EventData[Type] }
  : never;

/** Creates an event draft whose data matches its type. */
export function eventDraft<Type extends EventType>(type: Type, data: EventData[Type]): EventDraft<Type> {
  return { type, data } as EventDraft<Type>;
}
