import type { Dependencies } from "../../kernel/index.ts";

export interface BranchedItems<Item> {
  readonly role: string;
  readonly items: readonly Item[];
  /** `false`: one after another. What comes of it is the same. */
  readonly parallel: boolean;
}

/** The same work on several things, each in a branch of its own (J2); results in the order of the things. */
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
