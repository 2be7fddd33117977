import type { ExecutionBudget } from "../limits/execution-budget.ts";
import type { Failure } from "../base/fault.ts";
import type { AgentId } from "../base/identity.ts";
import type { JsonObject, JsonValue } from "../base/json-value.ts";
import type { Priority } from "../limits/priority.ts";
import type { FinishReason } from "../messages/stop-reason.ts";
import type { Interruption } from "../run/task-outcome.ts";
import type { RunStatus } from "../run/run-result.ts";
import type { Usage } from "../messages/usage.ts";

/** Events of one task. Each is emitted once, however often the task is replayed (trap R13). */
export interface TaskEvents {
  /** The task's code starts. */
  task_start: { readonly priority: Priority; readonly budget: ExecutionBudget };
  /**
   * The task only waits. Not emitted for a wait that ends at once. `waitsFor` holds the wait names that a mailbox
   * message can resolve, and names such as `join t1` and `budget` that only the runtime resolves. `until` is the
   * earliest timeout, in epoch milliseconds.
   */
  task_suspend: { readonly waitsFor: readonly string[]; readonly until: number | null };
  /**
   * A waiting task continues. `by` is the name it waited for, `time`, `cancel`, or `seat` if it also had to wait for a
   * seat.
   */
  task_wake: { readonly by: string };
  /** A signal arrived from outside, whether or not the task waits for it yet. */
  task_signal: { readonly name: string; readonly by: string };
  /** The task's code crashed and starts again after `delayMs`. */
  task_retry: { readonly attempt: number; readonly delayMs: number; readonly failure: Failure };
  /** The task ended. */
  task_end: {
    /** How the task ended. The `run_end` of a run has the status of its root's last `task_end`. */
    readonly status: RunStatus;
    readonly output?: JsonValue;
    readonly failure?: Failure;
    readonly interruption?: Interruption;
    /** Why the model stopped that gave the output. Absent if the task made no model call. */
    readonly finishReason?: FinishReason;
    readonly metadata?: JsonObject;
    /** Usage of the task's own answered model calls, without its children. */
    readonly usage?: Usage;
    /** Present if the task had ended before and was resumed or topped up. */
    readonly again?: true;
  };
  /**
   * J8: the task continues with an empty journal. `journal` is the number of the new journal; the first has number 0.
   */
  task_continue_as_new: { readonly journal: number };
  /**
   * A step of `ctx.step` is recorded. `durationMs` is the time that its body took in the process that recorded it. Model
   * calls, tool calls and waits have events of their own. Not emitted for a step that a replay reads from the journal.
   */
  step_end: {
    readonly name: string;
    readonly durationMs: number;
    /** Present if the body threw. */
    readonly status?: "error";
  };
  /** J8: the journal of the task has grown long. */
  journal_warning: { readonly steps: number };
  /** The task received an inbox message. */
  mail_receive: { readonly messageId: string; readonly from: AgentId | null };
  /** An inbox message became a dead letter after `deliveries` failed deliveries. */
  mail_dead_letter: { readonly messageId: string; readonly deliveries: number };
}
