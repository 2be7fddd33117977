import type { Hash } from "../../kernel/index.ts";

/** Returns a digest for ids and keys, with at most 40 letters, digits and `-`, whatever the `Hash` returns. */
export function idDigest(text: string, hash: Hash): string {
  return hash(text)
    .replaceAll(/[^A-Za-z0-9]/gu, "-")
    .slice(0, 40);
}
