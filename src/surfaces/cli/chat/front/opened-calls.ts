import { visibleLine } from "../../../../kernel/index.ts";
import { argumentOf } from "../../../view/excerpt.ts";
import type { PlacedItem } from "../model/chat-item.ts";

/** The display state of one part of the conversation. */
interface OpenedLook {
  readonly isOpen: boolean;
  /** Whether the person has marked it. */
  readonly isMarked: boolean;
}

/**
 * Decides which calls are shown open: all calls or none, except for the calls that the person has opened or closed
 * individually.
 */
export class OpenedCalls {
  #isAllOpen = false;
  readonly #others = new Set<number>();
  #marked: number | undefined;

  /** Opens everything, or closes it. */
  toggleAll(): void {
    this.#isAllOpen = !this.#isAllOpen;
    this.#others.clear();
  }

  /** Marks the call before or after the marked call. After the last call, no call is marked. */
  move(items: readonly PlacedItem[], by: -1 | 1): void {
    const calls = items.filter(({ item }) => item.kind === "call");
    const at = calls.findIndex(({ id }) => id === this.#marked);
    if (at < 0) this.#marked = by < 0 ? calls.at(-1)?.id : undefined;
    else this.#marked = calls[Math.max(0, at + by)]?.id;
  }

  /** Opens or closes the marked call. Returns `false` if no call is marked. */
  toggleMarked(items: readonly PlacedItem[]): boolean {
    const id = this.#markedOf(items)?.id;
    if (id === undefined) return false;
    if (!this.#others.delete(id)) this.#others.add(id);
    return true;
  }

  look(id: number): OpenedLook {
    return { isOpen: this.#isAllOpen !== this.#others.has(id), isMarked: id === this.#marked };
  }

  /**
   * Describes the marked call in words, because it may be above the part of the conversation that the terminal
   * shows.
   */
  words(items: readonly PlacedItem[]): string | undefined {
    const item = this.#markedOf(items)?.item;
    if (item?.kind !== "call") return undefined;
    return `${visibleLine(item.name)} ${argumentOf(item.input).slice(0, 60)}`.trimEnd();
  }

  #markedOf(items: readonly PlacedItem[]): PlacedItem | undefined {
    return this.#marked === undefined ? undefined : items.find(({ id }) => id === this.#marked);
  }
}
