import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach } from "vitest";
import type { Store } from "../../src/kernel/index.ts";
import { memoryStore, sha256 } from "../../src/runtime/index.ts";
import { sqliteStore } from "../../src/runtime/stores/sqlite/store.ts";

const folders: string[] = [];

/** The two stores, by name. A test prepares a store once and opens it once per process that it simulates. */
export const twoStores: readonly [string, () => Promise<() => Promise<Store>>][] = [
  [
    "memory",
    async () => {
      const store = memoryStore({ hash: sha256 });
      return async () => ({ ...store, close: async () => undefined });
    },
  ],
  [
    "sqlite",
    async () => {
      const folder = await mkdtemp(join(tmpdir(), "reeve-two-"));
      folders.push(folder);
      return () => sqliteStore({ path: join(folder, "store.db"), hash: sha256, watchEveryMs: 5 });
    },
  ],
];

export function removeStoresAfterEach(): void {
  afterEach(async () => {
    // A runtime that closes after this hook may still write a file of its store.
    for (const folder of folders.splice(0))
      await rm(folder, { recursive: true, force: true, maxRetries: 20 });
  });
}
