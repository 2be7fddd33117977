import type { Random } from "../../kernel/index.ts";

/** Random numbers that follow from a seed. Sources with different names are independent of each other. @advanced */
export class SeededRandom implements Random {
  readonly #seed: string;
  #state: number;

  constructor(seed: string) {
    this.#seed = seed;
    this.#state = hashOf(seed);
  }

  /** Returns a number of at least 0 and below 1, by mulberry32. */
  next(): number {
    this.#state = (this.#state + 0x6d2b_79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** Returns a whole number of at least 0 and below `limit`. */
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  /** Returns a number of at least `from` and below `to`. */
  between(from: number, to: number): number {
    return from + this.next() * (to - from);
  }

  /** Returns another source that depends only on the seed and the name. */
  named(name: string): SeededRandom {
    return new SeededRandom(`${this.#seed} ${name}`);
  }
}

/** Computes the FNV-1a hash and mixes its bits, so that similar seeds differ in all bits. */
function hashOf(text: string): number {
  let hash = 0x811c_9dc5;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x0100_0193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85eb_ca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2_ae35);
  return (hash ^ (hash >>> 16)) | 0;
}
