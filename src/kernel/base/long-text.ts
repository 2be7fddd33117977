import type { Hash } from "./hash.ts";

/** Length of a value's JSON text, in characters, from which a store keeps the value as a content. */
export const contentThreshold = 4_096;

/** By hash function and by the frozen object that holds a long text: the text's hash by the name of its member. */
const known = new WeakMap<Hash, WeakMap<object, Map<string | number, string>>>();

/**
 * Whether a text is represented by its hash: in digests, and as a content in a store. A text with half a surrogate pair
 * has no UTF-8 form, and some versions of `node:sqlite` cut a text at a NUL character.
 */
export function isLongText(text: string): boolean {
  return text.length >= contentThreshold && text.isWellFormed() && !text.includes("\0");
}

/**
 * Returns the hash of a text that is a member of an object. A text in a frozen object is hashed once: the result of a
 * tool is hashed when it is recorded, and not again for the digest of the transcript and for the session. Bench:
 * `sessions`, row "large results".
 */
export function longTextHash(holder: object, member: string | number, text: string, hash: Hash): string {
  if (!Object.isFrozen(holder)) return hash(text);
  let holders = known.get(hash);
  if (holders === undefined) known.set(hash, (holders = new WeakMap()));
  let hashes = holders.get(holder);
  if (hashes === undefined) holders.set(holder, (hashes = new Map()));
  let digest = hashes.get(member);
  if (digest === undefined) hashes.set(member, (digest = hash(text)));
  return digest;
}
