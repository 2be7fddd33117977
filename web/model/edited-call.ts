import {
  canonicalJson,
  visibleText,
  type JsonObject,
  type JsonSchema,
  type JsonValue,
} from "../../src/kernel/index.ts";
import type { QuestionView } from "../../src/surfaces/view/run-view.ts";
import {
  enteredOf,
  fieldsOf,
  isObject,
  jsonText,
  ownOf,
  valueOf,
  type Entered,
  type EnteredValue,
  type SchemaField,
} from "./schema-fields.ts";

type Asked = Pick<QuestionView["request"], "input" | "parsedInput" | "inputSchema">;

/** A field for each of some arguments. */
interface CallForm {
  readonly fields: readonly SchemaField[];
  /** The arguments with which the form began, in the form of the fields. */
  readonly first: JsonObject;
  readonly shown: Entered;
}

/** The person's changed version of a call's arguments: texts of fields, or JSON. */
export type CallDraft =
  | { readonly form: CallForm; readonly entered: Entered }
  | { readonly form: null; readonly json: string };

/** What a draft says. */
interface CallReading {
  /** The arguments. `undefined` if the draft is invalid. */
  readonly value: JsonValue | undefined;
  /** Names of the arguments that differ from the requested ones. */
  readonly changes: readonly string[];
  /** What is wrong, by the name of the field. */
  readonly problems: EnteredValue["problems"];
  /** What is wrong with the JSON. */
  readonly problem: string | null;
}

/** Maximum number of arguments that are edited in fields. A call with more arguments is edited as JSON. */
const mostFields = 60;

/** Returns the arguments about which a person decides: those with which the tool would be executed. */
function askedOf({ input, parsedInput = input }: Asked): JsonValue {
  return parsedInput;
}

/** Returns the initial draft of an edit: with fields if possible, and otherwise as JSON. */
export function draftOf(request: Asked): CallDraft {
  const asked = askedOf(request);
  return fieldDraft(request, asked) ?? jsonDraft(asked);
}

export function jsonDraft(value: JsonValue): CallDraft {
  return { form: null, json: jsonText(value) };
}

/**
 * A draft with a field for each argument. `null` if the arguments are edited as JSON only: a question that an earlier version asked
 * has no schema, and a schema may name no property.
 */
export function fieldDraft({ inputSchema }: Asked, value: JsonValue): CallDraft | null {
  if (inputSchema === undefined || !isObject(value)) return null;
  const fields = [...fieldsOf(inputSchema), ...fieldsOf(furtherSchema(inputSchema, value))].map((field) =>
    shownField(field, ownOf(value, field.name)),
  );
  if (fields.length === 0 || fields.length > mostFields) return null;
  const shown = enteredOf(fields, value);
  return { form: { fields, first: value, shown }, entered: shown };
}

/** A schema of the arguments that the schema of the tool does not name. */
function furtherSchema({ properties }: JsonSchema, value: JsonObject): JsonSchema {
  const further = Object.entries(value).filter(
    ([name]) => !isObject(properties) || !Object.hasOwn(properties, name),
  );
  return {
    properties: Object.fromEntries(
      further.map(([name, each]) => [name, typeof each === "string" ? { type: "string" } : {}]),
    ),
  };
}

/**
 * A field that shows the argument as it is. The label is the name that the tool reads, whatever title its schema has. A value that
 * a plain field would show otherwise is JSON: one of another type, and a text with hidden characters or carriage returns.
 */
function shownField(field: SchemaField, value: JsonValue | undefined): SchemaField {
  const { name, kind, choices, hint } = field;
  const isPlain =
    value === undefined ||
    value === null ||
    kind === "json" ||
    (kind === "flag" && typeof value === "boolean") ||
    ((kind === "number" || kind === "integer") && typeof value === "number") ||
    (kind === "choice" && typeof value === "string" && choices.includes(value)) ||
    (kind === "text" && typeof value === "string" && !isHidden(value));
  if (isPlain) return { ...field, label: name };
  const json = typeof value === "string" ? "In quotes, with escapes as in JSON." : "As JSON.";
  return { ...field, label: name, kind: "json", hint: hint === "" ? json : `${hint} ${json}` };
}

function isHidden(text: string): boolean {
  return text.includes("\r") || visibleText(text) !== text;
}

/** Reads a draft. The server checks the arguments against the whole schema before it takes them. */
export function readDraft(request: Asked, draft: CallDraft): CallReading {
  const asked = askedOf(request);
  if (draft.form !== null) {
    const { value, problems } = readFields(draft.form, draft.entered);
    const wrong = Object.keys(problems);
    return {
      value: wrong.length > 0 ? undefined : value,
      changes: [...new Set([...changesOf(asked, value), ...wrong])],
      problems,
      problem: null,
    };
  }
  try {
    const value = JSON.parse(draft.json) as JsonValue;
    return { value, changes: changesOf(asked, value), problems: {}, problem: null };
  } catch {
    return { value: undefined, changes: [], problems: {}, problem: "The arguments are not valid JSON." };
  }
}

/** An argument whose field was not touched keeps its value. An argument that was left out stays left out. */
function readFields({ fields, first, shown }: CallForm, entered: Entered): EnteredValue {
  const touched = fields.filter(({ name }) => ownOf(entered, name) !== ownOf(shown, name));
  const { value: read, problems } = valueOf(touched, entered);
  // An input lacks a flag without a mark. Here a person has removed the mark.
  const removed = touched.filter(({ name, kind }) => kind === "flag" && ownOf(entered, name) !== "true");
  const changed = new Map([
    ...Object.entries(read),
    ...removed.map(({ name }): [string, JsonValue] => [name, false]),
  ]);
  const isTouched = new Set(touched.map(({ name }) => name));
  const kept = Object.entries(first).filter(([name]) => !isTouched.has(name) || changed.has(name));
  return { value: Object.fromEntries([...kept, ...changed]), problems };
}

function changesOf(asked: JsonValue, value: JsonValue): readonly string[] {
  if (!isObject(asked) || !isObject(value))
    return canonicalJson(asked) === canonicalJson(value) ? [] : ["arguments"];
  const names = new Set([...Object.keys(asked), ...Object.keys(value)]);
  return [...names].filter((name) => textAt(asked, name) !== textAt(value, name));
}

function textAt(values: JsonObject, name: string): string | undefined {
  const value = ownOf(values, name);
  return value === undefined ? undefined : canonicalJson(value);
}
