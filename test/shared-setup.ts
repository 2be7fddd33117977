/** What a setup has started or built for the tests of a project, and how it is removed. */
export interface Prepared<Value> {
  readonly value: Value;
  readonly remove: () => Promise<void>;
}

interface Shared {
  readonly prepared: Promise<Prepared<unknown>>;
  users: number;
}

/**
 * Where the setups keep what they share. Each project loads the setups anew, so that it must be a place that all
 * projects see.
 */
const shared = ((globalThis as { reeveSetups?: Map<string, Shared> }).reeveSetups ??= new Map());

/**
 * Prepares something once for all projects that need it, under a name. The last project that calls `remove` removes it. A build
 * or a server takes one to two seconds of processor time.
 */
export async function preparedOnce<Value>(
  name: string,
  prepare: () => Promise<Prepared<Value>>,
): Promise<Prepared<Value>> {
  const known: Shared = shared.get(name) ?? { prepared: prepare(), users: 0 };
  shared.set(name, known);
  known.users++;
  const { value, remove } = (await known.prepared) as Prepared<Value>;
  return {
    value,
    remove: async () => {
      if (--known.users > 0) return;
      shared.delete(name);
      await remove();
    },
  };
}
