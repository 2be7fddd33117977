import type { Erasure } from "../../../kernel/index.ts";

export function erasuresOf({ erases }: { readonly erases?: string | null }): readonly Erasure[] {
  return erases === undefined || erases === null ? [] : (JSON.parse(erases) as Erasure[]);
}
