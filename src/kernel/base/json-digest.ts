import type { Hash } from "./hash.ts";
import { canonicalJson } from "./json.ts";

/**
 * The digest of a JSON value, computed on first use and then cached (F1). The value must not change after construction.
 */
export class JsonDigest {
  static readonly ofNull: JsonDigest = new JsonDigest(null);
  readonly #value: unknown;
  #hash: Hash | undefined;
  #digest = "";

  constructor(value: unknown) {
    this.#value = value;
  }

  digest(hash: Hash): string {
    if (this.#hash !== hash) {
      this.#digest = hash(canonicalJson(this.#value));
      this.#hash = hash;
    }
    return this.#digest;
  }
}
