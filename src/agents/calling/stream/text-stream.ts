import { unsaid, type AnswerChange } from "./answer-reader.ts";

/**
 * Combines the changes of an answer into one text. An empty line separates the texts of two messages. It also
 * separates a restarted message from its invalid text, unless `onReset` discards the invalid text.
 */
export class TextStream {
  readonly #onReset: ((validText: string) => void) | undefined;
  /** The text before the current message, and the text of the current message. */
  #before = "";
  #current = "";
  #needsBreak = false;

  /** `onReset` receives the text that stays valid when a new attempt restarts a message. */
  constructor(onReset?: (validText: string) => void) {
    this.#onReset = onReset;
  }

  /** Returns the text that the change adds, with the empty line before it. Empty if the change adds no text. */
  add(change: AnswerChange): string {
    if (change.type === "reset") {
      this.#reset();
      return "";
    }
    const text = change.type === "text" ? change.text : unsaid(change);
    if (text === "") return "";
    if (change.type === "output" || change.isFirst) this.#startMessage();
    const piece = this.#needsBreak ? `\n\n${text}` : text;
    this.#needsBreak = false;
    this.#current += piece;
    return piece;
  }

  #reset(): void {
    this.#needsBreak = this.#onReset === undefined || this.#before !== "";
    this.#current = "";
    this.#onReset?.(this.#before);
  }

  #startMessage(): void {
    this.#before += this.#current;
    this.#current = "";
    this.#needsBreak ||= this.#before !== "";
  }
}
