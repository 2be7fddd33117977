import type { FileSchema } from "../../../../src/runtime/stores/sqlite/db/migrate.ts";
import { storeSchema } from "../../../../src/runtime/stores/sqlite/db/schema.ts";

/** The format number that a later version of Reeve could have. */
export const plantedFormat = storeSchema.oldest + storeSchema.migrations.length + 1;

/** The tables of a store with one more format, in which runs have a colour and the names of sessions are in capitals. */
export const plantedSchema: FileSchema = {
  ...storeSchema,
  migrations: [
    ...storeSchema.migrations,
    {
      changes: "runs have a colour, and sessions have names in capitals",
      script: "ALTER TABLE runs ADD COLUMN colour TEXT; UPDATE sessions SET title = upper(title);",
    },
  ],
};

/** The same tables as `plantedSchema`, with a last migration statement that fails. */
export function plantedWith(statement: string): FileSchema {
  const [first, ...others] = plantedSchema.migrations.toReversed();
  if (first === undefined) throw new Error("the planted schema has no migration");
  return {
    ...plantedSchema,
    migrations: [...others.toReversed(), { ...first, script: `${first.script} ${statement}` }],
  };
}
