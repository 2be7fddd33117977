import { indexInBatch, type MessageBatch } from "../../../kernel/index.ts";

/** What was said at one go in a session, by the ids of its entries: to find one costs the same however long the conversation is. */
export class SaidIndex {
  readonly #byStem = new Map<string, MessageBatch[]>();

  has(id: string): boolean {
    // What comes after a stem is a number alone.
    const said = this.#byStem.get(id.slice(0, Math.max(id.lastIndexOf("/"), 0)));
    return said?.some((each) => indexInBatch(each, id) >= 0) ?? false;
  }

  /** Whether something was said under it. */
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
