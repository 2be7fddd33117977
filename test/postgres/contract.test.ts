import { describe, expect, test } from "vitest";
import { storeContracts } from "../../src/testing/contracts/index.ts";
import { sampleOf } from "../effort.ts";
import { emptySchema, newSchema, openSchema, query } from "./schemas.ts";

const schema = newSchema();
/**
 * Number of connections of a store, which is enough for concurrent calls. Starting connections is most of the time of a
 * case.
 */
const connections = 2;

/** The suites of what PostgreSQL does with statements of its own: claims, appends, changes and locks. SQLite shares the others. */
const own: ReadonlySet<string> = new Set([
  "journal",
  "events",
  "mailbox",
  "flights",
  "leases",
  "turns",
  "claims",
  "takeOvers",
  "flows",
  "queuedMail",
]);
const isSimultaneous = (title: string): boolean => /concurrent|at once|connection|two processes/u.test(title);

for (const [name, contract] of Object.entries(storeContracts)) {
  describe(`PostgreSQL store, ${name}`, () => {
    const open = async () => {
      await emptySchema(schema);
      // Polling announces changes that the suites do not expect.
      return openSchema(schema, { pollMs: 600_000, connections });
    };
    const loseWorker = async (workerId: string): Promise<void> => {
      await query(`DELETE FROM ${schema}.workers WHERE worker_id = '${workerId}'`);
    };
    const declare = own.has(name) ? test : sampleOf(test, isSimultaneous);
    contract({ test: declare, expect, open, reopen: () => openSchema(schema, { connections }), loseWorker });
  });
}
