import type { JsonObject, JsonValue } from "../../../kernel/index.ts";

declare const type: unique symbol;

/** A JSON Schema with the TypeScript type of the values that it describes. */
export interface Schema<out Value = unknown> {
  /** The schema in the dialect of OpenAPI 3.1 (JSON Schema 2020-12). */
  readonly json: JsonObject;
  /** The named schemas to which `json` refers, by their names. */
  readonly definitions: Readonly<Record<string, JsonObject>>;
  /** Whether an object may lack the property. */
  readonly isOptional?: boolean;
  /** Exists only for the compiler; no schema object has this property. */
  readonly [type]?: Value;
}

/** The schema of an optional property of an object. */
export interface OptionalSchema<out Value = unknown> extends Schema<Value> {
  readonly isOptional: true;
}

/** The type of the values of a schema. */
export type ValueOf<Of> = Of extends Schema<infer Value> ? Value : never;

type Shape = Readonly<Record<string, Schema>>;
type OptionalKey<Of extends Shape> = {
  [Key in keyof Of]: Of[Key] extends OptionalSchema ? Key : never;
}[keyof Of];
type ObjectOf<Of extends Shape> = {
  readonly [Key in Exclude<keyof Of, OptionalKey<Of>>]: ValueOf<Of[Key]>;
} & { readonly [Key in OptionalKey<Of>]?: ValueOf<Of[Key]> };

const none: Schema["definitions"] = Object.freeze({});

/** Creates a schema from handwritten JSON Schema, for values of a type of the kernel. */
export function schemaOf<Value>(json: JsonObject, parts: readonly Schema[] = []): Schema<Value> {
  return { json, definitions: definitionsOf(parts) };
}

/** A text. */
export function text(facts: JsonObject = {}): Schema<string> {
  return schemaOf({ type: "string", ...facts });
}

/** A text of a closed list. */
export function choice<const Value extends string>(
  values: readonly Value[],
  facts: JsonObject = {},
): Schema<Value> {
  return schemaOf({ type: "string", enum: values, ...facts });
}

/** An integer. */
export function integer(facts: JsonObject = {}): Schema<number> {
  return schemaOf({ type: "integer", ...facts });
}

/** A number. */
export function number(facts: JsonObject = {}): Schema<number> {
  return schemaOf({ type: "number", ...facts });
}

/** `true` or `false`. */
export function flag(facts: JsonObject = {}): Schema<boolean> {
  return schemaOf({ type: "boolean", ...facts });
}

/** Any JSON value. */
export function anyJson(facts: JsonObject = {}): Schema<JsonValue> {
  return schemaOf(facts);
}

/** An object with any properties. */
export function anyObject(facts: JsonObject = {}): Schema<JsonObject> {
  return schemaOf({ type: "object", ...facts });
}

/** A list of values of one schema. */
export function list<Value>(of: Schema<Value>, facts: JsonObject = {}): Schema<readonly Value[]> {
  return schemaOf({ type: "array", items: of.json, ...facts }, [of]);
}

/** A value of a schema, or `null`. */
export function nullable<Value>(of: Schema<Value>): Schema<Value | null> {
  return schemaOf({ anyOf: [of.json, { type: "null" }] }, [of]);
}

/** Marks a property of an object as optional. */
export function optional<Value>(of: Schema<Value>): OptionalSchema<Value> {
  return { ...of, isOptional: true };
}

/** Creates the schema of an object that has exactly these properties. */
export function object<const Of extends Shape>(properties: Of, facts: JsonObject = {}): Schema<ObjectOf<Of>> {
  const entries = Object.entries(properties);
  const required = entries.filter(([, { isOptional }]) => isOptional !== true).map(([name]) => name);
  return schemaOf(
    {
      type: "object",
      properties: Object.fromEntries(entries.map(([name, { json }]) => [name, json])),
      ...(required.length > 0 && { required }),
      additionalProperties: false,
      ...facts,
    },
    Object.values(properties),
  );
}

/** Gives a schema a name by which other schemas refer to it. */
export function named<Value>(name: string, of: Schema<Value>): Schema<Value> {
  return {
    json: { $ref: `#/components/schemas/${name}` },
    definitions: { ...of.definitions, [name]: of.json },
  };
}

/** The named schemas of all parts. */
export function definitionsOf(parts: readonly Schema[]): Schema["definitions"] {
  const all = parts.map(({ definitions }) => definitions).filter((each) => Object.keys(each).length > 0);
  return all.length === 0 ? none : (Object.assign({}, ...all) as Schema["definitions"]);
}
