import { writeSync } from "node:fs";
import { StatementSync } from "node:sqlite";
import { sha256 } from "../../src/runtime/index.ts";
import { sqliteStore } from "../../src/runtime/stores/sqlite/store.ts";
import { createRun } from "../../src/testing/contracts/store-fixtures.ts";
import { runWorkerDuty } from "../../src/testing/worker-duty.ts";
import { contentBytes, largeEntry, session } from "./stored-contents.ts";

const original: unknown = Reflect.get(StatementSync.prototype, "run");

/** Kills this process before transaction number `at` is committed, counted from 1. */
function dieBeforeCommit(at: number): void {
  let commits = 0;
  Reflect.set(StatementSync.prototype, "run", function counted(this: StatementSync, ...values: unknown[]) {
    if (this.sourceSQL === "COMMIT" && ++commits === at) {
      writeSync(2, `killed before transaction ${at}\n`);
      process.kill(process.pid, "SIGKILL");
    }
    return Reflect.apply(original as StatementSync["run"], this, values as []);
  });
}

/** Puts, shares and deletes contents of several pieces. Only the shared content remains. */
await runWorkerDuty(async ({ file, data }) => {
  const store = await sqliteStore({ path: file, hash: sha256 });
  dieBeforeCommit(Number(data));
  const [one, two] = [await createRun(store, "one"), await createRun(store, "two")];
  const hash = await store.contents.put({ runId: one }, contentBytes);
  await store.contents.share(hash, { from: { runId: one }, to: { runId: two } });
  await store.sessions.apply([largeEntry], { owner: { tenantId: null, userId: null } });
  await store.journal.delete(one);
  await store.sessions.delete(session);
  await store.close();
  return [two];
});
