import type { CancellationStatus } from "../errors/cancellation-error.ts";
import type { ExecutionBudget } from "../limits/execution-budget.ts";
import type { AgentId, TaskId } from "../base/identity.ts";
import type { JsonObject, JsonValue } from "../base/json-value.ts";
import type { Message } from "../messages/message.ts";
import type { OnParentEnd, OnPause, TaskOutcome } from "./task-outcome.ts";
import type { StepAddress } from "./step-address.ts";
import type { SupervisionJson } from "../limits/supervision.ts";

/** One agent's node in a run's tree, as it was created. */
export interface TaskRecord {
  readonly taskId: TaskId;
  readonly agentId: AgentId;
  /** J9: of the agent when the task was created; absent: it declared none. */
  readonly agentVersion?: string;
  /** The task that spawned it; `null` for the root. */
  readonly parentId: TaskId | null;
  readonly supervision: SupervisionJson;
  readonly budget: ExecutionBudget;
  /** What it was spawned with, or the state `continueAsNew` left. */
  readonly input: JsonValue;
  /** Of an activation: the messages it was started with. */
  readonly messages: readonly Message[];
  readonly userId: string | null;
  readonly metadata: JsonObject;
  readonly streaming: boolean;
  /** Where the run's input came from, if that was said. */
  readonly channel?: string;
  readonly onParentEnd: OnParentEnd;
  readonly onPause: OnPause;
  /** As what it was hired, if that was said. */
  readonly role?: string;
  /** The tools it may call; `null`: all of its agent's. */
  readonly tools: readonly string[] | null;
}

/** A change to the tree of tasks, in a commit. */
export type TaskChange =
  | { readonly type: "create"; readonly task: TaskRecord }
  /** `endedOn`: the steps whose fault its code did not survive: several when branches failed side by side. */
  | {
      readonly type: "end";
      readonly taskId: TaskId;
      readonly outcome: TaskOutcome;
      readonly endedOn?: readonly StepAddress[];
    }
  /** Ended, and to be gone on with: `resume` and `topUp` (J5). */
  | { readonly type: "reopen"; readonly taskId: TaskId }
  /** C1: told to stop; whoever replays it knows. */
  | {
      readonly type: "cancel";
      readonly taskId: TaskId;
      readonly reason: string;
      readonly status: CancellationStatus;
    }
  /** J8: it goes on from `input`, on an empty journal. */
  | { readonly type: "continue"; readonly taskId: TaskId; readonly input: JsonValue }
  /** Its code crashed so often. */
  | { readonly type: "crash"; readonly taskId: TaskId; readonly crashes: number };
