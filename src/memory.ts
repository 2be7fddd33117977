import { FullTextMemory, memorySchema } from "./capabilities/memory/index.ts";
import type { Clock, IdSource, Memory } from "./kernel/index.ts";
import { Database } from "./runtime/stores/sqlite/db/database.ts";
import { migrate } from "./runtime/stores/sqlite/db/migrate.ts";
import { systemClock, uuidSource } from "./runtime/process/system-sources.ts";

export interface OpenMemoryOptions {
  /** Of the file; several processes may share it. Not a store's. */
  readonly path: string;
  readonly clock?: Clock;
  readonly ids?: IdSource;
}

/** What agents remember across sessions, in one SQLite file. */
export async function openMemory({
  path,
  clock = systemClock,
  ids = uuidSource,
}: OpenMemoryOptions): Promise<Memory> {
  const file = await Database.open({ path, durability: "full", busyLimitMs: 10_000 });
  try {
    await file.patiently(() => migrate(file, memorySchema));
    // Y5: what is forgotten is overwritten, not only unlinked.
    file.exec("PRAGMA secure_delete = ON");
  } catch (error) {
    file.close();
    throw error;
  }
  return new FullTextMemory({ file, clock, ids });
}
