import type { JsonValue } from "../../kernel/index.ts";

interface Held {
  readonly content: JsonValue;
  /** In a record that retention will not erase: others may go by it. */
  readonly lasts: boolean;
}

/** What records of a run name by hash, and one of them holds (J4). */
export class ContentTable {
  #held: Map<string, Held> | undefined;

  find(name: string): JsonValue | undefined {
    return this.#held?.get(name)?.content;
  }

  has(name: string, { lasting }: { readonly lasting: boolean }): boolean {
    const held = this.#held?.get(name);
    return held !== undefined && (held.lasts || !lasting);
  }

  hold(name: string, content: JsonValue, lasts: boolean): void {
    const known = this.#held?.get(name);
    (this.#held ??= new Map()).set(name, { content, lasts: lasts || known?.lasts === true });
  }
}
