import type { Delta } from "../messages/delta.ts";
import { rootTaskId, type TaskId } from "../base/identity.ts";
import type { Event } from "./event.ts";

/**
 * The tasks whose messages form the conversation of a run: the root task, and each task to which one of them handed
 * over the conversation (`SpawnOptions.handsOver`).
 */
export class AnsweringTasks {
  readonly #tasks = new Set<TaskId>([rootTaskId]);
  /** The role that `prepareStep` chose for the current turn of a task. */
  readonly #turnRoles = new Map<TaskId, string>();

  /**
   * Whether the task of the event or delta is one of the tasks whose messages form the conversation. Pass the
   * events of the run in their order.
   */
  includes(part: Event | Delta): boolean {
    if (!this.#tasks.has(part.taskId)) return false;
    if ((part.type === "spawn_start" || part.type === "spawn_wait") && part.data.handsOver === true)
      this.#tasks.add(part.data.childTaskId);
    else if (part.type === "turn_start") this.#startTurn(part);
    return true;
  }

  /**
   * Whether a message of one of these tasks is part of the conversation. It is if its role is `main` or the role of
   * the current turn. Messages in other roles, such as `classifier` or `judge`, only support the answer.
   */
  isSpoken({ taskId, data: { modelRole } }: Event<"message_start" | "message_end">): boolean {
    return modelRole === undefined || modelRole === this.#turnRoles.get(taskId);
  }

  #startTurn({ taskId, data: { modelRole } }: Event<"turn_start">): void {
    if (modelRole !== undefined) this.#turnRoles.set(taskId, modelRole);
    else if (this.#turnRoles.size > 0) this.#turnRoles.delete(taskId);
  }
}
