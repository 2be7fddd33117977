import { describe, expect, test } from "vitest";
import { sha256 } from "../../src/runtime/sha256.ts";
import { sqliteStore } from "../../src/runtime/stores/sqlite/store.ts";
import { storeContracts } from "../../src/testing/index.ts";
import { temporaryFolder } from "../runtime/stores/sqlite/temporary-folder.ts";

for (const [name, contract] of Object.entries(storeContracts)) {
  describe(`SQLite store, ${name}`, () => {
    const open = temporaryFolder((path) => sqliteStore({ path, hash: sha256 }));
    contract({ test, expect, open });
  });
}
