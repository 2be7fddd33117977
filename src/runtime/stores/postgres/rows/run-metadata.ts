import type { JsonObject } from "../../../../kernel/index.ts";
import { isLabel } from "../../run-cursor.ts";
import type { Queries } from "../db/queries.ts";

/** Stores the metadata of a new run. Call inside a transaction. */
export async function insertMetadata(queries: Queries, run: number, metadata: JsonObject): Promise<void> {
  const text = JSON.stringify(metadata);
  if (text === "{}") return;
  await queries.run("INSERT INTO {run_metadata} (run, body) VALUES ($1, $2)", run, text);
  for (const [name, value] of Object.entries(JSON.parse(text) as JsonObject))
    if (isLabel(name, value))
      await queries.run("INSERT INTO {run_labels} (name, value, run) VALUES ($1, $2, $3)", name, value, run);
}

/** Deletes the metadata of a run. Call inside a transaction. */
export async function removeMetadata(queries: Queries, run: number): Promise<void> {
  await queries.run("DELETE FROM {run_metadata} WHERE run = $1", run);
  await queries.run("DELETE FROM {run_labels} WHERE run = $1", run);
}
