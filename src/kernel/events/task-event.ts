import type { ExecutionBudget } from "../limits/execution-budget.ts";
import type { Failure } from "../base/fault.ts";
import type { AgentId } from "../base/identity.ts";
import type { JsonObject, JsonValue } from "../base/json-value.ts";
import type { Priority } from "../limits/priority.ts";
import type { Interruption } from "../run/task-outcome.ts";
import type { TaskStatus } from "../run/task-status.ts";
import type { Usage } from "../messages/usage.ts";

/** The life of one task. Each is sent once, however often the task is replayed (trap R13). */
export interface TaskEvents {
  task_start: { readonly priority: Priority; readonly budget: ExecutionBudget };
  /** All it does is wait, and it was not over in a moment. `waitsFor` names waits as `resolve` would; `join t1` and `budget` nobody resolves. */
  task_suspend: { readonly waitsFor: readonly string[]; readonly until: number | null };
  /** The name it waited for, `time`, `cancel`, or `seat` when it was parked as well. */
  task_wake: { readonly by: string };
  /** A signal from outside arrived, whether or not the task waits for it yet. */
  task_signal: { readonly name: string; readonly by: string };
  /** It crashed and is tried again. */
  task_retry: { readonly attempt: number; readonly delayMs: number; readonly failure: Failure };
  task_end: {
    readonly status: Extract<TaskStatus, "completed" | "failed" | "cancelled" | "paused">;
    readonly output?: JsonValue;
    readonly failure?: Failure;
    readonly interruption?: Interruption;
    readonly metadata?: JsonObject;
    /** Of its own model calls that were answered. */
    readonly usage?: Usage;
    /** It had ended before, and was resumed or topped up. */
    readonly again?: true;
  };
  /** `journal`: which of the task's it goes on in, from 0. */
  task_continue_as_new: { readonly journal: number };
  /** J8: the journal of one task has grown long. */
  journal_warning: { readonly steps: number };
  mail_receive: { readonly messageId: string; readonly from: AgentId | null };
  mail_dead_letter: { readonly messageId: string; readonly deliveries: number };
}
