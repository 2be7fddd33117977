import type { Event, TaskId } from "../../kernel/index.ts";

/** Whether an event is the result of a model call, a tool call or a step: what a list counts as a step of a run. */
export function isResult({ type, data }: Event): boolean {
  if (type === "message_end") return "usage" in data;
  return type === "tool_execution_end" || type === "step_end" || type === "metered_call";
}

/** Whether a program reports the event. No journal has a record of it. */
export function isOfProgram({ data }: Event): boolean {
  return "source" in data && data.source === "acp";
}

/** Recorded calls as JSON. */
export interface StoredCalls {
  /** Number of recorded calls of each task. */
  readonly recorded: readonly (readonly [TaskId, number])[];
  /** What each recovery read, by the number of its event. */
  readonly replayed: readonly (readonly [number, readonly (readonly [TaskId, number])[]])[];
}

/** How many recorded calls each recovery of a run read from the journals of its tasks. */
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

  /** Number of calls of a task that the recovery with the event `seq` read. */
  replayedAt(seq: number, taskId: TaskId): number {
    return this.#replayed.get(seq)?.get(taskId) ?? 0;
  }

  /** A replay of the task reads this result from its journal, unless the task starts again with an empty one. */
  add(event: Event): void {
    const { type, taskId } = event;
    if (type === "task_continue_as_new") this.#recorded.delete(taskId);
    else if (type !== "step_end" && type !== "metered_call" && !isOfProgram(event) && isResult(event))
      this.#recorded.set(taskId, (this.#recorded.get(taskId) ?? 0) + 1);
  }

  /** The recovery with the event `seq` reads the journals of the tasks that have not ended. */
  recover(seq: number, hasEnded: (taskId: TaskId) => boolean): void {
    this.#replayed.set(seq, new Map([...this.#recorded].filter(([taskId]) => !hasEnded(taskId))));
  }
}
