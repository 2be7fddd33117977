import type { Records } from "../../../kernel/index.ts";
import { namespaces } from "../channel-records.ts";

/** Deletes the records of channels that have expired, at most 1,000 of each kind. Another process may do the same. */
export async function sweep(records: Records, now: number): Promise<void> {
  for (const namespace of [namespaces.seen, namespaces.questions, namespaces.codes, namespaces.notified])
    for (const { key, version } of await records.due(namespace, now, 1_000))
      await records.delete({ namespace, key }, version);
}
