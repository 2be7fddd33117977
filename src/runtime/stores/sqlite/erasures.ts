import type { Commit, Erasure } from "../../../kernel/index.ts";
import type { Chain } from "./chain.ts";
import type { CommitRow } from "./commit-rows.ts";

/** What stands for a commit's events in the chain, also when their words are gone. */
export function contentsOf(row: CommitRow, { events = [] }: Commit, chain: Chain): readonly string[] {
  return row.contents === null ? chain.contents(events) : (JSON.parse(row.contents) as string[]);
}

export function erasuresOf({ erases }: { readonly erases?: string | null }): readonly Erasure[] {
  return erases === undefined || erases === null ? [] : (JSON.parse(erases) as Erasure[]);
}
