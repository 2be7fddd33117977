import { describe, expect, inject, test, onTestFinished } from "vitest";
import type { Store } from "../../src/kernel/index.ts";
import { sha256 } from "../../src/runtime/process/sha256.ts";
import { storeAt } from "../../src/runtime/stores/postgres/store.ts";
import { storeContracts } from "../../src/testing/contracts/index.ts";
import { isFull } from "../effort.ts";
import { emptySchema, newSchema } from "./schemas.ts";

const schema = newSchema();

/** Opens a store whose every statement and transaction runs on a new connection, as a transaction pooler may do. */
async function openPooled(): Promise<Store> {
  const at = {
    url: inject("postgresUrl"),
    schema,
    connections: 4,
    timeoutMs: 10_000,
    retryForMs: 10_000,
    maxUses: 1,
  };
  const store = await storeAt(at, { hash: sha256, watchEveryMs: 20, pollMs: 600_000 });
  onTestFinished(() => store.close());
  return store;
}

/** Suites whose statements write, lock and claim. All other statements are sent in the same two ways. */
const chosen = isFull
  ? (["journal", "flights", "leases", "mailbox"] as const)
  : (["journal", "leases"] as const);

for (const name of chosen)
  describe(`PostgreSQL store with a connection for each transaction, ${name}`, () => {
    const open = async (): Promise<Store> => {
      await emptySchema(schema);
      return openPooled();
    };
    storeContracts[name]?.({ test, expect, open, reopen: openPooled });
  });
