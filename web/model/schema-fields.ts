import { capitalized, grouped } from "../base/format.ts";
import type { JsonObject, JsonSchema, JsonValue } from "../../src/kernel/index.ts";

/** How a person enters the value of one property. */
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

/** What a person has entered, by the name of the property. A flag is `true` or empty. */
export type Entered = Readonly<Record<string, string>>;

/** The value that was entered, and what is wrong with its fields, by their names. */
export interface EnteredValue {
  readonly value: JsonObject;
  readonly problems: Readonly<Record<string, string>>;
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The fields of a schema of an object, the required ones first. */
export function fieldsOf({ properties, required }: JsonSchema): readonly SchemaField[] {
  const needed = Array.isArray(required) ? (required as readonly JsonValue[]) : [];
  const fields = Object.entries(isObject(properties) ? properties : {}).map(
    ([name, property]): SchemaField => {
      const schema = isObject(property) ? property : {};
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

function kindOf({ type }: JsonObject, choices: readonly JsonValue[]): FieldKind {
  if (choices.length > 0 && choices.every((each) => typeof each === "string")) return "choice";
  if (type === "string") return "text";
  if (type === "boolean") return "flag";
  return type === "number" || type === "integer" ? type : "json";
}

/** Whether a limit tells a person something. Libraries also write the limits of exact integers. */
function isLimit(limit: JsonValue | undefined): limit is number {
  return typeof limit === "number" && Math.abs(limit) !== Number.MAX_SAFE_INTEGER;
}

/** What a field is for and what it takes. Limits follow a description in brackets, and otherwise are a sentence. */
function hintOf(description: string, limits: string): string {
  if (limits === "") return description;
  return description === "" ? `${capitalized(limits)}.` : `${description} (${limits})`;
}

function limitsOf({ minimum, maximum, maxLength }: JsonObject): string {
  const parts = [
    isLimit(minimum) ? `at least ${grouped(minimum)}` : "",
    isLimit(maximum) ? `at most ${grouped(maximum)}` : "",
    typeof maxLength === "number" ? `at most ${grouped(maxLength)} characters` : "",
  ].filter(Boolean);
  return parts.join(", ");
}

/** What a form shows at first: the values of an earlier input, or the defaults of the schema. */
export function enteredOf(fields: readonly SchemaField[], value: JsonValue = null): Entered {
  const given = isObject(value) ? value : {};
  return Object.fromEntries(
    fields.map(({ name, kind, schema }) => [name, textOf(kind, given[name] ?? schema["default"])]),
  );
}

function textOf(kind: FieldKind, value: JsonValue | undefined): string {
  if (value === undefined || value === null) return "";
  if (kind === "flag") return value === true ? "true" : "";
  return kind === "json" || typeof value !== "string" ? JSON.stringify(value, null, 2) : value;
}

/** Reads the fields. An empty optional field is left out. The server checks the value again. */
export function valueOf(fields: readonly SchemaField[], entered: Entered): EnteredValue {
  const value: Record<string, JsonValue> = {};
  const problems: Record<string, string> = {};
  for (const field of fields) {
    const { name, kind, isRequired } = field;
    const text = entered[name] ?? "";
    if (kind === "flag") {
      if (text !== "" || isRequired) value[name] = text === "true";
      continue;
    }
    if (text === "") {
      if (isRequired) problems[name] = "This field is needed.";
      continue;
    }
    const read = readText(field, text);
    if ("problem" in read) problems[name] = read.problem;
    else value[name] = read.value;
  }
  return { value, problems };
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

/** Name of the field of a value that is no object. */
const whole = "value";

/**
 * The form of a value: a field per property of an object, or one field for a text, a number, a flag or a choice. `null` if the
 * schema is absent, or describes a value that a person writes as JSON.
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
  const { minimum, maximum, minLength, maxLength, pattern } = schema;
  if (kind === "number" || kind === "integer") {
    const number = text.trim() === "" ? Number.NaN : Number(text);
    if (!Number.isFinite(number)) return { problem: "Enter a number." };
    if (kind === "integer" && !Number.isInteger(number)) return { problem: "Enter a whole number." };
    if (typeof minimum === "number" && number < minimum) return { problem: `Enter at least ${minimum}.` };
    if (typeof maximum === "number" && number > maximum) return { problem: `Enter at most ${maximum}.` };
    return { value: number };
  }
  if (kind === "json") {
    try {
      return { value: JSON.parse(text) as JsonValue };
    } catch {
      return { problem: 'Enter JSON, such as ["a"] or { "b": 1 }.' };
    }
  }
  if (kind === "choice" && !choices.includes(text))
    return { problem: `Choose one of ${choices.join(", ")}.` };
  if (typeof minLength === "number" && text.length < minLength)
    return { problem: `Enter at least ${minLength} characters.` };
  if (typeof maxLength === "number" && text.length > maxLength)
    return { problem: `Enter at most ${maxLength} characters.` };
  if (typeof pattern === "string" && !fits(pattern, text)) return { problem: `It must fit ${pattern}.` };
  return { value: text };
}

/** Whether a text fits. A pattern that this browser does not understand is left to the server. */
function fits(pattern: string, text: string): boolean {
  try {
    return new RegExp(pattern, "u").test(text);
  } catch {
    return true;
  }
}
