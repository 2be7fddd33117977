import type { JsonObject } from "../../../../kernel/index.ts";
import { isLabel } from "../../run-cursor.ts";
import type { Database } from "../db/database.ts";

const noMetadata: JsonObject = Object.freeze({});

/** Stores the metadata of a new run, and returns a copy that no caller can change. Call inside a transaction. */
export function insertMetadata(database: Database, run: number, metadata: JsonObject): JsonObject {
  const text = JSON.stringify(metadata);
  if (text === "{}") return noMetadata;
  database.run("INSERT INTO run_metadata (run, body) VALUES (?, ?)", run, text);
  const stored = JSON.parse(text) as JsonObject;
  for (const [name, value] of Object.entries(stored))
    if (isLabel(name, value))
      database.run("INSERT INTO run_labels (name, value, run) VALUES (?, ?, ?)", name, value, run);
  return stored;
}

/** Deletes the metadata of a run. Call inside a transaction. */
export function removeMetadata(database: Database, run: number): void {
  database.run("DELETE FROM run_metadata WHERE run = ?", run);
  database.run("DELETE FROM run_labels WHERE run = ?", run);
}
