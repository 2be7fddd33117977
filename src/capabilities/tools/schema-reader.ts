import {
  Fault,
  type JsonSchema,
  type JsonValue,
  type Schema,
  type StandardResult,
  type StandardSchema,
  copyJson,
  describeValue,
  formatIssue,
  readProperty,
} from "../../kernel/index.ts";
import { JsonSchemaCheck } from "./json-schema-check.ts";

/** Keywords whose members are schemas by name. */
const named = new Set(["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"]);
/** Keywords whose value is data and not a schema. */
const data = new Set(["const", "enum", "default", "examples"]);

/**
 * Throws `invalid_argument` if a pattern of a JSON Schema is not a regular expression, so that the error appears
 * when the tool is created and not at its first call. `schemaName` describes the schema.
 */
function assertPatterns(schemaName: string, schema: object): void {
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

/** Names a schema in faults and creates the fault for an invalid value. */
export interface SchemaOwner {
  /** Description of the schema, for example `the input schema of tool search`. */
  readonly schemaName: string;
  /** Returns the fault for a value with these problems. */
  readonly refuse: (problems: readonly string[]) => Fault;
}

/** Converts an invalid value to what the model probably meant. If this is not clear, returns the same value. */
type Coercion = (schema: JsonSchema, input: JsonValue) => JsonValue;

/** Reads values by a schema: describes the schema as JSON Schema for the model, and validates what the model sends. */
export class SchemaReader<Value> {
  readonly #owner: SchemaOwner;
  readonly #source: SchemaSource<Value>;
  readonly #coercion: Coercion;

  constructor(owner: SchemaOwner, schema: Schema, coercion: Coercion = unchanged) {
    requireSchema(owner.schemaName, schema);
    this.#owner = owner;
    this.#source = isStandard(schema) ? new StandardSource(owner, schema) : new JsonSource(owner, schema);
    this.#coercion = coercion;
  }

  /** The schema as JSON Schema, as the model receives it. */
  get jsonSchema(): JsonSchema {
    return this.#source.jsonSchema;
  }

  /**
   * T1: validates a value and returns it as the schema defines it. Rejects with `invalid_argument`, which tells the
   * model what to fix.
   */
  parse(input: JsonValue): Value | Promise<Value> {
    const reading = this.#source.read(input);
    return reading instanceof Promise
      ? reading.then((found) => this.#parsed(input, found))
      : this.#parsed(input, reading);
  }

  /**
   * Validates a value like `parse`, but returns the problems of an invalid value. The result is synchronous if the
   * schema is synchronous.
   */
  inspect(input: JsonValue): Reading<Value> | Promise<Reading<Value>> {
    return this.#source.read(input);
  }

  #parsed(input: JsonValue, reading: Reading<Value>): Value | Promise<Value> {
    if (reading.problems === undefined) return reading.value;
    // A valid value is never changed, so the value is coerced only if it is invalid.
    const meant = this.#coercion(this.jsonSchema, input);
    if (meant === input) return this.#accepted(reading);
    const again = this.#source.read(meant);
    return again instanceof Promise ? again.then((found) => this.#accepted(found)) : this.#accepted(again);
  }

  #accepted(reading: Reading<Value>): Value | Promise<Value> {
    return reading.problems === undefined
      ? reading.value
      : Promise.reject(this.#owner.refuse(reading.problems));
  }
}

/** Returns the owner of a tool's input schema. */
export function toolSchema(toolName: string): SchemaOwner {
  return {
    schemaName: `the input schema of tool ${toolName}`,
    refuse: (problems) =>
      new Fault(
        "invalid_argument",
        `the arguments of ${toolName} do not match its schema: ${problems.join("; ")}. Fix these and call the tool again`,
      ),
  };
}

function unchanged(_schema: JsonSchema, input: JsonValue): JsonValue {
  return input;
}

/** Throws for a value that is neither a Standard Schema, which may be a function, nor a plain object. */
function requireSchema(schemaName: string, schema: unknown): void {
  if (isStandardValue(schema)) {
    if (typeof readProperty(readProperty(schema, "~standard"), "validate") === "function") return;
  } else if (typeof schema === "object" && schema !== null) {
    const prototype: unknown = Object.getPrototypeOf(schema);
    // An object of another realm has another prototype, which has none itself.
    if (prototype === null || Object.getPrototypeOf(prototype) === null || isValidator(schema)) return;
  }
  throw new Fault(
    "invalid_argument",
    `invalid value ${describeValue(schema)} for ${schemaName}: expected a Standard Schema or a plain JSON Schema; use z.object({ ... }), or { type: "object", properties: { ... } }`,
  );
}

function isStandard(schema: Schema): schema is StandardSchema {
  return "~standard" in schema;
}

/** The value after the schema was applied, or the problems of the value. */
type Reading<Value> =
  | { readonly value: Value; readonly problems?: undefined }
  | { readonly problems: readonly string[] };

interface SchemaSource<Value> {
  readonly jsonSchema: JsonSchema;
  read(input: JsonValue): Reading<Value> | Promise<Reading<Value>>;
}

/** Advice how schemas of a vendor get a JSON Schema, for vendors where a newer version does not help. */
const remedies: Readonly<Record<string, string>> = {
  valibot: "pass toStandardJsonSchema(schema) of @valibot/to-json-schema 1.5 or later",
};

class StandardSource<Value> implements SchemaSource<Value> {
  readonly jsonSchema: JsonSchema;
  readonly #standard: StandardSchema["~standard"];

  constructor(owner: SchemaOwner, schema: StandardSchema) {
    const { jsonSchema, vendor } = schema["~standard"];
    if (jsonSchema === undefined) {
      throw new Fault(
        "invalid_argument",
        `${owner.schemaName} (${vendor}) cannot describe itself as JSON Schema: ${remedies[vendor] ?? `use a newer version of ${vendor}`}, or a plain JSON Schema`,
      );
    }
    this.jsonSchema = described(owner, vendor, jsonSchema);
    this.#standard = schema["~standard"];
  }

  read(input: JsonValue): Reading<Value> | Promise<Reading<Value>> {
    const result = this.#standard.validate(input);
    return "then" in result ? Promise.resolve(result).then(standardReading<Value>) : standardReading(result);
  }
}

function described(
  { schemaName }: SchemaOwner,
  vendor: string,
  jsonSchema: NonNullable<StandardSchema["~standard"]["jsonSchema"]>,
): JsonSchema {
  try {
    return jsonSchema.input({ target: "draft-2020-12" }) as JsonSchema;
  } catch (cause) {
    throw new Fault(
      "invalid_argument",
      `${schemaName} (${vendor}) cannot be written as JSON Schema: ${Fault.from(cause).message}. Use types that JSON has, such as a string for a date, and convert the value in the tool`,
      { cause },
    );
  }
}

function standardReading<Value>(result: StandardResult<unknown>): Reading<Value> {
  return result.issues === undefined
    ? { value: result.value as Value }
    : { problems: result.issues.map(formatIssue) };
}

class JsonSource<Value> implements SchemaSource<Value> {
  readonly jsonSchema: JsonSchema;
  readonly #check: JsonSchemaCheck;

  constructor({ schemaName }: SchemaOwner, schema: JsonSchema) {
    requireJsonSchema(schemaName, schema);
    assertPatterns(schemaName, schema);
    this.jsonSchema = schema;
    this.#check = new JsonSchemaCheck(schemaName, schema);
  }

  read(input: JsonValue): Reading<Value> | Promise<Reading<Value>> {
    const problems = this.#check.problems(input);
    return problems instanceof Promise
      ? problems.then((found) => jsonReading(input, found))
      : jsonReading(input, problems);
  }
}

/** Keywords of JSON Schema. A schema that describes anything has at least one of them. */
const keywords: ReadonlySet<string> = new Set(
  `type properties patternProperties additionalProperties required propertyNames enum const items prefixItems
   anyOf oneOf allOf not if $ref $dynamicRef $defs definitions $schema $id title description format
   minProperties maxProperties minItems maxItems minLength maxLength pattern minimum maximum
   exclusiveMinimum exclusiveMaximum multipleOf dependentRequired`.split(/\s+/u),
);

/**
 * Throws for an object that is not a JSON Schema, such as only the properties of a schema, because every value
 * would match it.
 */
function requireJsonSchema(schemaName: string, schema: JsonSchema): void {
  if (isValidator(schema))
    throw new Fault(
      "invalid_argument",
      `${schemaName} is neither a Standard Schema nor a JSON Schema; use zod 4 or another library of Standard Schema, or a plain JSON Schema`,
    );
  const names = Object.keys(schema);
  const validator = names.find((name) => isValidator(schema[name]) || isStandardValue(schema[name]));
  if (validator !== undefined)
    throw new Fault(
      "invalid_argument",
      `${schemaName} is an object of schemas; wrap it in an object schema: z.object({ ${validator}: ... })`,
    );
  if (names.length === 0 || names.some((name) => keywords.has(name))) return;
  throw new Fault(
    "invalid_argument",
    `${schemaName} has no keyword of JSON Schema; use { type: "object", properties: { ${names[0]}: ... }, required: [...] }, or z.object({ ... })`,
  );
}

/** Whether a value is a schema object of a library and not a JSON Schema, because it has a method to parse. */
function isValidator(value: unknown): boolean {
  return (
    typeof readProperty(value, "parse") === "function" ||
    typeof readProperty(value, "validate") === "function"
  );
}

function isStandardValue(value: unknown): boolean {
  return readProperty(value, "~standard") !== undefined;
}

function jsonReading<Value>(input: JsonValue, problems: readonly string[]): Reading<Value> {
  // A copy, so that the recorded arguments do not change if the tool body changes its input.
  return problems.length === 0 ? { value: copyJson(input) as Value } : { problems };
}
