import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { storeContracts } from "../../src/testing/contracts/index.ts";
import { newPath, openStore } from "../runtime/stores/sqlite/store-files.ts";

for (const [name, contract] of Object.entries(storeContracts)) {
  describe(`SQLite store, ${name}`, () => {
    let path = "";
    const open = async () => openStore((path = await newPath()));
    const loseWorker = async (): Promise<void> => {
      for (const file of await readdir(`${path}-workers`)) await rm(join(`${path}-workers`, file));
    };
    contract({ test, expect, open, reopen: () => openStore(path), loseWorker });
  });
}
