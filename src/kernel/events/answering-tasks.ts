import type { Delta } from "../messages/delta.ts";
import { rootTaskId, type TaskId } from "../base/identity.ts";
import type { Event } from "./event.ts";

/**
 * The tasks that speak for a run: the root, and each task to which one of them handed the conversation over
 * (`SpawnOptions.handsOver`). Their messages are the conversation of the run.
 */
export class AnsweringTasks {
  readonly #tasks = new Set<TaskId>([rootTaskId]);

  /** Whether the event or delta belongs to such a task. Pass the events of the run in their order. */
  includes(part: Event | Delta): boolean {
    if (!this.#tasks.has(part.taskId)) return false;
    if ((part.type === "spawn_start" || part.type === "spawn_wait") && part.data.handsOver === true)
      this.#tasks.add(part.data.childTaskId);
    return true;
  }
}
