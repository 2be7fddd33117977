import type { Erasure } from "../../../kernel/index.ts";
import type { Chain } from "./chain.ts";
import type { CommitRow } from "./commit-rows.ts";

/** What stands for a commit in the chain, also when words were taken out of it. */
export function contentOf({ body, content }: CommitRow, chain: Chain): string {
  return content ?? chain.content(body);
}

export function erasuresOf({ erases }: { readonly erases?: string | null }): readonly Erasure[] {
  return erases === undefined || erases === null ? [] : (JSON.parse(erases) as Erasure[]);
}
