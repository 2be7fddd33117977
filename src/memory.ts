import { FullTextMemory, memorySchema } from "./capabilities/memory/index.ts";
import {
  checkOptions,
  describeValue,
  Fault,
  optionNames,
  type Clock,
  type IdSource,
  type Memory,
} from "./kernel/index.ts";
import { Database } from "./runtime/stores/sqlite/db/database.ts";
import { migrate } from "./runtime/stores/sqlite/db/migrate.ts";
import { systemClock, uuidSource } from "./runtime/process/system-sources.ts";

export interface OpenMemoryOptions {
  /** Path of the SQLite file. Several processes may share it; it must not be the file of a store. */
  readonly path: string;
  readonly clock?: Clock;
  readonly ids?: IdSource;
}

const knownOptions = optionNames<OpenMemoryOptions>({ path: true, clock: true, ids: true });

/**
 * Opens a memory that agents share across sessions, in one SQLite file.
 *
 * @example
 *
 * ```ts
 * import { Agent } from "reeve";
 * import { openMemory } from "reeve/memory";
 *
 * const memory = await openMemory({ path: "memory.db" });
 * const agent = new Agent({ name: "assistant", model: "anthropic/claude-sonnet-5", memory });
 * ```
 */
export async function openMemory(options: OpenMemoryOptions): Promise<Memory & AsyncDisposable> {
  checkOptions("openMemory()", options, knownOptions);
  const { path, clock = systemClock, ids = uuidSource } = options;
  if (typeof path !== "string" || path === "")
    throw new Fault(
      "invalid_argument",
      `invalid path ${describeValue(path)} of openMemory(): expected the path of a file, such as "./memory.db"`,
    );
  const file = await Database.open({ path, durability: "full", busyLimitMs: 10_000 });
  try {
    // Y5: forgotten content, and an index that a migration replaces, is overwritten in the file.
    file.exec("PRAGMA secure_delete = ON");
    await file.patiently(() => migrate(file, memorySchema));
  } catch (error) {
    file.close();
    throw error;
  }
  return new FullTextMemory({ file, clock, ids });
}
