import { randomBytes } from "node:crypto";
import type { Records } from "../../../../kernel/index.ts";

const place = { namespace: "server", key: "mcp-state-key" } as const;

/**
 * The key with which the server signs the state that MCP hosts carry while they ask a person. It is stored, so that an
 * answer is accepted after a restart, and by every process on the store.
 */
export async function storedStateKey(records: Records): Promise<string> {
  const stored = await records.get(place);
  if (stored !== undefined) return stored.value as string;
  await records.put({ ...place, value: randomBytes(32).toString("hex") }, "absent");
  // If another process was faster, its key counts.
  return storedStateKey(records);
}
