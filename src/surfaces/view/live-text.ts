import type { Delta, TaskId } from "../../kernel/index.ts";

/** What a model has written of a message that is not recorded yet. */
export interface LiveMessage {
  readonly messageSeq: number;
  readonly attempt: number;
  readonly text: string;
  readonly reasoning: string;
}

/** E2: the texts of messages and the progress of tools that are not recorded yet. */
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

  /** The message of the task is recorded, or its task has ended. */
  endMessage(taskId: TaskId): void {
    this.#messages.delete(taskId);
  }

  endCall(taskId: TaskId, callId: string): void {
    this.#progress.delete(`${taskId} ${callId}`);
  }
}

/** A delta may be repeated after reconnecting; its offset says where it belongs. */
function withPiece(
  message: LiveMessage,
  { kind, offset, text }: Extract<Delta, { type: "message_update" }>,
): LiveMessage {
  if (kind === "tool_input") return message;
  const known = message[kind];
  // Nearly every piece continues the text. Cutting it first would copy the whole text each time.
  return { ...message, [kind]: (offset >= known.length ? known : known.slice(0, offset)) + text };
}
