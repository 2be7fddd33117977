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
  /**
   * Status of the task instead of `completed`. It says that the task's code returned early, without finishing its
   * work.
   */
  readonly interruption?: Interruption;
  /**
   * Why the model stopped in the call that gave the output. Default: the reason of the task's last model call or of
   * the last child that it joined.
   */
  readonly finishReason?: FinishReason;
  /**
   * S1: session changes that the commit which ends the task writes. They are not written if the task failed,
   * because the invocation then stays hidden and can be resumed, or if its history is not retained.
   */
  readonly sessions?: readonly SessionChange[];
  /**
   * Runs to submit exactly once, in the commit that ends the run. Only a root task may request them. They are not
   * submitted if the task failed, because it can be resumed. They replace runs of earlier reports that have the
   * same key.
   */
  readonly next?: readonly NextRun[];
  /** Additional data for the task's outcome, such as plans, scores and hand-off targets. */
  readonly metadata?: JsonObject;
  /**
   * The work that the task has left in its own folder (`Isolation.finish`). It becomes a part of the task's
   * outcome.
   */
  readonly work?: FolderWork;
  /**
   * Called when the runtime abandons the task because its code ignores a cancel. The callback must run
   * synchronously. It is the last opportunity to call `ctx.report` and `ctx.emitEvent`: no other code of the task
   * runs afterwards.
   */
  readonly abandoned?: (stop: CancellationError) => void;
}
