import { describe, expect, test } from "vitest";
import { storeContracts } from "../../src/testing/contracts/index.ts";
import { emptySchema, newSchema, openSchema, query } from "./schemas.ts";

const schema = newSchema();
/** Enough for calls side by side. The start of a connection is most of what a case costs. */
const connections = 2;

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
    contract({ test, expect, open, reopen: () => openSchema(schema, { connections }), loseWorker });
  });
}
