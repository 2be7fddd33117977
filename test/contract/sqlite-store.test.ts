import { describe, expect, test } from "vitest";
import { storeContracts } from "../../src/testing/index.ts";
import { newPath, openStore } from "../runtime/stores/sqlite/store-files.ts";

for (const [name, contract] of Object.entries(storeContracts)) {
  describe(`SQLite store, ${name}`, () => {
    contract({ test, expect, open: async () => openStore(await newPath()) });
  });
}
