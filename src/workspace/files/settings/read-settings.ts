import { describeValue, Fault, nearestName } from "../../../kernel/index.ts";
import { readNamedFile, type ReadOptions } from "../text/bounded-file.ts";
import type { Notices } from "../notices.ts";
import { settingsFields, type Field, type Fields, type Settings } from "./settings-fields.ts";

const maxSettingsBytes = 256 * 1024;

/**
 * Reads a `settings.json`. An absent file has no settings. An unknown key is ignored with a warning that suggests the
 * nearest one. Throws `invalid_argument`, which names file and key, for a value of the wrong type.
 */
export async function readSettings(
  path: string,
  notices: Notices,
  options: Pick<ReadOptions, "within"> = {},
): Promise<Settings> {
  // Settings may contain limits, so a file that cannot be read is not the same as an absent one.
  const file = await readNamedFile("settings", path, { maxBytes: maxSettingsBytes, ...options });
  if (file === undefined) return {};
  if (file.isCut)
    throw new Fault(
      "invalid_argument",
      `invalid settings ${path}: the file is longer than ${maxSettingsBytes} bytes`,
    );
  return checkSettings(parsed(file.text, path), path, notices);
}

function parsed(text: string, path: string): unknown {
  try {
    return text.trim() === "" ? {} : JSON.parse(text);
  } catch (error) {
    throw new Fault("invalid_argument", `invalid settings ${path}: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/** Returns the known settings of a value. `path` names the source in errors and warnings. */
export function checkSettings(value: unknown, path: string, notices: Notices): Settings {
  return checkGroup(value, settingsFields, { path, key: "", notices });
}

interface Where {
  readonly path: string;
  /** Key of the group with a dot at its end, or empty for the file itself. */
  readonly key: string;
  readonly notices: Notices;
}

function checkGroup(value: unknown, fields: Fields, where: Where): object {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw wrong(where, where.key === "" ? "" : where.key.slice(0, -1), "an object", value);
  const checked: [string, unknown][] = [];
  for (const [name, each] of Object.entries(value)) {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (field !== undefined) checked.push([name, checkField(each, field, name, where)]);
    else {
      const nearest = nearestName(name, Object.keys(fields));
      const fix = nearest === undefined ? "remove it" : `use "${where.key}${nearest}"`;
      where.notices.add("warning", where.path, `unknown setting ${describeValue(where.key + name)}: ${fix}`);
    }
  }
  return Object.fromEntries(checked);
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
  switch (field.type) {
    case "text":
      if (typeof value === "string") return value;
      throw wrong(where, key, "a text", value);
    case "boolean":
      if (typeof value === "boolean") return value;
      throw wrong(where, key, "true or false", value);
    case "texts":
      if (Array.isArray(value) && value.every((each) => typeof each === "string")) return value;
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
      return checkGroup(value, field.fields, { ...where, key: `${key}.` });
    case "map":
      return checkMap(value, field.fields, { ...where, key: `${key}.` });
  }
}

function wrong({ path }: Where, key: string, expected: string, value: unknown): Fault {
  const named = key === "" ? "" : ` "${key}"`;
  return new Fault(
    "invalid_argument",
    `invalid setting${named} in ${path}: expected ${expected}, not ${describeValue(value)}`,
    { details: { path, key } },
  );
}
