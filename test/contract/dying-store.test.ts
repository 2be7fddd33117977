import { describe, expect, test } from "vitest";
import { memoryStore } from "../../src/runtime/stores/memory/store.ts";
import { sha256 } from "../../src/runtime/process/sha256.ts";
import { dyingStore } from "../../src/testing/index.ts";
import { storeContracts } from "../../src/testing/contracts/index.ts";
import type { Store } from "../../src/kernel/index.ts";

/** A wrapper that drops an argument, such as a scope, would let crash tests pass that must fail. */
for (const [name, contract] of Object.entries(storeContracts)) {
  describe(`dying store before its death, ${name}`, () => {
    const wrapped = (): Store => dyingStore(memoryStore({ hash: sha256 }), { at: Infinity, when: "before" });
    let store = wrapped();
    const open = async () => (store = wrapped());
    contract({ test, expect, open, reopen: async () => store });
  });
}
