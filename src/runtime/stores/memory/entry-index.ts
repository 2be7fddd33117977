import { indexInBatch, type MessageBatch } from "../../../kernel/index.ts";

/**
 * The batches of a session by the ids of their entries. A lookup takes constant time, however long the conversation is.
 */
export class EntryIndex {
  readonly #byStem = new Map<string, MessageBatch[]>();

  has(id: string): boolean {
    // An entry id of a batch is its stem, a slash and a number.
    const said = this.#byStem.get(id.slice(0, Math.max(id.lastIndexOf("/"), 0)));
    return said?.some((each) => indexInBatch(each, id) >= 0) ?? false;
  }

  /** Whether a batch has this stem. */
  knows(stem: string): boolean {
    return this.#byStem.has(stem);
  }

  add(said: MessageBatch): void {
    const { stem } = said;
    const known = this.#byStem.get(stem);
    if (known === undefined) this.#byStem.set(stem, [said]);
    else known.push(said);
  }

  remove(gone: ReadonlySet<MessageBatch>): void {
    for (const stem of new Set(Array.from(gone, (said) => said.stem))) {
      const left = this.#byStem.get(stem)?.filter((said) => !gone.has(said)) ?? [];
      if (left.length === 0) this.#byStem.delete(stem);
      else this.#byStem.set(stem, left);
    }
  }
}
