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

/** Every type of event with its data. */
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

export type EventType = keyof EventData;

/**
 * One durable entry of a run's log. E1: numbered from 0 without gaps within its run, published after its commit, never
 * changed. Switch on `type`; `data` follows.
 */
export type Event<Type extends EventType = EventType> = Type extends EventType
  ? {
      readonly seq: number;
      readonly runId: RunId;
      readonly taskId: TaskId;
      readonly agentId: AgentId;
      /** The task that spawned this one; `null` at the root. */
      readonly parentId: TaskId | null;
      readonly type: Type;
      /** Epoch milliseconds. */
      readonly at: number;
      readonly data: EventData[Type];
      /** Retention took the words out of it; the chain covers the hash of what it was. */
      readonly erased?: true;
    }
  : never;

/** An event that has no place in a log yet; the commit gives it the rest (E4). */
export type EventDraft<Type extends EventType = EventType> = Type extends EventType
  ? { readonly type: Type; readonly data: EventData[Type] }
  : never;

export function eventDraft<Type extends EventType>(type: Type, data: EventData[Type]): EventDraft<Type> {
  return { type, data } as EventDraft<Type>;
}
