import { canonicalJson, sealJson, type Hash } from "../../kernel/index.ts";

/**
 * Maximum number of texts whose hash is cached. A cache is useful, because runs of one agent have the same
 * instructions.
 */
const maxTexts = 64;

/**
 * Hashes with which turns refer to their contents. A content that many runs share, such as the tool list of an
 * agent, is checked, frozen and hashed only once.
 */
export class ContentHashes {
  readonly #hash: Hash;
  readonly #byText = new Map<string, string>();
  /** Hashes of frozen values. */
  readonly #byValue = new WeakMap<object, string>();

  constructor(hash: Hash) {
    this.#hash = hash;
  }

  ofText(text: string): string {
    const cached = this.#byText.get(text);
    if (cached !== undefined) return cached;
    const hash = this.#hash(text);
    if (this.#byText.size === maxTexts) this.#byText.clear();
    this.#byText.set(text, hash);
    return hash;
  }

  /** J10: throws if the value is not JSON. J1: freezes the value. `where` names the value in the error message. */
  ofJson(value: object, where: string): string {
    const cached = this.#byValue.get(value);
    if (cached !== undefined) return cached;
    const content: unknown = value;
    sealJson(content, where);
    const hash = this.#hash(canonicalJson(content));
    this.#byValue.set(value, hash);
    return hash;
  }
}
