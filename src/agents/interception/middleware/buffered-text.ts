import type { DeltaFilter, StreamedDelta } from "../../../kernel/index.ts";
import type { EditText } from "./message-text.ts";

export interface BufferedTextOptions {
  readonly edit: EditText;
  /** Returns how many characters at the end of the text may still change when more text arrives. */
  readonly held: (text: string) => number;
  /** The delta types that are edited. Other deltas pass unchanged. */
  readonly of: readonly StreamedDelta["type"][];
}

/**
 * Edits a streamed text as if it were complete: the end that may still change is held back until more text has arrived.
 * Text, reasoning and the arguments of each call are edited separately.
 */
export class BufferedText implements DeltaFilter {
  readonly #options: BufferedTextOptions;
  readonly #waiting = new Map<string, StreamedDelta>();

  constructor(options: BufferedTextOptions) {
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
