import type { JsonObject, JsonValue } from "../base/json-value.ts";
import type { CancellationError } from "../errors/cancellation-token.ts";
import type { FinishReason } from "../messages/llm-reply.ts";
import type { NextRun } from "../run/schedule.ts";
import type { Interruption } from "../run/run-result.ts";
import type { FolderWork } from "../run/task-folder.ts";
import type { SessionChange } from "../sessions/sessions.ts";

/** What a task reports about itself with `ctx.report`. The runtime uses it when the task ends, for any reason. */
export interface TaskReport {
  /**
   * B5: the partial output, or a function that returns it. Becomes the task's output if the task is cancelled or fails.
   */
  readonly output?: JsonValue | (() => string | undefined);
  /** Marks a return of the task's code as an early end with this status instead of `completed`. */
  readonly interruption?: Interruption;
  /**
   * Why the model stopped that gave the output. Default: the reason of the task's last model call or of the last child
   * that it joined.
   */
  readonly finishReason?: FinishReason;
  /**
   * S1: session changes to write in the commit that ends the task. Not written if the task failed, because the
   * invocation then stays hidden and resumable, or if its history is not retained.
   */
  readonly sessions?: readonly SessionChange[];
  /**
   * Runs to submit in the commit that ends the run, exactly once. Only a root task may request them. Not submitted if
   * the task failed, because it can be resumed. Replaces runs of earlier reports that have the same key.
   */
  readonly next?: readonly NextRun[];
  /** Additional data for the task's outcome, such as plans, scores and hand-off targets. */
  readonly metadata?: JsonObject;
  /** What the task has left in a folder of its own (`Isolation.finish`). Becomes a part of its outcome. */
  readonly work?: FolderWork;
  /**
   * Called if the task's code ignores a cancel and the runtime abandons it. The callback must run synchronously and is
   * the last opportunity to call `ctx.report` and `ctx.emitEvent`. No other code of the task runs afterwards.
   */
  readonly abandoned?: (stop: CancellationError) => void;
}
