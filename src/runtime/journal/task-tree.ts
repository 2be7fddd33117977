import { addUsage, HistoryRetention, noUsage, type TaskId, type Usage } from "../../kernel/index.ts";
import type { TaskState } from "./task-state.ts";

const none: readonly never[] = [];

/**
 * The tasks of a run by id, with the tree of which task has spawned which. Tasks that no code can reach any more
 * are removed from memory (J8).
 */
export class TaskTree {
  readonly tasks = new Map<TaskId, TaskState>();
  /** The children of each task that has children, in the order of their creation. */
  readonly #children = new Map<TaskId, TaskState[]>();
  /**
   * Usage of the tasks that were removed from memory, by the task that has spawned them. Created with the first
   * such task.
   */
  #usageBelow: Map<TaskId, Usage> | undefined;
  #leaving: [TaskId, readonly TaskState[]][] | undefined;

  add(task: TaskState): void {
    const { taskId, parentId } = task.record;
    this.tasks.set(taskId, task);
    if (parentId === null) return;
    const children = this.#children.get(parentId);
    if (children === undefined) this.#children.set(parentId, [task]);
    else children.push(task);
  }

  childrenOf(taskId: TaskId): readonly TaskState[] {
    return this.#children.get(taskId) ?? none;
  }

  /** Returns the task and all tasks below it, each after its parent. Costs O(these tasks). */
  familyOf(task: TaskState): readonly TaskState[] {
    const family = [task];
    for (const { record } of family) family.push(...this.childrenOf(record.taskId));
    return family;
  }

  /** Returns the usage of a task and of all tasks below it. Costs O(these tasks). */
  usageOf(task: TaskState): Usage {
    const { taskId } = task.record;
    if (!this.#children.has(taskId) && this.#usageBelow?.has(taskId) !== true) return task.usage;
    return this.familyOf(task).reduce(
      (usage, { record, usage: own }) =>
        addUsage(addUsage(usage, own), this.#usageBelow?.get(record.taskId) ?? noUsage),
      noUsage,
    );
  }

  /**
   * J8: returns the tasks below this one that its next journal cannot reach, because they and all tasks below them
   * have ended. Tasks with messages, or with history that the end of the run removes or erases, are left out.
   */
  unreachableBelow(taskId: TaskId, hasEntries: (taskId: TaskId) => boolean): readonly TaskState[] {
    const isOver = ({ record, outcome, messages }: TaskState): boolean =>
      outcome !== null &&
      messages.length === 0 &&
      record.supervision.retention !== HistoryRetention.NONE &&
      !hasEntries(record.taskId);
    return this.childrenOf(taskId).flatMap((child) => {
      const family = this.familyOf(child);
      return family.every(isOver) ? family : none;
    });
  }

  /**
   * J8: marks tasks below this one, so that the next `forgetLeaving` removes them from memory. They are not removed
   * at once, because the first commit of a fork also has their steps, which are applied later.
   */
  leave(taskId: TaskId, tasks: readonly TaskState[]): void {
    if (tasks.length > 0) (this.#leaving ??= []).push([taskId, tasks]);
  }

  forgetLeaving(): void {
    if (this.#leaving === undefined) return;
    for (const [taskId, tasks] of this.#leaving) this.#forget(taskId, tasks);
    this.#leaving = undefined;
  }

  /** Removes tasks from memory. Their steps and events stay in the store, and their usage still counts. */
  #forget(taskId: TaskId, tasks: readonly TaskState[]): void {
    const forgotten = new Set(tasks);
    this.#usageBelow ??= new Map();
    let usage = this.#usageBelow.get(taskId) ?? noUsage;
    for (const { record, usage: own } of forgotten) {
      usage = addUsage(addUsage(usage, own), this.#usageBelow.get(record.taskId) ?? noUsage);
      this.#usageBelow.delete(record.taskId);
      this.tasks.delete(record.taskId);
      this.#children.delete(record.taskId);
    }
    this.#usageBelow.set(taskId, usage);
    const kept = this.childrenOf(taskId).filter((child) => !forgotten.has(child));
    if (kept.length === 0) this.#children.delete(taskId);
    else this.#children.set(taskId, [...kept]);
  }
}
