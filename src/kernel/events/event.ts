import type { AgentId, RunId, TaskId } from "../base/identity.ts";
import type { Hash } from "../base/sources.ts";
import type { RunRecord } from "../run/run-record.ts";
import type {
  AgentEvents,
  ApprovalEvents,
  ArchitectureEvents,
  BudgetEvents,
  EngineEvents,
  FlowEvents,
  FolderEvents,
  GuardrailEvents,
  RunEvents,
  SpawnEvents,
  TaskEvents,
} from "./event-data.ts";

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
    FolderEvents,
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
      /** Id of the task that spawned the task of the event. `null` for the root. */
      readonly parentId: TaskId | null;
      /** Type of the event. */
      readonly type: Type;
      /** Time of the event, in epoch milliseconds. */
      readonly at: number;
      /** Data of the event. */
      readonly data: EventData[Type];
      /** Present if retention erased the texts of the event. The hash chain covers the hash of the original texts. */
      readonly erased?: true;
    }
  : never;

/**
 * Whether a run with this last event has ended. If the event corrects the usage of an ended run, the run is still
 * ended.
 */
export function endsRun(event: Event | undefined): boolean {
  return event?.type === "run_end" || (event?.type === "usage_corrected" && event.data.status !== null);
}

/** An event that is not in a log yet. The commit adds its number, time and ids (E4). @advanced */
export type EventDraft<Type extends EventType = EventType> = Type extends EventType
  ? { readonly type: Type; readonly data: EventData[Type] }
  : never;

/** Creates an event draft whose data matches its type. @advanced */
export function eventDraft<Type extends EventType>(type: Type, data: EventData[Type]): EventDraft<Type> {
  return { type, data } as EventDraft<Type>;
}

/**
 * E1: one commit of a run in its hash chain. `content` is the hash of everything that the store keeps of the commit,
 * including its events. The chain stays valid when retention erases the content itself.
 */
export interface ChainLink {
  /** Number of the commit in its run, from 0. */
  readonly number: number;
  /** Time of the commit, in epoch milliseconds. */
  readonly at: number;
  /** Sequence number that follows that of the last event of the commit. */
  readonly nextSeq: number;
  /** Hash of the commit's stored content. */
  readonly content: string;
}

/** The fields of a run that its hash chain covers in addition to the commits. */
export type ChainedRun = Pick<RunRecord, "runId" | "agentId" | "sessionId" | "tenantId" | "userId">;

/**
 * Returns the start of a run's hash chain. It binds the chain to the run, its agent, session, tenant and user.
 * Tenant and user can be any texts, so they are written as JSON; for a run that has neither, that part is absent.
 *
 * @advanced
 */
export function chainStart({ runId, agentId, sessionId, tenantId, userId }: ChainedRun): string {
  const start = `${runId}\n${agentId}\n${sessionId}`;
  return tenantId === null && userId === null ? start : `${start}\n${JSON.stringify([tenantId, userId])}`;
}

/** Returns the head of a hash chain after one more commit is added. @advanced */
export function chainHead(previous: string, { number, at, nextSeq, content }: ChainLink, hash: Hash): string {
  return hash(`${previous}\n${number} ${at} ${nextSeq} ${content}`);
}
