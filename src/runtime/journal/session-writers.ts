import type { SessionChange, SessionId, TaskId } from "../../kernel/index.ts";

/** A task that has entries in a session. */
interface SessionWriter {
  readonly taskId: TaskId;
  readonly sessionId: SessionId;
}

/** Which tasks of a run have entries in which sessions. */
export class SessionWriters {
  /** Created with the first entry. */
  #writers: SessionWriter[] | undefined;

  note(change: SessionChange): void {
    if (change.type === "append" || change.type === "say") {
      const { sessionId } = change;
      const { taskId } = change.type === "say" ? change.batch : change.entry;
      if (taskId !== null && !this.sessionsOf(taskId).includes(sessionId))
        (this.#writers ??= []).push({ taskId, sessionId });
    }
    if (change.type === "remove") {
      const { sessionId, taskId } = change;
      this.#writers = this.#writers?.filter(
        (writer) => writer.taskId !== taskId || writer.sessionId !== sessionId,
      );
    }
  }

  /** Sessions in which the task has entries. */
  sessionsOf(taskId: TaskId): readonly SessionId[] {
    if (this.#writers === undefined) return empty;
    const sessions: SessionId[] = [];
    for (const writer of this.#writers) if (writer.taskId === taskId) sessions.push(writer.sessionId);
    return sessions;
  }
}

const empty: readonly never[] = [];
