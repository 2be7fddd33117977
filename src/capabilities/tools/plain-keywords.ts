import type { JsonObject, JsonSchema, JsonValue } from "../../kernel/index.ts";

export type Scalar = string | number | boolean | null;

/** What a plain schema may say. */
export interface PlainKeywords {
  readonly type?: string | readonly string[];
  readonly const?: Scalar;
  readonly enum?: readonly Scalar[];
  readonly anyOf?: readonly PlainKeywords[];
  readonly oneOf?: readonly PlainKeywords[];
  readonly allOf?: readonly PlainKeywords[];
  readonly maximum?: number;
  readonly minimum?: number;
  readonly exclusiveMaximum?: number;
  readonly exclusiveMinimum?: number;
  readonly maxLength?: number;
  readonly minLength?: number;
  readonly pattern?: string;
  readonly maxItems?: number;
  readonly minItems?: number;
  readonly items?: PlainKeywords;
  readonly maxProperties?: number;
  readonly minProperties?: number;
  readonly required?: readonly string[];
  readonly propertyNames?: PlainKeywords;
  readonly properties?: Readonly<Record<string, PlainKeywords>>;
  readonly additionalProperties?: boolean | PlainKeywords;
  /** Not checked, as by ajv, which knows no formats unless it is given some. */
  readonly format?: string;
}

/** `undefined` unless all it says is plain and well formed, at any depth. */
export function plainKeywords({ $schema, ...says }: JsonSchema): PlainKeywords | undefined {
  const isKnown = $schema === undefined || dialects.includes($schema);
  return isKnown && isPlain(says) ? says : undefined;
}

/** In these, what is plain means the same. */
const dialects: readonly JsonValue[] = [
  "https://json-schema.org/draft/2020-12/schema",
  "http://json-schema.org/draft-07/schema#",
  "http://json-schema.org/draft-07/schema",
];

type Form = (value: JsonValue) => boolean;

const forms: ReadonlyMap<string, Form> = new Map<string, Form>([
  ["$comment", isText],
  ["additionalProperties", (value) => isFlag(value) || isPlain(value)],
  ["allOf", (value) => isListOf(isPlain, value)],
  ["anyOf", (value) => isListOf(isPlain, value)],
  ["const", isScalar],
  ["default", () => true],
  ["deprecated", isFlag],
  ["description", isText],
  ["enum", (value) => isSetOf(isScalar, value)],
  ["examples", (value) => Array.isArray(value)],
  ["exclusiveMaximum", Number.isFinite],
  ["exclusiveMinimum", Number.isFinite],
  ["format", isText],
  ["items", isPlain],
  ["maxItems", isCount],
  ["maxLength", isCount],
  ["maxProperties", isCount],
  ["maximum", Number.isFinite],
  ["minItems", isCount],
  ["minLength", isCount],
  ["minProperties", isCount],
  ["minimum", Number.isFinite],
  ["oneOf", (value) => isListOf(isPlain, value)],
  ["pattern", isPattern],
  ["properties", hasPlainMembers],
  ["propertyNames", isPlain],
  ["readOnly", isFlag],
  ["required", (value) => isEmpty(value) || isSetOf(isText, value)],
  ["title", isText],
  ["type", (value) => isType(value) || isSetOf(isType, value)],
  ["writeOnly", isFlag],
]);

function isPlain(schema: JsonValue): schema is JsonObject & PlainKeywords {
  return isObject(schema) && Object.entries(schema).every(([keyword, value]) => forms.get(keyword)?.(value));
}

function hasPlainMembers(value: JsonValue): boolean {
  return isObject(value) && !Object.hasOwn(value, "__proto__") && Object.values(value).every(isPlain);
}

function isListOf(form: Form, value: JsonValue): boolean {
  return Array.isArray(value) && value.length > 0 && value.every(form);
}

function isSetOf(form: Form, value: JsonValue): boolean {
  return (
    isListOf(form, value) && new Set(value as readonly JsonValue[]).size === (value as JsonValue[]).length
  );
}

function isEmpty(value: JsonValue): boolean {
  return Array.isArray(value) && value.length === 0;
}

function isText(value: JsonValue): boolean {
  return typeof value === "string";
}

function isFlag(value: JsonValue): boolean {
  return typeof value === "boolean";
}

function isScalar(value: JsonValue): boolean {
  return value === null || isText(value) || isFlag(value) || Number.isFinite(value);
}

function isCount(value: JsonValue): boolean {
  return Number.isInteger(value) && (value as number) >= 0;
}

const types: readonly JsonValue[] = ["string", "number", "integer", "boolean", "null", "object", "array"];

function isType(value: JsonValue): boolean {
  return types.includes(value);
}

function isPattern(value: JsonValue): boolean {
  try {
    return typeof value === "string" && Boolean(new RegExp(value, "u"));
  } catch {
    // Malformed, then: that is said by who reads what is not plain.
    return false;
  }
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
