import type { JsonObject } from "../../../kernel/index.ts";
import { isLabel } from "../run-cursor.ts";
import { erase, run, type Work } from "./work.ts";

const noMetadata: JsonObject = Object.freeze({});

/** Stores the metadata of a new run, and returns a copy that no caller can change. Call inside a transaction. */
export function* insertMetadata(id: number, metadata: JsonObject): Work<JsonObject> {
  const text = JSON.stringify(metadata);
  if (text === "{}") return noMetadata;
  yield* run("INSERT INTO {run_metadata} (run, body) VALUES ($1, $2)", id, text);
  const stored = JSON.parse(text) as JsonObject;
  for (const [name, value] of Object.entries(stored))
    if (isLabel(name, value))
      yield* run("INSERT INTO {run_labels} (name, value, run) VALUES ($1, $2, $3)", name, value, id);
  return stored;
}

/** Erases the metadata of a run. Call inside a transaction. */
export function* eraseMetadata(id: number): Work<void> {
  yield* erase("DELETE FROM {run_metadata} WHERE run = $1", id);
  yield* erase("DELETE FROM {run_labels} WHERE run = $1", id);
}
