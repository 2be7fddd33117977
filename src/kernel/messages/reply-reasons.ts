import { finishReasonOf, type FinishReason, type StopReason } from "./stop-reason.ts";

/**
 * Why the replies of a session ended, by their text. An architecture may choose an earlier reply as its answer; the
 * finish reason of that reply is then the finish reason of the answer.
 */
export class ReplyReasons {
  /** Replies that ended for another reason than `stop`. */
  readonly #others = new Map<string, FinishReason>();
  #isEmpty = true;

  /** Notes why a reply ended. A later reply with the same text replaces an earlier one. */
  add(text: string, reason: StopReason): void {
    this.#isEmpty = false;
    if (reason !== "stop") this.#others.set(text, finishReasonOf(reason));
    else if (this.#others.size > 0) this.#others.delete(text);
  }

  /** Notes the replies of another session. */
  addAll(replies: ReplyReasons): void {
    this.#isEmpty &&= replies.#isEmpty;
    for (const [text, reason] of replies.#others) this.#others.set(text, reason);
  }

  /**
   * Why the reply with this text ended. `null` if the session has no replies, or the text is empty and no reply that was
   * cut is.
   */
  reasonOf(text: string): FinishReason | null {
    const otherwise = this.#isEmpty || text === "" ? null : "stop";
    return this.#others.get(text) ?? otherwise;
  }
}
