import { capitalized, grouped } from "../base/format.ts";
import { visibleText, type JsonObject, type JsonSchema, type JsonValue } from "../../src/kernel/index.ts";

/** How a person enters the value of a property. */
type FieldKind = "text" | "number" | "integer" | "flag" | "choice" | "json";

/** One property of an input, as a field of a form. */
export interface SchemaField {
  readonly name: string;
  readonly label: string;
  readonly hint: string;
  readonly kind: FieldKind;
  readonly choices: readonly string[];
  readonly isRequired: boolean;
  readonly schema: JsonObject;
}

/** The text that a person has entered, by the name of the property. A flag is `true` or empty. */
export type Entered = Readonly<Record<string, string>>;

/** The entered value, and descriptions of the errors in its fields, by the names of the fields. */
export interface EnteredValue {
  readonly value: JsonObject;
  readonly problems: Readonly<Record<string, string>>;
}

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Returns the value of a name. The name comes from a schema, so it may also be the name of an inherited property,
 * such as `constructor`.
 */
export function ownOf<Value>(values: Readonly<Record<string, Value>>, name: string): Value | undefined {
  return Object.hasOwn(values, name) ? values[name] : undefined;
}

/** The fields of a schema of an object, the required ones first. */
export function fieldsOf({ properties, required }: JsonSchema): readonly SchemaField[] {
  const needed = Array.isArray(required) ? (required as readonly JsonValue[]) : [];
  const fields = Object.entries(isObject(properties) ? properties : {}).map(
    ([name, property]): SchemaField => {
      const schema = withoutNull(isObject(property) ? property : {});
      const { title, description } = schema;
      const choices = Array.isArray(schema["enum"]) ? (schema["enum"] as readonly JsonValue[]) : [];
      return {
        name,
        label: typeof title === "string" ? title : name,
        hint: hintOf(typeof description === "string" ? description : "", limitsOf(schema)),
        kind: kindOf(schema, choices),
        choices: choices.filter((each) => typeof each === "string"),
        isRequired: needed.includes(name),
        schema,
      };
    },
  );
  return fields.toSorted((one, other) => Number(other.isRequired) - Number(one.isRequired));
}

/**
 * Returns the schema of a value that may also be `null`, without `null`. Libraries describe an optional text in
 * this way.
 */
function withoutNull(schema: JsonObject): JsonObject {
  const { type, anyOf, ...rest } = schema;
  const onlyType = besidesNull(type);
  if (typeof onlyType === "string") return { ...schema, type: onlyType };
  const only = besidesNull(anyOf);
  return isObject(only) ? { ...rest, ...only } : schema;
}

/** Returns the other one of two types or schemas, one of which is `null`. */
function besidesNull(list: JsonValue | undefined): JsonValue | undefined {
  if (!Array.isArray(list) || list.length !== 2) return undefined;
  const [only, other] = list.filter((one: JsonValue) => !isNull(one));
  return other === undefined ? only : undefined;
}

function isNull(one: JsonValue): boolean {
  return one === "null" || (isObject(one) && one["type"] === "null");
}

function kindOf({ type }: JsonObject, choices: readonly JsonValue[]): FieldKind {
  if (choices.length > 0 && choices.every((each) => typeof each === "string")) return "choice";
  if (type === "string") return "text";
  if (type === "boolean") return "flag";
  return type === "number" || type === "integer" ? type : "json";
}

/** Whether a limit is useful for a person. Libraries also write the limits of exact integers. */
function isLimit(limit: JsonValue | undefined): limit is number {
  return typeof limit === "number" && Math.abs(limit) !== Number.MAX_SAFE_INTEGER;
}

/**
 * Returns a text about the purpose of a field and its allowed values. Limits are put in brackets after a
 * description, or form a sentence if there is none.
 */
function hintOf(description: string, limits: string): string {
  if (limits === "") return description;
  return description === "" ? `${capitalized(limits)}.` : `${description} (${limits})`;
}

function limitsOf(schema: JsonObject): string {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, maxLength } = schema;
  const parts = [
    isLimit(minimum) ? `at least ${grouped(minimum)}` : "",
    isLimit(maximum) ? `at most ${grouped(maximum)}` : "",
    isLimit(exclusiveMinimum) ? `more than ${grouped(exclusiveMinimum)}` : "",
    isLimit(exclusiveMaximum) ? `less than ${grouped(exclusiveMaximum)}` : "",
    typeof maxLength === "number" ? `at most ${grouped(maxLength)} characters` : "",
  ].filter(Boolean);
  return parts.join(", ");
}

/** Returns the initial content of a form: the values of an earlier input, or the defaults of the schema. */
export function enteredOf(fields: readonly SchemaField[], value: JsonValue = null): Entered {
  const given = isObject(value) ? value : {};
  return Object.fromEntries(
    fields.map(({ name, kind, schema }) => [name, textOf(kind, ownOf(given, name) ?? schema["default"])]),
  );
}

function textOf(kind: FieldKind, value: JsonValue | undefined): string {
  if (value === undefined || value === null) return "";
  if (kind === "flag") return value === true ? "true" : "";
  return kind === "json" || typeof value !== "string" ? jsonText(value) : value;
}

/** Formats a value for editing, as JSON in which hidden characters are replaced by escapes. */
export function jsonText(value: JsonValue): string {
  return visibleText(JSON.stringify(value, null, 2));
}

/** Reads the fields. An empty optional field is left out. The server also checks the value. */
export function valueOf(fields: readonly SchemaField[], entered: Entered): EnteredValue {
  const value: [string, JsonValue][] = [];
  const problems: [string, string][] = [];
  for (const field of fields) {
    const { name, kind, isRequired } = field;
    const text = ownOf(entered, name) ?? "";
    if (kind === "flag") {
      if (text !== "" || isRequired) value.push([name, text === "true"]);
      continue;
    }
    if (text === "") {
      if (isRequired) problems.push([name, "This field is needed."]);
      continue;
    }
    const read = readText(field, text);
    if ("problem" in read) problems.push([name, read.problem]);
    else value.push([name, read.value]);
  }
  return { value: Object.fromEntries(value), problems: Object.fromEntries(problems) };
}

/** The form of a value that has a schema. */
export interface SchemaForm {
  readonly fields: readonly SchemaField[];
  /** Reads the fields. */
  readonly read: (entered: Entered) => {
    readonly value: JsonValue;
    readonly problems: EnteredValue["problems"];
  };
}

/** Name of the field for a value that is not an object. */
const whole = "value";

/**
 * Returns the form for a value: a field for each property of an object, or one field for a text, a number, a flag
 * or a choice. `null` if there is no schema, or if the person must write the value as JSON.
 */
export function formOf(schema: JsonSchema | null): SchemaForm | null {
  if (schema === null) return null;
  const properties = fieldsOf(schema);
  if (properties.length > 0) return { fields: properties, read: (entered) => valueOf(properties, entered) };
  const [field] = fieldsOf({ properties: { [whole]: { title: "Value", ...schema } }, required: [whole] });
  if (field === undefined || field.kind === "json") return null;
  const fields = [field];
  return {
    fields,
    read: (entered) => {
      const { value, problems } = valueOf(fields, entered);
      return { value: value[whole] ?? null, problems };
    },
  };
}

type ReadText = { readonly value: JsonValue } | { readonly problem: string };

function readText({ kind, schema, choices }: SchemaField, text: string): ReadText {
  if (kind === "number" || kind === "integer") return readNumber(schema, text);
  if (kind === "json") return readJson(schema, text);
  if (kind === "choice" && !choices.includes(text))
    return { problem: `Choose one of ${choices.join(", ")}.` };
  return readWords(schema, text);
}

function readNumber(schema: JsonObject, text: string): ReadText {
  const { type, minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema;
  const value = text.trim() === "" ? Number.NaN : Number(text);
  if (!Number.isFinite(value)) return { problem: "Enter a number." };
  if (type === "integer" && !Number.isInteger(value)) return { problem: "Enter a whole number." };
  if (typeof minimum === "number" && value < minimum) return { problem: `Enter at least ${minimum}.` };
  if (typeof maximum === "number" && value > maximum) return { problem: `Enter at most ${maximum}.` };
  if (typeof exclusiveMinimum === "number" && value <= exclusiveMinimum)
    return { problem: `Enter more than ${exclusiveMinimum}.` };
  if (typeof exclusiveMaximum === "number" && value >= exclusiveMaximum)
    return { problem: `Enter less than ${exclusiveMaximum}.` };
  const { enum: choices } = schema;
  if (Array.isArray(choices) && !choices.includes(value))
    return { problem: `Enter one of ${choices.join(", ")}.` };
  return { value };
}

function readJson(schema: JsonObject, text: string): ReadText {
  let value: JsonValue;
  try {
    value = JSON.parse(text) as JsonValue;
  } catch {
    return { problem: 'Enter JSON, such as ["a"] or { "b": 1 }.' };
  }
  switch (schema["type"]) {
    case "array":
      return Array.isArray(value) ? { value } : { problem: 'Enter a list, such as ["a"].' };
    case "object":
      return isObject(value) ? { value } : { problem: 'Enter an object, such as { "b": 1 }.' };
    case "string":
      return typeof value === "string"
        ? readWords(schema, value)
        : { problem: 'Enter a text in quotes, such as "a".' };
    default:
      return { value };
  }
}

function readWords({ minLength, maxLength, pattern }: JsonObject, text: string): ReadText {
  if (typeof minLength === "number" && text.length < minLength)
    return { problem: `Enter at least ${minLength} characters.` };
  if (typeof maxLength === "number" && text.length > maxLength)
    return { problem: `Enter at most ${maxLength} characters.` };
  if (typeof pattern === "string" && !fits(pattern, text)) return { problem: `It must fit ${pattern}.` };
  return { value: text };
}

/**
 * Whether a text matches a pattern. A pattern that this browser does not support is only checked by the server, and
 * so is a pattern that could block the browser for a long time, because a tool's author chooses the pattern and a
 * model the text: a repeated group, many repetitions, a long text.
 */
function fits(pattern: string, text: string): boolean {
  const repetitions = pattern.match(/[*+?]|\{\d+,/gu)?.length ?? 0;
  if (/\)[*+?{]/u.test(pattern) || repetitions > 3 || text.length > 200) return true;
  try {
    return new RegExp(pattern, "u").test(text);
  } catch {
    return true;
  }
}
