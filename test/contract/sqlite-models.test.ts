import fc from "fast-check";
import { expect, it } from "vitest";
import { casesOf } from "../effort.ts";
import { models } from "../runtime/models/index.ts";
import { newPath } from "../runtime/stores/sqlite/store-files.ts";
import { sha256 } from "../../src/runtime/process/sha256.ts";
import { sqliteStore } from "../../src/runtime/stores/sqlite/store.ts";

it.each(Object.entries(models))(
  "the SQLite store equals its model in the property: %s",
  async (_says, model) => {
    const path = await newPath();
    let files = 0;
    const open = () => sqliteStore({ path: `${path}.${++files}`, hash: sha256, inbox: { maxDeliveries: 2 } });
    await expect(fc.assert(model(open), { numRuns: casesOf(150, 30) })).resolves.toBeUndefined();
  },
  120_000,
);
