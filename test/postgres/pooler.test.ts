import { beforeAll, describe, expect, inject, test, onTestFinished } from "vitest";
import type { Store } from "../../src/kernel/index.ts";
import { sha256 } from "../../src/runtime/process/sha256.ts";
import { postgresStore } from "../../src/runtime/stores/postgres/index.ts";
import { storeAt } from "../../src/runtime/stores/postgres/store.ts";
import { storeContracts } from "../../src/testing/contracts/index.ts";
import { isFull } from "../effort.ts";
import { emptySchema, newSchema, query } from "./schemas.ts";

const schema = newSchema();

/** Lets every write fail whose transaction has another isolation level than the store needs. */
async function refuseOtherLevels(): Promise<void> {
  await query(`CREATE FUNCTION ${schema}.refuse_other_levels() RETURNS trigger LANGUAGE plpgsql AS $body$ BEGIN
      IF current_setting('transaction_isolation') = 'read committed' THEN RETURN NULL; END IF;
      RAISE EXCEPTION '% of % is %', TG_OP, TG_TABLE_NAME, current_setting('transaction_isolation');
    END $body$;
    DO $$ DECLARE name text; BEGIN
      FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = '${schema}' LOOP
        EXECUTE format('CREATE TRIGGER level AFTER INSERT OR UPDATE OR DELETE ON %I.%I EXECUTE FUNCTION ${schema}.refuse_other_levels()', '${schema}', name);
      END LOOP;
    END $$`);
}

beforeAll(async () => {
  await (await postgresStore({ url: inject("postgresUrl"), schema, hash: sha256 })).close();
  await refuseOtherLevels();
});

/**
 * Opens a store whose every statement and transaction runs on a new connection, as a transaction pooler may do. The server gives each
 * connection another isolation level than the store needs.
 */
async function openPooled(): Promise<Store> {
  const level = "-c default_transaction_isolation=serializable";
  const at = {
    url: `${inject("postgresUrl")}?options=${encodeURIComponent(level)}`,
    schema,
    connections: 4,
    timeoutMs: 60_000,
    retryForMs: 60_000,
    maxUses: 1,
  };
  const store = await storeAt(at, { hash: sha256, watchEveryMs: 20, pollMs: 600_000 });
  onTestFinished(() => store.close());
  return store;
}

/** Suites whose statements write, lock and claim. All other statements are sent to the server in the same ways. */
const chosen = isFull ? (["journal", "flights", "leases", "mailbox"] as const) : (["journal"] as const);

for (const name of chosen)
  describe(`PostgreSQL store behind a pooler, on a server with the default serializable, ${name}`, () => {
    const open = async (): Promise<Store> => {
      await emptySchema(schema);
      return openPooled();
    };
    storeContracts[name]?.({ test, expect, open, reopen: openPooled });
  });
