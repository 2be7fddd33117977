import type { Event, TaskId } from "../../kernel/index.ts";

/**
 * Whether an event is the result of a model call, a tool call or a step. Lists count these events as steps of a
 * run.
 */
export function isResult({ type, data }: Event): boolean {
  if (type === "message_end") return "usage" in data;
  return type === "tool_execution_end" || type === "step_end" || type === "metered_call";
}

/** Whether a program reports the event about its own call. No journal contains a record of such a call. */
export function isOfProgram({ data }: Event): boolean {
  return "source" in data && data.source === "acp";
}

/** Recorded calls as JSON. */
export interface StoredCalls {
  /** Number of recorded calls of each task. */
  readonly recorded: readonly (readonly [TaskId, number])[];
  /** For each recovery, by the sequence number of its event: the number of calls that it read for each task. */
  readonly replayed: readonly (readonly [number, readonly (readonly [TaskId, number])[]])[];
}

/** Counts how many recorded calls each recovery of a run read from the journals of its tasks. */
export class RecordedCalls {
  readonly #recorded: Map<TaskId, number>;
  readonly #replayed: Map<number, ReadonlyMap<TaskId, number>>;

  constructor(from?: StoredCalls) {
    this.#recorded = new Map(from?.recorded);
    this.#replayed = new Map(from?.replayed.map(([seq, calls]) => [seq, new Map(calls)]));
  }

  get stored(): StoredCalls {
    return {
      recorded: [...this.#recorded],
      replayed: [...this.#replayed].map(([seq, calls]) => [seq, [...calls]]),
    };
  }

  /** Returns the number of calls of a task that the recovery with the event `seq` read from the journal. */
  replayedAt(seq: number, taskId: TaskId): number {
    return this.#replayed.get(seq)?.get(taskId) ?? 0;
  }

  /**
   * Counts a result. A replay of the task reads it from the journal, unless the task starts again with an empty
   * journal.
   */
  add(event: Event): void {
    const { type, taskId } = event;
    if (type === "task_continue_as_new") this.#recorded.delete(taskId);
    else if (type !== "step_end" && type !== "metered_call" && !isOfProgram(event) && isResult(event))
      this.#recorded.set(taskId, (this.#recorded.get(taskId) ?? 0) + 1);
  }

  /** Notes that the recovery with the event `seq` read the journals of the tasks that had not ended. */
  recover(seq: number, hasEnded: (taskId: TaskId) => boolean): void {
    this.#replayed.set(seq, new Map([...this.#recorded].filter(([taskId]) => !hasEnded(taskId))));
  }
}
