import type { JsonObject, JsonSchema, JsonValue, ModelRequest } from "../../kernel/index.ts";

/** Providers whose API refuses a strict output schema that is outside its subset of JSON Schema. */
const strictProviders: ReadonlySet<string> = new Set(["openai", "azure"]);

/** Keywords that a strict schema must not contain. */
const refusedKeywords: ReadonlySet<string> = new Set([
  "allOf",
  "oneOf",
  "not",
  "if",
  "then",
  "else",
  "patternProperties",
  "prefixItems",
  "dependentRequired",
  "dependentSchemas",
]);

/** The fields of a request that describe the required format of the answer. */
type FormatFields = Pick<ModelRequest, "responseFormat" | "providerOptions">;

/** The namespace of the options of every server that is compatible with OpenAI. */
const compatible = "openaiCompatible";

/**
 * Returns the output format of a request in the form that the provider accepts. OpenAI, also behind a compatible
 * server (`isCompatible`), refuses a strict schema with an open object or an optional property, and the AI SDK
 * requests strictness by default. If open objects are the only obstacle, they are closed; any other schema is sent
 * without strictness. A `strictJsonSchema` of the caller is kept.
 */
export function strictFormat(provider: string, request: FormatFields, isCompatible = false): FormatFields {
  const { responseFormat, providerOptions } = request;
  const schema = responseFormat?.type === "json" ? responseFormat.schema : undefined;
  const isChosen = [...strictProviders, compatible, provider].some(
    (name) => providerOptions?.[name]?.["strictJsonSchema"] !== undefined,
  );
  const isStrict = isCompatible || strictProviders.has(provider);
  if (schema === undefined || isChosen || !isStrict) return request;
  const closed = schema["type"] === "object" ? closedSchema(schema) : undefined;
  if (closed !== undefined)
    return { ...request, responseFormat: { ...responseFormat, type: "json", schema: closed } };
  const name = strictProviders.has(provider) ? "openai" : compatible;
  const options = { ...providerOptions?.[name], strictJsonSchema: false };
  return { ...request, providerOptions: { ...providerOptions, [name]: options } };
}

/** Returns the schema with closed objects, or `undefined` if it is not a strict schema even then. */
function closedSchema(schema: JsonSchema): JsonSchema | undefined {
  const { properties } = schema;
  const isObject = schema["type"] === "object" || properties !== undefined;
  if (isObject && !hasOnlyRequired(schema)) return undefined;
  const closed: Record<string, JsonValue> = {};
  for (const [key, value] of Object.entries(schema)) {
    if (refusedKeywords.has(key)) return undefined;
    const part = closedMember(key, value);
    if (part === undefined) return undefined;
    closed[key] = part;
  }
  return isObject ? { ...closed, additionalProperties: false } : closed;
}

/** Whether an object allows no properties except its own and requires all of them. */
function hasOnlyRequired({ properties, required, additionalProperties = false }: JsonSchema): boolean {
  if (additionalProperties !== false || !isJsonObject(properties)) return false;
  const names = Array.isArray(required) ? required : [];
  return Object.keys(properties).every((name) => names.includes(name));
}

function closedMember(key: string, value: JsonValue): JsonValue | undefined {
  if (key === "properties" || key === "$defs" || key === "definitions") {
    if (!isJsonObject(value)) return undefined;
    const entries = Object.entries(value).map(([name, part]) => [name, closedPart(part)] as const);
    return entries.some(([, part]) => part === undefined)
      ? undefined
      : (Object.fromEntries(entries) as JsonValue);
  }
  if (key === "items") return closedPart(value);
  if (key !== "anyOf") return value;
  const parts = Array.isArray(value) ? value.map(closedPart) : [undefined];
  return parts.includes(undefined) ? undefined : (parts as JsonValue);
}

function closedPart(part: JsonValue): JsonSchema | undefined {
  return isJsonObject(part) ? closedSchema(part) : undefined;
}

function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
