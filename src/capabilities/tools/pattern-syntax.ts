import { Fault } from "../../kernel/index.ts";

/** Keywords whose members are schemas by name. */
const named = new Set(["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"]);
/** Keywords whose value is data and no schema. */
const data = new Set(["const", "enum", "default", "examples"]);

/**
 * Throws `invalid_argument` if a pattern of a JSON Schema is not a regular expression, so that a tool is refused when it
 * is created and not at its first call. `schemaName` describes the schema.
 */
export function assertPatterns(schemaName: string, schema: object): void {
  assertIn(schemaName, schema, new Set());
}

function assertIn(schemaName: string, schema: unknown, seen: Set<object>): void {
  if (typeof schema !== "object" || schema === null || seen.has(schema)) return;
  seen.add(schema);
  for (const [keyword, value] of Object.entries(schema) as readonly [string, unknown][]) {
    if (keyword === "pattern" && typeof value === "string") assertPattern(schemaName, value);
    if (keyword === "patternProperties" && typeof value === "object" && value !== null)
      for (const source of Object.keys(value)) assertPattern(schemaName, source);
    if (data.has(keyword)) continue;
    const inner: readonly unknown[] =
      named.has(keyword) && typeof value === "object" && value !== null ? Object.values(value) : [value];
    for (const each of inner) assertIn(schemaName, each, seen);
  }
}

function assertPattern(schemaName: string, source: string): void {
  try {
    void new RegExp(source, "u");
  } catch (cause) {
    throw new Fault(
      "invalid_argument",
      `invalid pattern ${JSON.stringify(source)} in ${schemaName}: ${Fault.from(cause).message}; use the syntax of JavaScript with the flag u`,
      { cause },
    );
  }
}
