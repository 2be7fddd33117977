import type { JsonObject, RunRecord } from "../../../kernel/index.ts";
import { tenantText } from "../codec/stored-run.ts";
import { isLabel } from "../run-cursor.ts";
import { erase, run, type Work } from "./work.ts";

const noMetadata: JsonObject = Object.freeze({});

const insertLabel =
  "INSERT INTO {run_labels} (name, value, tenant, created_at, run) VALUES ($1, $2, $3, $4, $5)";

/** Stores the metadata of a new run, and returns a copy that no caller can change. Call inside a transaction. */
export function* insertMetadata(
  id: number,
  { metadata, tenantId, createdAt }: Pick<RunRecord, "metadata" | "tenantId" | "createdAt">,
): Work<JsonObject> {
  const text = JSON.stringify(metadata);
  if (text === "{}") return noMetadata;
  yield* run("INSERT INTO {run_metadata} (run, body) VALUES ($1, $2)", id, text);
  const stored = JSON.parse(text) as JsonObject;
  for (const [name, value] of Object.entries(stored))
    if (isLabel(name, value)) yield* run(insertLabel, name, value, tenantText(tenantId), createdAt, id);
  return stored;
}

/** Erases the metadata of a run, and the comments of its scores (Z7). Call inside a transaction. */
export function* eraseMetadata(id: number): Work<void> {
  yield* erase("DELETE FROM {run_metadata} WHERE run = $1", id);
  yield* erase("DELETE FROM {run_labels} WHERE run = $1", id);
  yield* erase("UPDATE {run_scores} SET comment = NULL WHERE run = $1 AND comment IS NOT NULL", id);
}
