import { parse } from "yaml";
import { Fault, type JsonObject } from "../../../kernel/index.ts";

/** Maximum size of a YAML text, in bytes. For hostile nesting, a parser needs more than linear time and stack. */
const maxYamlBytes = 16 * 1024;
const maxAliases = 20;

/**
 * Reads YAML as JSON. Throws `invalid_argument` with the path of the file for a text that is too long, expands too many
 * aliases, is nested too deeply or contains a value that JSON does not have.
 */
export function parseYaml(text: string, path: string): unknown {
  if (Buffer.byteLength(text) > maxYamlBytes)
    throw new Fault("invalid_argument", `invalid YAML in ${path}: it is longer than ${maxYamlBytes} bytes`);
  let value: unknown;
  try {
    value = parse(text, {
      maxAliasCount: maxAliases,
      schema: "core",
      prettyErrors: false,
      logLevel: "error",
    });
  } catch (error) {
    const [line = ""] = (error as Error).message.split("\n");
    throw new Fault("invalid_argument", `invalid YAML in ${path}: ${line}`, { cause: error });
  }
  return value;
}

/** Reads YAML like `parseYaml`, as a mapping with text keys. An empty text is an empty mapping. */
export function parseYamlObject(text: string, path: string): JsonObject {
  const value = parseYaml(text, path) ?? {};
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as JsonObject;
  throw new Fault("invalid_argument", `invalid YAML in ${path}: expected a mapping with keys and values`);
}
