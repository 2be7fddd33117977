import { canonicalJson, sealJson, type Hash } from "../../kernel/index.ts";

/** Texts that were named of late: runs of an agent share its instructions. */
const mostTexts = 64;

/**
 * The hashes by which turns name what they hold. What many runs hold, such as an agent's list of tools, is looked at, frozen and hashed
 * once.
 */
export class ContentHashes {
  readonly #hash: Hash;
  readonly #ofTexts = new Map<string, string>();
  /** Of what cannot change any more. */
  readonly #ofValues = new WeakMap<object, string>();

  constructor(hash: Hash) {
    this.#hash = hash;
  }

  ofText(text: string): string {
    const known = this.#ofTexts.get(text);
    if (known !== undefined) return known;
    const name = this.#hash(text);
    if (this.#ofTexts.size === mostTexts) this.#ofTexts.clear();
    this.#ofTexts.set(text, name);
    return name;
  }

  /** J10: refuses what is not JSON. J1: freezes the rest. */
  ofJson(value: object, where: string): string {
    const known = this.#ofValues.get(value);
    if (known !== undefined) return known;
    const content: unknown = value;
    sealJson(content, where);
    const name = this.#hash(canonicalJson(content));
    this.#ofValues.set(value, name);
    return name;
  }
}
