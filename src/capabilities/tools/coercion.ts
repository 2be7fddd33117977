import type { JsonObject, JsonSchema, JsonValue } from "../../kernel/index.ts";

/**
 * T3: converts arguments whose types do not match the schema, for example `"8"` to a number, `"true"` to a boolean,
 * or a JSON text to an object or array. It leaves out a `null` for a property that is not required and does not
 * accept `null`. It converts only if nothing is lost and only one interpretation is possible; all other mismatches
 * are left to the validation. Values that match are not changed. Returns the same value if nothing was converted.
 */
export function coerceInput(schema: JsonSchema, input: JsonValue): JsonValue {
  return coerce(input, schema, { root: schema, depth: 0 });
}

/** Position in the schema during the conversion. */
interface Place {
  readonly root: JsonSchema;
  readonly depth: number;
}

/** Maximum nesting depth that is converted. A schema may refer to itself, so there must be a limit. */
const maxDepth = 64;

function coerce(value: JsonValue, schema: JsonValue | undefined, at: Place): JsonValue {
  if (!isObject(schema) || at.depth > maxDepth) return value;
  const { $ref, allOf, anyOf, oneOf } = schema;
  // A number, a boolean or null cannot be converted to another type.
  const isPlain = typeof value === "number" || typeof value === "boolean" || value === null;
  if (isPlain) return value;
  const place = { root: at.root, depth: at.depth + 1 };
  if (typeof $ref === "string") return coerce(value, resolveReference(at.root, $ref), place);
  let coerced = convertText(value, schema);
  if (Array.isArray(allOf)) for (const part of allOf) coerced = coerce(coerced, part, place);
  if (Array.isArray(anyOf)) coerced = oneReading(coerced, anyOf, place);
  if (Array.isArray(oneOf)) coerced = oneReading(coerced, oneOf, place);
  return inside(coerced, schema, place);
}

/**
 * Returns the value unchanged if it has the type of a branch of the schema. Otherwise returns the conversion of the
 * only branch that can convert it.
 */
function oneReading(value: JsonValue, branches: readonly JsonValue[], place: Place): JsonValue {
  const fitting = branches.filter((branch) => acceptsType(branch, value, place));
  if (fitting.length === 1) return coerce(value, fitting[0], place);
  if (fitting.length > 1) return value;
  const readings = new Map<string, JsonValue>();
  for (const branch of branches) {
    const reading = coerce(value, branch, place);
    if (reading !== value) readings.set(JSON.stringify(reading), reading);
  }
  const [only] = readings.values();
  return readings.size === 1 && only !== undefined ? only : value;
}

function acceptsType(branch: JsonValue, value: JsonValue, { root, depth }: Place): boolean {
  if (!isObject(branch) || depth > maxDepth) return true;
  const { $ref, anyOf, oneOf } = branch;
  const below = { root, depth: depth + 1 };
  if (typeof $ref === "string") return acceptsType(resolveReference(root, $ref) ?? true, value, below);
  const nested = anyOf ?? oneOf;
  if (Array.isArray(nested)) return nested.some((each) => acceptsType(each, value, below));
  const types = typesOf(branch);
  if (types !== undefined && !types.some((type) => isOfType(value, type))) return false;
  return !isObject(value) || !isOtherVariant(branch, value);
}

/**
 * Whether a property of the object, such as its `kind`, has another value than the only one that the branch
 * accepts.
 */
function isOtherVariant({ properties }: JsonObject, value: JsonObject): boolean {
  if (!isObject(properties)) return false;
  return Object.entries(properties).some(([name, schema]) => {
    if (!isObject(schema) || !Object.hasOwn(schema, "const") || !Object.hasOwn(value, name)) return false;
    const [only, given] = [schema["const"], value[name]];
    return isScalar(only) && isScalar(given) && only !== given;
  });
}

function isScalar(value: JsonValue | undefined): boolean {
  return typeof value !== "object" || value === null;
}

function convertText(value: JsonValue, schema: JsonObject): JsonValue {
  if (typeof value !== "string") return value;
  const types = typesOf(schema);
  if (types === undefined || types.some((type) => isOfType(value, type))) return value;
  const readings = types.flatMap((type) => {
    const reading = convert(value, type);
    return reading === undefined ? [] : [reading];
  });
  const [first] = readings;
  const same = readings.every((reading) => JSON.stringify(reading) === JSON.stringify(first));
  return first !== undefined && same ? first : value;
}

/** Returns the text as a value of the type, or `undefined` if that is not possible without loss. */
function convert(text: string, type: string): JsonValue | undefined {
  switch (type) {
    case "number":
      return exactNumber(text);
    case "integer": {
      const number = exactNumber(text);
      return Number.isSafeInteger(number) ? number : undefined;
    }
    case "boolean":
      return text === "true" ? true : text === "false" ? false : undefined;
    case "null":
      return text === "null" ? null : undefined;
    case "array":
    case "object": {
      const parsed = exactJson(text);
      return parsed !== undefined && isOfType(parsed, type) ? parsed : undefined;
    }
    default:
      return undefined;
  }
}

/** Returns the number if `String(number)` equals the text, apart from trailing zeros of a fraction. */
function exactNumber(text: string): number | undefined {
  const number = Number(text);
  const short = /^-?\d+\.\d*$/.test(text) ? text.replace(/\.?0+$/, "") : text;
  return Number.isFinite(number) && String(number) === short ? number : undefined;
}

/**
 * Returns the parsed JSON, or `undefined` if the text is not JSON or contains a number or key that parsing would
 * change.
 */
function exactJson(text: string): JsonValue | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined;
  let isExact = true;
  try {
    const parsed = JSON.parse(text, function read(this: unknown, key, value: unknown, ...more: unknown[]) {
      const { source } = (more[0] ?? {}) as { readonly source?: string };
      if (typeof value === "number" && source !== undefined && !isSameNumber(source, value)) isExact = false;
      if (key === "__proto__") isExact = false;
      return value;
    }) as JsonValue;
    return isExact ? parsed : undefined;
  } catch {
    // Not JSON: the text stays a text, and the validation says which type is expected.
    return undefined;
  }
}

function isSameNumber(source: string, value: number): boolean {
  return /[eE]/.test(source) ? Number.isFinite(value) : exactNumber(source) !== undefined;
}

function inside(value: JsonValue, schema: JsonObject, place: Place): JsonValue {
  if (Array.isArray(value)) return insideArray(value as readonly JsonValue[], schema, place);
  return isObject(value) ? insideObject(value, schema, place) : value;
}

function insideArray(items: readonly JsonValue[], schema: JsonObject, place: Place): JsonValue {
  const prefix = Array.isArray(schema["prefixItems"]) ? schema["prefixItems"] : [];
  const coerced = items.map((item, index) => coerce(item, prefix[index] ?? schema["items"], place));
  return coerced.some((item, index) => item !== items[index]) ? coerced : items;
}

function insideObject(value: JsonObject, schema: JsonObject, place: Place): JsonValue {
  const { properties, additionalProperties } = schema;
  const known = isObject(properties) ? properties : {};
  let copy: Record<string, JsonValue> | undefined;
  for (const key of Object.keys(value)) {
    const member = value[key] as JsonValue;
    if (member === null && isLeftOut(key, schema, known, place)) {
      copy ??= { ...value };
      delete copy[key];
      continue;
    }
    const own = Object.hasOwn(known, key) ? known[key] : additionalProperties;
    const coerced = key === "__proto__" ? member : coerce(member, own, place);
    if (coerced === member) continue;
    copy ??= { ...value };
    copy[key] = coerced;
  }
  return copy ?? value;
}

/**
 * Whether `null` for a property means that the property is absent: the schema knows it, does not require it, and refuses
 * `null` for it.
 */
function isLeftOut(key: string, { required }: JsonObject, known: JsonObject, place: Place): boolean {
  const isRequired = Array.isArray(required) && required.includes(key);
  return Object.hasOwn(known, key) && !isRequired && refusesNull(known[key], place);
}

/** Whether a schema certainly refuses `null`. A schema that says nothing about the type does not. */
function refusesNull(schema: JsonValue | undefined, { root, depth }: Place): boolean {
  if (schema === false) return true;
  if (!isObject(schema) || depth > maxDepth) return false;
  const { $ref, anyOf, oneOf, allOf, enum: values } = schema;
  const below = { root, depth: depth + 1 };
  const refuses = (each: JsonValue): boolean => refusesNull(each, below);
  const types = typesOf(schema);
  if (types !== undefined && !types.includes("null")) return true;
  if (Array.isArray(values) && !values.includes(null)) return true;
  if ("const" in schema && schema["const"] !== null) return true;
  if (typeof $ref === "string" && refusesNull(resolveReference(root, $ref), below)) return true;
  if (Array.isArray(anyOf) && anyOf.every(refuses)) return true;
  if (Array.isArray(oneOf) && oneOf.every(refuses)) return true;
  return Array.isArray(allOf) && allOf.some(refuses);
}

/**
 * Returns the part of the schema that a reference such as `#/$defs/name` points to. References to other documents are
 * ignored.
 */
function resolveReference(root: JsonSchema, reference: string): JsonValue | undefined {
  if (reference === "#") return root;
  if (!reference.startsWith("#/")) return undefined;
  let found: JsonValue | undefined = root;
  for (const part of reference.slice(2).split("/")) {
    const key = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
    found = isObject(found) && Object.hasOwn(found, key) ? found[key] : undefined;
  }
  return found;
}

function typesOf({ type }: JsonObject): readonly string[] | undefined {
  if (typeof type === "string") return [type];
  return Array.isArray(type) ? (type as readonly string[]) : undefined;
}

function isOfType(value: JsonValue, type: string): boolean {
  switch (type) {
    case "null":
      return value === null;
    case "array":
      return Array.isArray(value);
    case "object":
      return isObject(value);
    case "integer":
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
