import { describeValue, Fault, nearestName } from "../../../kernel/index.ts";
import type { Notices } from "../notices.ts";
import type { Field, Fields, ValuesOf } from "./fields.ts";

/** The source of the values of a table, and how errors name it. */
export interface FieldSource {
  readonly path: string;
  readonly notices: Notices;
  /**
   * Kind of the source. People write front matter by hand: in it an empty value is absent, and a list may be one
   * text with commas.
   */
  readonly kind: "settings" | "front matter";
}

/**
 * Returns the known values of a table. An unknown key gives a warning with the nearest known key. It throws instead
 * if the key is inside a group, where it may be a misspelt limit or rule, or if the nearest known key is a policy.
 * Also throws for a value of the wrong type. The error is `invalid_argument` and names file and key.
 */
export function checkFields<All extends Fields>(
  value: unknown,
  fields: All,
  source: FieldSource,
): ValuesOf<All> {
  return checkGroup(value, fields, { ...source, key: "" });
}

interface Where extends FieldSource {
  /** Key of the group with a dot at its end. Empty for the file itself. */
  readonly key: string;
}

function checkGroup(value: unknown, fields: Fields, where: Where): object {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw wrong(
      where,
      where.key.slice(0, -1),
      `an object with some of ${Object.keys(fields).join(", ")}`,
      value,
    );
  const checked: [string, unknown][] = [];
  for (const [name, each] of Object.entries(value)) {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (field === undefined) refuseUnknown(name, fields, where);
    else if (each !== null || where.kind === "settings")
      checked.push([name, checkField(each, field, name, where)]);
  }
  return Object.fromEntries(checked);
}

function refuseUnknown(name: string, fields: Fields, { kind, path, key, notices }: Where): void {
  const nearest = nearestName(name, Object.keys(fields));
  const what = `${kind === "settings" ? "unknown setting" : "unknown key"} ${describeValue(key + name)}`;
  const use = nearest === undefined ? undefined : `use "${key}${nearest}"`;
  const isPolicy = nearest !== undefined && fields[nearest]?.isPolicy === true;
  if (key !== "" || isPolicy)
    throw new Fault(
      "invalid_argument",
      `${what} in ${path}: ${use ?? `expected some of ${Object.keys(fields).join(", ")}`}`,
    );
  notices.add("warning", path, `${what}: ${use ?? "remove it"}`);
}

function checkMap(value: unknown, fields: Fields, where: Where): object {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw wrong(where, where.key.slice(0, -1), "an object", value);
  const checked = Object.entries(value).map(([name, each]) => [
    name,
    checkGroup(each, fields, { ...where, key: `${where.key}${name}.` }),
  ]);
  return Object.fromEntries(checked) as object;
}

function checkField(value: unknown, field: Field, name: string, where: Where): unknown {
  const key = `${where.key}${name}`;
  const isWritten = where.kind === "front matter";
  switch (field.type) {
    case "text":
      if (typeof value === "string" && !isWritten) return value;
      if (typeof value === "string" && value.trim() !== "") return value.trim();
      throw wrong(where, key, "a text", value);
    case "boolean":
      if (typeof value === "boolean") return value;
      throw wrong(where, key, "true or false", value);
    case "texts":
      if (Array.isArray(value) && value.every((each) => typeof each === "string")) return value;
      if (typeof value === "string" && isWritten) return value.split(/[\s,]+/u).filter(Boolean);
      throw wrong(where, key, "a list of texts", value);
    case "integer":
      if (Number.isSafeInteger(value) && (value as number) >= 1) return value;
      throw wrong(where, key, "an integer from 1", value);
    case "number":
      if (Number.isFinite(value) && (value as number) >= 0) return value;
      throw wrong(where, key, "a number from 0", value);
    case "choice":
      if (field.choices.includes(value as string)) return value;
      throw wrong(where, key, `one of ${field.choices.join(", ")}`, value);
    case "group":
      if (value === false && field.canBeOff === true) return value;
      return checkGroup(value, field.fields, { ...where, key: `${key}.` });
    case "map":
      return checkMap(value, field.fields, { ...where, key: `${key}.` });
  }
}

function wrong({ kind, path }: Where, key: string, expected: string, value: unknown): Fault {
  const what = kind === "settings" ? "invalid setting" : "invalid";
  const named = key === "" ? "" : ` "${key}"`;
  return new Fault(
    "invalid_argument",
    `${what}${named} in ${path}: expected ${expected}, not ${describeValue(value)}`,
    { details: { path, key } },
  );
}
