import type { Dependencies } from "../../kernel/index.ts";

/** Items that are processed in a role, each in its own branch. */
export interface BranchedItems<Item> {
  /** Role whose model is called. Names the branches `<role>_1`, `<role>_2`, ... */
  readonly role: string;
  readonly items: readonly Item[];
  /** Whether to process the items in parallel. `false` processes them one after another, with the same results. */
  readonly parallel: boolean;
}

/**
 * Processes every item in its own branch and returns the results in the order of the items. J2: each branch has its
 * own step addresses, so that the order in which they run does not matter.
 */
export async function mapInBranches<Item, Value>(
  deps: Dependencies,
  { role, items, parallel }: BranchedItems<Item>,
  work: (deps: Dependencies, item: Item, index: number) => Promise<Value>,
): Promise<readonly Value[]> {
  if (!parallel || items.length < 2) {
    const scoped = deps.scopeForWorker(role);
    const values: Value[] = [];
    for (const [index, item] of items.entries()) values.push(await work(scoped, item, index));
    return values;
  }
  const branches = items.map((item, index) => [
    `${role}_${index + 1}`,
    (ctx: Dependencies["ctx"]) => work(deps.scopeForWorker(role, ctx), item, index),
  ]);
  const values = await deps.ctx.parallel(
    Object.fromEntries(branches) as Record<string, (ctx: Dependencies["ctx"]) => Promise<Value>>,
  );
  return items.map((_, index) => values[`${role}_${index + 1}`] as Value);
}
