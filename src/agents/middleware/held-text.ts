import type { DeltaFilter, StreamedDelta } from "../../kernel/index.ts";
import type { EditText } from "./message-text.ts";

export interface HeldTextOptions {
  readonly edit: EditText;
  /** How much of the end of `text` an edit may still reach into, once more has come. */
  readonly held: (text: string) => number;
  /** What else there is goes through as it comes. */
  readonly of: readonly StreamedDelta["type"][];
}

/**
 * Shows a streamed text edited, as the whole would be: the end that an edit might still reach into is held back until it is known.
 * Text, thoughts and the arguments of each call are texts of their own.
 */
export class HeldText implements DeltaFilter {
  readonly #options: HeldTextOptions;
  readonly #waiting = new Map<string, StreamedDelta>();

  constructor(options: HeldTextOptions) {
    this.#options = options;
  }

  begin(): void {
    this.#waiting.clear();
  }

  push(delta: StreamedDelta): readonly StreamedDelta[] {
    const { edit, held, of } = this.#options;
    if (!of.includes(delta.type)) return [delta];
    const key = delta.type === "tool_input_delta" ? `${delta.type} ${delta.callId}` : delta.type;
    const text = (this.#waiting.get(key)?.text ?? "") + delta.text;
    const cut = text.length - Math.min(text.length, held(text));
    this.#waiting.set(key, { ...delta, text: text.slice(cut) });
    return cut === 0 ? [] : [{ ...delta, text: edit(text.slice(0, cut)) }];
  }

  flush(): readonly StreamedDelta[] {
    const rest = [...this.#waiting.values()].filter(({ text }) => text !== "");
    this.#waiting.clear();
    return rest.map((delta) => ({ ...delta, text: this.#options.edit(delta.text) }));
  }
}
