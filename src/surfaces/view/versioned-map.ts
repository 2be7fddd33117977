/** Number of values per chunk. With larger chunks, a change takes more time and a new version less. */
const chunkSize = 64;

/** The keys of a map in the order of insertion. Versions of the map share them, because keys are only added. */
interface Keys<Key> {
  readonly list: Key[];
  readonly indexes: Map<Key, number>;
}

/** The content of a `VersionedMap` at one moment. Later changes of the map do not change it. */
export class MapVersion<Key, Value> {
  protected readonly keys: Keys<Key>;
  protected chunks: readonly Value[][];
  protected count: number;

  constructor(keys: Keys<Key>, chunks: readonly Value[][], count: number) {
    this.keys = keys;
    this.chunks = chunks;
    this.count = count;
  }

  /** Number of values. */
  get size(): number {
    return this.count;
  }

  get(key: Key): Value | undefined {
    const index = this.keys.indexes.get(key);
    return index === undefined ? undefined : this.at(index);
  }

  /** Returns the value with this index in the order of insertion. */
  at(index: number): Value | undefined {
    return index < this.count ? this.chunks[Math.floor(index / chunkSize)]?.[index % chunkSize] : undefined;
  }

  *[Symbol.iterator](): IterableIterator<Value> {
    for (const [number, chunk] of this.chunks.entries())
      yield* chunk.slice(0, Math.max(0, this.count - number * chunkSize));
  }

  /** Whether another version belongs to the same map and has the same keys. */
  hasKeysOf(other: MapVersion<Key, Value>): boolean {
    return this.keys === other.keys && this.count === other.count;
  }

  /**
   * Yields the values that are new compared with `before`, an earlier version of the same map. Takes O(size / 64),
   * and O(64) for each changed chunk.
   */
  *changedSince(before: MapVersion<Key, Value>): IterableIterator<Value> {
    for (const [number, chunk] of this.chunks.entries()) {
      const known = before.chunks[number];
      if (known === chunk && this.count === before.count) continue;
      for (let at = number * chunkSize; at < Math.min(this.count, (number + 1) * chunkSize); at++) {
        const value = chunk[at % chunkSize] as Value;
        if (value !== before.at(at)) yield value;
      }
    }
  }

  /** Returns a map that starts with this content. Takes O(size). */
  copy(): VersionedMap<Key, Value> {
    const list = this.keys.list.slice(0, this.count);
    const indexes = new Map(list.map((key, index) => [key, index]));
    return new VersionedMap({ list, indexes }, [...this.chunks], this.count);
  }
}

/**
 * A map in insertion order that can return immutable versions of itself. The map and its versions share chunks of
 * values; before the map changes a shared chunk, it copies the chunk. A change takes O(1), a new version O(size /
 * 64). Keys are never removed.
 */
export class VersionedMap<Key, Value> extends MapVersion<Key, Value> {
  declare protected chunks: Value[][];
  /** The chunks that no version shares. */
  #own = new Set<Value[]>();

  constructor(keys: Keys<Key> = { list: [], indexes: new Map() }, chunks: Value[][] = [], count = 0) {
    super(keys, chunks, count);
  }

  /** Returns a map with these values, in their order. */
  static of<Key, Value>(values: Iterable<Value>, keyOf: (value: Value) => Key): VersionedMap<Key, Value> {
    const map = new VersionedMap<Key, Value>();
    for (const value of values) map.set(keyOf(value), value);
    return map;
  }

  set(key: Key, value: Value): void {
    const index = this.keys.indexes.get(key) ?? this.#insert(key);
    this.#ownChunk(Math.floor(index / chunkSize))[index % chunkSize] = value;
  }

  /** Replaces the value of a key by the result of `change`. Does nothing if the key does not exist. */
  update(key: Key, change: (value: Value) => Value): void {
    const value = this.get(key);
    if (value !== undefined) this.set(key, change(value));
  }

  /** Returns the current content. */
  version(): MapVersion<Key, Value> {
    this.#own.clear();
    return new MapVersion(this.keys, [...this.chunks], this.count);
  }

  #insert(key: Key): number {
    const index = this.count++;
    this.keys.list.push(key);
    this.keys.indexes.set(key, index);
    return index;
  }

  #ownChunk(number: number): Value[] {
    const chunk = this.chunks[number];
    if (chunk !== undefined && this.#own.has(chunk)) return chunk;
    const own = chunk === undefined ? [] : [...chunk];
    this.#own.add(own);
    this.chunks[number] = own;
    return own;
  }
}
