/**
 * A map that outlives its entries, which come and go. A `Map` whose entries do is made anew inside, and the table it had refers to the
 * next: where the collector has moved one of them to where it seldom looks, that one keeps all that come after it, and what was in them,
 * until the next full collection. So here what is left moves to another `Map` whenever as many have gone.
 */
export class CompactingMap<Key, Value> {
  #entries = new Map<Key, Value>();
  /** Since the last move. */
  #gone = 0;

  get size(): number {
    return this.#entries.size;
  }

  has(key: Key): boolean {
    return this.#entries.has(key);
  }

  get(key: Key): Value | undefined {
    return this.#entries.get(key);
  }

  set(key: Key, value: Value): void {
    this.#entries.set(key, value);
  }

  delete(key: Key): void {
    if (!this.#entries.has(key)) return;
    const isLast = this.#entries.size === 1;
    if (!isLast) this.#entries.delete(key);
    if (++this.#gone < this.#entries.size) return;
    this.#gone = 0;
    this.#entries = isLast ? new Map() : new Map(this.#entries);
  }

  /** In the order in which they came. */
  values(): MapIterator<Value> {
    return this.#entries.values();
  }

  [Symbol.iterator](): MapIterator<[Key, Value]> {
    return this.#entries[Symbol.iterator]();
  }
}
