import { describe, expect, test } from "vitest";
import { memoryStore } from "../../src/runtime/stores/memory/store.ts";
import { sha256 } from "../../src/runtime/process/sha256.ts";
import { storeContracts } from "../../src/testing/contracts/index.ts";

for (const [name, contract] of Object.entries(storeContracts)) {
  describe(`memory store, ${name}`, () => {
    let store = memoryStore({ hash: sha256 });
    const open = async () => (store = memoryStore({ hash: sha256 }));
    contract({ test, expect, open, reopen: async () => store });
  });
}
