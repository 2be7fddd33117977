import {
  FullTextMemory,
  memorySchema,
  PostgresMemory,
  postgresTables,
} from "../capabilities/memory/index.ts";
import {
  describeValue,
  Fault,
  type Clock,
  type IdSource,
  type Memory,
  is,
  optionTable,
  type OptionKinds,
} from "../kernel/index.ts";
import { Database } from "../runtime/stores/sqlite/db/database.ts";
import { createTables } from "../runtime/stores/sqlite/db/migrate.ts";
import { explainMissingDriver } from "../runtime/stores/postgres/missing-driver.ts";
import { systemClock, uuidSource } from "../runtime/process/system-sources.ts";

/** Options of `openMemory`. */
export interface OpenMemoryOptions {
  /**
   * Path of the SQLite file. Several processes may share it. It must not be the file of a store. Set either `path`
   * or `url`.
   */
  readonly path?: string;
  /**
   * `postgres://USER:PASSWORD@HOST:PORT/DATABASE` of a PostgreSQL database. `?schema=NAME` selects the schema of its tables.
   * Default schema: `reeve_memory`.
   */
  readonly url?: string;
  readonly clock?: Clock;
  readonly ids?: IdSource;
}

const knownOptions = optionTable({
  path: is.text(),
  url: is.text(),
  clock: is.any,
  ids: is.any,
} satisfies OptionKinds<OpenMemoryOptions>);

/**
 * Opens a memory that agents share across sessions, in one SQLite file or in a PostgreSQL database.
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
  const { path, url, clock = systemClock, ids = uuidSource } = knownOptions.read("openMemory()", options);
  if (url !== undefined) {
    if (path !== undefined)
      throw new Fault("invalid_argument", "invalid options of openMemory(): set path or url, not both");
    return openPostgresMemory(url, clock, ids);
  }
  if (typeof path !== "string" || path === "")
    throw new Fault(
      "invalid_argument",
      `invalid path ${describeValue(path)} of openMemory(): expected the path of a file, such as "./memory.db"`,
    );
  const file = await Database.open({ path, durability: "full", busyLimitMs: 10_000 });
  try {
    // Y5: forgotten content is overwritten in the file.
    file.exec("PRAGMA secure_delete = ON");
    await file.patiently(() => createTables(file, memorySchema));
  } catch (error) {
    file.close();
    throw error;
  }
  return new FullTextMemory({ file, clock, ids });
}

async function openPostgresMemory(url: string, clock: Clock, ids: IdSource): Promise<PostgresMemory> {
  if (typeof url !== "string" || !/^postgres(?:ql)?:\/\//u.test(url))
    throw new Fault(
      "invalid_argument",
      "invalid url of openMemory(): expected postgres://USER:PASSWORD@HOST:PORT/DATABASE",
    );
  const { openTables } = await import("../runtime/stores/postgres/open-tables.ts").catch(
    explainMissingDriver,
  );
  const tables = { meta: "memory_meta", tables: postgresTables, oldest: 1, migrations: [] };
  const database = await openTables({ url, otherwise: "reeve_memory", caller: "openMemory()", tables });
  const memory = new PostgresMemory({ database, clock, ids });
  // Completes what a dead process left partly forgotten. If this fails, the next forget() reports the error.
  memory.purge().catch(() => undefined);
  return memory;
}
