import {
  AnsweringTasks,
  messageText,
  rootTaskId,
  type Delta,
  type Event,
  type JsonValue,
  type TaskId,
} from "../../../kernel/index.ts";

/** The change that a part of a stream makes to the answer of its run. */
export type AnswerChange =
  /** A piece of a message. `isFirst` marks the first piece of the message. */
  | { readonly type: "text"; readonly text: string; readonly isFirst: boolean }
  /** The pieces of the current message are invalid. Its text starts again. */
  | { readonly type: "reset" }
  /** The run's root task has ended with this output. `said` is the text of the last message. */
  | { readonly type: "output"; readonly output: JsonValue; readonly said: string };

/** A message that a task is writing. */
interface OpenMessage {
  readonly seq: number;
  shown: string;
}

/**
 * Finds the answer in the events and deltas of a run. It is the text of the root task, or of the task to which the
 * conversation was handed over. Text of other tasks, and of model calls in supporting roles such as `classifier` or
 * `judge`, is left out.
 */
export class AnswerReader {
  readonly #answering = new AnsweringTasks();
  readonly #open = new Map<TaskId, OpenMessage>();
  #said = "";

  /** Reads the next part. Returns `undefined` if it does not change the answer. */
  read(part: Event | Delta): AnswerChange | undefined {
    if (!this.#answering.includes(part)) return undefined;
    switch (part.type) {
      case "message_start":
        if (this.#answering.isSpoken(part)) this.#open.set(part.taskId, { seq: part.seq, shown: "" });
        return undefined;
      case "message_update":
        return part.kind === "text" ? this.#show(part) : undefined;
      case "message_reset":
        return this.#reset(part);
      case "message_end":
        return this.#answering.isSpoken(part)
          ? this.#end(part.taskId, messageText(part.data.message))
          : undefined;
      case "task_end":
        if (part.taskId !== rootTaskId) return undefined;
        return { type: "output", output: part.data.output ?? null, said: this.#said };
      default:
        return undefined;
    }
  }

  #show({ taskId, messageSeq, offset, text }: Delta & { type: "message_update" }): AnswerChange | undefined {
    const message = this.#open.get(taskId);
    if (message?.seq !== messageSeq) return undefined;
    // A reader that joined late may receive pieces that overlap.
    const added = text.slice(Math.max(0, message.shown.length - offset));
    if (added === "" || offset > message.shown.length) return undefined;
    return this.#add(message, added);
  }

  #add(message: OpenMessage, text: string): AnswerChange {
    const isFirst = message.shown === "";
    message.shown += text;
    return { type: "text", text, isFirst };
  }

  #reset({ taskId, messageSeq }: Delta & { type: "message_reset" }): AnswerChange | undefined {
    const message = this.#open.get(taskId);
    if (message?.seq !== messageSeq || message.shown === "") return undefined;
    message.shown = "";
    return { type: "reset" };
  }

  /** Returns the text of a message that no delta has shown: the whole message if it was not streamed, or its rest. */
  #end(taskId: TaskId, text: string): AnswerChange | undefined {
    const message = this.#open.get(taskId) ?? { seq: -1, shown: "" };
    this.#open.delete(taskId);
    if (text.trim() !== "") this.#said = text;
    const rest = text.startsWith(message.shown) ? text.slice(message.shown.length) : "";
    return rest === "" ? undefined : this.#add(message, rest);
  }
}

/**
 * Returns the part of an output that no message has contained yet, as text. Empty if the last message contained it.
 */
export function unsaid({ output, said }: Extract<AnswerChange, { type: "output" }>): string {
  if (typeof output !== "string") return said === "" && output !== null ? JSON.stringify(output) : "";
  if (output.trim() === said.trim()) return "";
  return said !== "" && output.startsWith(said) ? output.slice(said.length).trimStart() : output;
}
