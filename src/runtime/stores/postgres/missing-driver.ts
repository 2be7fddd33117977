import { Fault } from "../../../kernel/index.ts";

/** Throws `dependency_missing` if a module could not be loaded because the package `pg` is not installed. */
export function explainMissingDriver(error: unknown): never {
  if (!(error instanceof Error) || !("code" in error) || error.code !== "ERR_MODULE_NOT_FOUND") throw error;
  throw new Fault("dependency_missing", "a PostgreSQL store needs the package pg: npm install pg", {
    cause: error,
  });
}
