import type { Resolution, TaskId } from "../../kernel/index.ts";
import { runOf } from "./wait-names.ts";

/**
 * A value that arrived for a wait. `inputId` is the id of an input in a queue. For a submitted input, `runId` is
 * the run that the input would have started, and `metadata` is the metadata of the submission (S5).
 */
export type ArrivedValue = Pick<Resolution, "value" | "runId" | "metadata" | "inputId">;

const noValues: readonly never[] = [];

/** W1, W2: the values that arrived for the waits of a run and that no step has taken yet, in the order of arrival for each wait. */
export class Resolutions {
  /** The values by task and by name of the wait. Created with the first value. */
  #values: Map<string, readonly ArrivedValue[]> | undefined;

  get isEmpty(): boolean {
    return this.#values === undefined || this.#values.size === 0;
  }

  add({ taskId, wait, ...arrived }: Resolution): void {
    const key = keyOf(taskId, wait);
    this.#values ??= new Map();
    if (runOf(wait) === undefined) this.#values.set(key, [...(this.#values.get(key) ?? noValues), arrived]);
    // The last end of a run counts. `null` means that the run continues.
    else if (arrived.value === null) this.#values.delete(key);
    else this.#values.set(key, [arrived]);
  }

  /** W2: returns the value that the next step which waits under this name takes. */
  first(taskId: TaskId, wait: string): ArrivedValue | undefined {
    return this.all(taskId, wait)[0];
  }

  all(taskId: TaskId, wait: string): readonly ArrivedValue[] {
    if (this.#values === undefined || this.#values.size === 0) return noValues;
    return this.#values.get(keyOf(taskId, wait)) ?? noValues;
  }

  /** Removes and returns the first `count` values, because a recorded step has taken them. */
  take(taskId: TaskId, wait: string, count: number): readonly ArrivedValue[] {
    const key = keyOf(taskId, wait);
    const values = this.#values?.get(key) ?? noValues;
    if (values.length > count) this.#values?.set(key, values.slice(count));
    else this.#values?.delete(key);
    return values.slice(0, count);
  }

  /** Whether none of these values was taken. */
  has(taskId: TaskId, wait: string, values: readonly ArrivedValue[]): boolean {
    const waiting = this.all(taskId, wait);
    return values.every((value) => waiting.includes(value));
  }

  /**
   * Removes these values, wherever they are in the queue. If one was already taken, returns `false` and changes
   * nothing.
   */
  takeOut(taskId: TaskId, wait: string, values: readonly ArrivedValue[]): boolean {
    if (!this.has(taskId, wait, values)) return false;
    const rest = this.all(taskId, wait).filter((value) => !values.includes(value));
    if (rest.length > 0) this.#values?.set(keyOf(taskId, wait), rest);
    else this.#values?.delete(keyOf(taskId, wait));
    return true;
  }

  /** Puts values that were taken back before all other values of the wait. */
  putBack(taskId: TaskId, wait: string, values: readonly ArrivedValue[]): void {
    this.#values ??= new Map();
    const key = keyOf(taskId, wait);
    this.#values.set(key, [...values, ...(this.#values.get(key) ?? noValues)]);
  }
}

function keyOf(taskId: TaskId, wait: string): string {
  return `${taskId} ${wait}`;
}
