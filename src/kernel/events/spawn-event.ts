import type { SeatHolder, RefusalReason } from "../limits/headcount.ts";
import type { AgentId, TaskId } from "../base/identity.ts";
import type { Priority } from "../limits/priority.ts";

/** Hiring, and the moves of seats. */
export interface SpawnEvents {
  spawn_start: { readonly childTaskId: TaskId; readonly agentId: AgentId; readonly priority: Priority };
  /** Promised the seat of `victim`, which is told to pause; `null`: it waits for whichever seat frees. */
  spawn_wait: {
    readonly childTaskId: TaskId;
    readonly agentId: AgentId;
    readonly priority: Priority;
    readonly victim: TaskId | null;
  };
  spawn_refuse: {
    readonly agentId: AgentId;
    readonly priority: Priority;
    readonly reason: RefusalReason;
    readonly holders: readonly SeatHolder[];
  };
  seat_grant: { readonly taskId: TaskId };
  seat_yield: { readonly taskId: TaskId; readonly yieldsTo: TaskId };
  seat_pause: { readonly taskId: TaskId };
  seat_recall: { readonly taskId: TaskId };
  /** Was told to pause, and need not. */
  seat_keep: { readonly taskId: TaskId };
  task_reprioritize: {
    readonly taskId: TaskId;
    readonly from: Priority;
    readonly to: Priority;
    readonly by: string;
  };
  handoff: { readonly target: AgentId; readonly childTaskId: TaskId; readonly task: string };
}
