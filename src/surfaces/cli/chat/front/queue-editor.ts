import { visibleLine, type JsonValue } from "../../../../kernel/index.ts";
import type { QueuedInput } from "../client/conversation.ts";
import { inputText } from "../model/chat-words.ts";
import { inputOf } from "./composer.ts";
import type { Desk } from "./desk.ts";
import { isTextPart } from "./images.ts";

/** A text of the queue that the person edits in the composer. */
interface EditedInput {
  readonly original: QueuedInput;
  /** Ids of the later inputs in the same queue, which stood after the edited one. */
  readonly laterIds: ReadonlySet<string>;
  /** What the composer held before. */
  readonly draft: string;
}

/** Lets a person edit or withdraw single texts of the queue. While a text is edited, no agent can read it. */
export class QueueEditor {
  readonly #desk: Desk;
  #edited: EditedInput | undefined;

  constructor(desk: Desk) {
    this.#desk = desk;
  }

  get isEditing(): boolean {
    return this.#edited !== undefined;
  }

  /**
   * Lets the person choose a text of the queue, and edit or withdraw it. `draft` is the current text of the
   * composer.
   */
  async choose(draft: string): Promise<void> {
    const { conversation, pick, say, setDraft } = this.#desk;
    const chosen = await pick({
      title: "Which text of the queue?",
      choices: conversation.queue.map((value) => ({
        value,
        label: visibleLine(inputText(value.input).slice(0, 300)),
        description: value.kind === "steer" ? "next turn" : "at the end",
      })),
    });
    if (chosen === undefined) return;
    const act = await pick({
      title: visibleLine(inputText(chosen.input).slice(0, 300)),
      choices: [
        { value: "edit", label: "Edit it", key: "e" },
        { value: "withdraw", label: "Withdraw it", key: "w" },
      ],
    });
    if (act === undefined) return;
    const alike = conversation.queue.filter(({ kind }) => kind === chosen.kind);
    const at = alike.findIndex(({ inputId }) => inputId === chosen.inputId);
    const laterIds = new Set(at < 0 ? [] : alike.slice(at + 1).map(({ inputId }) => inputId));
    const [taken] = await conversation.takeOut([chosen]);
    if (taken === undefined) return say("It was too late: the agent has read this text.", "hold");
    if (act === "withdraw") return say("The text is withdrawn.");
    this.#edited = { original: chosen, laterIds, draft };
    setDraft(textOf(chosen.input));
  }

  /** Puts the edited text back to its place in the queue. If the text is empty, it stays withdrawn. */
  async putBack(text: string): Promise<void> {
    const edited = this.#edited;
    if (edited === undefined) return;
    if (text.trim() === "") {
      this.#end(edited);
      return this.#desk.say("The text is withdrawn.");
    }
    const { original } = edited;
    const input = await changedInput(original.input, text);
    this.#end(edited);
    await this.#insert(edited, input);
  }

  /** Puts the text back as it was. */
  async leave(): Promise<void> {
    const edited = this.#edited;
    if (edited === undefined) return;
    this.#end(edited);
    await this.#insert(edited, edited.original.input);
  }

  async #insert({ original, laterIds }: EditedInput, input: JsonValue): Promise<void> {
    const { conversation, say } = this.#desk;
    const later = conversation.queue.filter(({ inputId }) => laterIds.has(inputId));
    await conversation.insert(original.kind, input, later, (unsent) => {
      for (const each of unsent) say(`Not sent: ${inputText(each)}`, "bad");
    });
  }

  #end({ draft }: EditedInput): void {
    this.#edited = undefined;
    this.#desk.setDraft(draft);
  }
}

/** Returns the text of an input, without the names of its images. */
function textOf(input: JsonValue): string {
  const parts = partsOf(input);
  return parts === undefined ? inputText(input) : inputText(parts.filter(isTextPart));
}

/** Returns an input with a new text. The images of the input are kept; if it has none, the new text may name some. */
async function changedInput(input: JsonValue, text: string): Promise<JsonValue> {
  const images = partsOf(input)?.filter((part) => !isTextPart(part)) ?? [];
  return images.length === 0 ? inputOf(text, process.cwd(), []) : [{ type: "text", text }, ...images];
}

function partsOf(input: JsonValue): readonly JsonValue[] | undefined {
  return Array.isArray(input) ? (input as readonly JsonValue[]) : undefined;
}
