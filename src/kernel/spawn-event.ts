import type { SeatHolder, RefusalReason } from "./headcount.ts";
import type { AgentId, TaskId } from "./identity.ts";
import type { Priority } from "./priority.ts";

/** Hiring, and the moves of seats. */
export interface SpawnEvents {
  spawn_start: { readonly childTaskId: TaskId; readonly agentId: AgentId; readonly priority: Priority };
  /** Promised the seat of `victim`, which is told to pause. */
  spawn_pending: {
    readonly childTaskId: TaskId;
    readonly agentId: AgentId;
    readonly priority: Priority;
    readonly victim: TaskId;
  };
  spawn_refused: {
    readonly agentId: AgentId;
    readonly priority: Priority;
    readonly reason: RefusalReason;
    readonly holders: readonly SeatHolder[];
  };
  seat_granted: { readonly taskId: TaskId };
  seat_pausing: { readonly taskId: TaskId; readonly yieldsTo: TaskId };
  seat_paused: { readonly taskId: TaskId };
  seat_recalled: { readonly taskId: TaskId };
  /** Was told to pause, and need not. */
  seat_kept: { readonly taskId: TaskId };
  task_reprioritize: {
    readonly taskId: TaskId;
    readonly from: Priority;
    readonly to: Priority;
    readonly by: string;
  };
  handoff: { readonly target: AgentId; readonly childTaskId: TaskId; readonly task: string };
}
