import type { Failure } from "../base/fault.ts";
import type { FinishReason } from "../messages/stop-reason.ts";
import type { RunStatus } from "./run-result.ts";
import type { JsonObject, JsonValue } from "../base/json-value.ts";

/** How a task ended. */
export interface TaskOutcome {
  /** Status of the ended task. */
  readonly status: "completed" | "failed" | "cancelled" | "paused";
  /** The output, or the partial output if the task did not complete. */
  readonly output: JsonValue;
  /** The fault that ended the task. `null` if no fault ended it. */
  readonly failure: Failure | null;
  /** Present if the agent itself ended early, for example at `maxTurns`. */
  readonly interruption?: Interruption;
  /** Why the model stopped that gave the output. Absent if the task made no model call. */
  readonly finishReason?: FinishReason;
  /** Data that the task reported with `ctx.report`. */
  readonly metadata?: JsonObject;
}

/** An early end that the agent itself decided. */
export interface Interruption {
  /**
   * Status of the end. `max_turns` means that the agent's loop reached the agent's `maxTurns` option. The budget's
   * `maxTurns`, which counts the model calls of the task and its descendants, ends a task with the fault
   * `budget_exhausted` instead. `max_output` means that the answer was cut at the model's output limit.
   */
  readonly status: Extract<RunStatus, "max_turns" | "max_output" | "guardrail_tripped" | "failed">;
  /** Reason in the words of the architecture. */
  readonly reason: string;
}

/**
 * What happens to a child when its parent ends first: the parent waits for the child, cancels it, or lets it continue
 * alone (`detach`).
 */
export type OnParentEnd = "wait" | "cancel" | "detach";

/**
 * H5: what a preempted task does: `suspend` waits until it is recalled, `return-partial` ends with its partial output.
 */
export type OnPause = "suspend" | "return-partial";
