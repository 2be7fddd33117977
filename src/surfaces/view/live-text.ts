import type { Delta, TaskId } from "../../kernel/index.ts";

/** The text that a model has written so far of a message that is not recorded yet. */
export interface LiveMessage {
  readonly messageSeq: number;
  readonly attempt: number;
  readonly text: string;
  readonly reasoning: string;
}

/** The texts of messages and the progress of tools that are not recorded yet (rule E2). */
export class LiveText {
  readonly #messages = new Map<TaskId, LiveMessage>();
  readonly #progress = new Map<string, unknown>();

  of(taskId: TaskId): LiveMessage | undefined {
    return this.#messages.get(taskId);
  }

  /** The last progress update of a tool call. */
  progressOf(taskId: TaskId, callId: string): unknown {
    return this.#progress.get(`${taskId} ${callId}`);
  }

  add(delta: Delta): void {
    if (delta.type === "tool_execution_update") {
      this.#progress.set(`${delta.taskId} ${delta.callId}`, delta.update);
      return;
    }
    const { taskId, messageSeq, attempt } = delta;
    const known = this.#messages.get(taskId);
    const isSame = known?.messageSeq === messageSeq && known.attempt === attempt;
    const message = isSame ? known : { messageSeq, attempt, text: "", reasoning: "" };
    this.#messages.set(taskId, delta.type === "message_reset" ? message : withPiece(message, delta));
  }

  /** Must be called when the message of the task was recorded, or when the task has ended. */
  endMessage(taskId: TaskId): void {
    this.#messages.delete(taskId);
  }

  endCall(taskId: TaskId, callId: string): void {
    this.#progress.delete(`${taskId} ${callId}`);
  }
}

/** Adds a piece of text. A delta may be repeated after reconnecting; its offset shows where it belongs. */
function withPiece(
  message: LiveMessage,
  { kind, offset, text }: Extract<Delta, { type: "message_update" }>,
): LiveMessage {
  if (kind === "tool_input") return message;
  const known = message[kind];
  // Nearly every piece continues the text. Cutting it first would copy the whole text each time.
  return { ...message, [kind]: (offset >= known.length ? known : known.slice(0, offset)) + text };
}
