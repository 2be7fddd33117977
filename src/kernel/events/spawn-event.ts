import type { SeatHolder, RefusalReason } from "../limits/headcount.ts";
import type { AgentId, TaskId } from "../base/identity.ts";
import type { Priority } from "../limits/priority.ts";

/** Events of spawning and of seats. */
export interface SpawnEvents {
  /** A task was spawned. */
  spawn_start: {
    readonly childTaskId: TaskId;
    readonly agentId: AgentId;
    readonly priority: Priority;
    /** Present if the conversation was handed over to the child (`SpawnOptions.handsOver`). */
    readonly handsOver?: true;
  };
  /** A spawned task waits for the seat of `victim`, which must pause (H2). `null` means that it waits for any seat. */
  spawn_wait: {
    readonly childTaskId: TaskId;
    readonly agentId: AgentId;
    readonly priority: Priority;
    readonly victim: TaskId | null;
    /** As in `spawn_start`. */
    readonly handsOver?: true;
  };
  /** A spawn was refused. `holders` lists the tasks with seats (H4). */
  spawn_refuse: {
    readonly agentId: AgentId;
    readonly priority: Priority;
    readonly reason: RefusalReason;
    readonly holders: readonly SeatHolder[];
  };
  /** A task took a seat. */
  seat_grant: { readonly taskId: TaskId };
  /** A task must pause and yields its seat to the task `yieldsTo` (H2). */
  seat_yield: { readonly taskId: TaskId; readonly yieldsTo: TaskId };
  /** A task paused and holds no seat. */
  seat_pause: { readonly taskId: TaskId };
  /** A paused task got a seat again (H5). */
  seat_recall: { readonly taskId: TaskId };
  /** A task that was pausing keeps its seat, because the seat is no longer needed. */
  seat_keep: { readonly taskId: TaskId };
  /** A caller changed the priority of a task. */
  task_reprioritize: {
    readonly taskId: TaskId;
    readonly from: Priority;
    readonly to: Priority;
    readonly by: string;
  };
  /** A task passed work to a sub-agent. `task` is the text that the sub-agent receives. */
  handoff: { readonly target: AgentId; readonly childTaskId: TaskId; readonly task: string };
}
