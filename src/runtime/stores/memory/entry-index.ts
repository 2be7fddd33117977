import { indexInBatch, type EntryVisibility, type MessageBatch } from "../../../kernel/index.ts";

/** A batch of entries that were added together. Single entries are created when they are read. */
export interface PlacedSaid {
  readonly said: MessageBatch;
  readonly visibility: EntryVisibility;
}

/**
 * The batches of a session by the ids of their entries. A lookup takes constant time, however long the conversation is.
 */
export class EntryIndex {
  readonly #byStem = new Map<string, PlacedSaid[]>();

  /** Returns the batch that contains the entry. */
  find(id: string): PlacedSaid | undefined {
    // An entry id of a batch is its stem, a slash and a number.
    const placed = this.#byStem.get(id.slice(0, Math.max(id.lastIndexOf("/"), 0)));
    return placed?.find(({ said }) => indexInBatch(said, id) >= 0);
  }

  /** Whether a batch has this stem. */
  knows(stem: string): boolean {
    return this.#byStem.has(stem);
  }

  add(placed: PlacedSaid): void {
    const { stem } = placed.said;
    const known = this.#byStem.get(stem);
    if (known === undefined) this.#byStem.set(stem, [placed]);
    else known.push(placed);
  }

  replace(old: PlacedSaid, placed: PlacedSaid): void {
    const known = this.#byStem.get(old.said.stem);
    const index = known?.indexOf(old) ?? -1;
    if (index >= 0) known?.splice(index, 1, placed);
  }

  remove(gone: ReadonlySet<PlacedSaid>): void {
    for (const stem of new Set(Array.from(gone, ({ said }) => said.stem))) {
      const left = this.#byStem.get(stem)?.filter((placed) => !gone.has(placed)) ?? [];
      if (left.length === 0) this.#byStem.delete(stem);
      else this.#byStem.set(stem, left);
    }
  }
}
