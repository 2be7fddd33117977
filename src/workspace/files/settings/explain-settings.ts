import type { JsonValue } from "../../../kernel/index.ts";
import type { Origin } from "../source-file.ts";
import { settingVariables } from "./combine-settings.ts";
import type { Field, Fields } from "./fields.ts";
import { settingsFields, type Settings } from "./settings-fields.ts";

/** One place that may set settings. */
export interface SettingsLayer {
  /** The path of the file. Empty for the environment and for the options of the caller. */
  readonly path: string;
  readonly origin: Origin | "environment" | "options";
  readonly settings: Settings;
  /** Keys of this place that are not used because the project is not trusted, such as `permissions.mode`. */
  readonly guarded: readonly string[];
}

/** The place that sets a value. */
export interface SettingPlace extends Pick<SettingsLayer, "origin"> {
  /** The path of the file, or the name of the environment variable. Empty for an option of the caller. */
  readonly path: string;
}

/** A setting with its value and the places that set it. */
export interface ExplainedSetting {
  /** The key, with dots between a group and its members: `budget.maxCostUsd`. */
  readonly key: string;
  /** The value in use. `null` if no used place sets a value. */
  readonly value: JsonValue;
  /** The places that the value in use comes from. A list may come from several places, because lists are joined. */
  readonly from: readonly SettingPlace[];
  /** Places that also set the key but have no effect, each with the reason. */
  readonly unused: readonly (SettingPlace & { readonly value: JsonValue; readonly why: string })[];
  /** What the setting means, and its default. */
  readonly description: string;
}

/** A value of a table, with the field that describes it. */
interface Leaf {
  readonly field: Field;
  readonly value: unknown;
}

type Values = Readonly<Record<string, unknown>>;

/**
 * Returns the members of the groups of a table by their keys. Without values, returns all members with fixed names.
 */
function leavesOf(fields: Fields, values: Values | undefined, prefix = ""): ReadonlyMap<string, Leaf> {
  const leaves = new Map<string, Leaf>();
  const add = (more: ReadonlyMap<string, Leaf>): void => {
    for (const [key, leaf] of more) leaves.set(key, leaf);
  };
  for (const [name, field] of Object.entries(fields)) {
    const value = values?.[name];
    if (values !== undefined && value === undefined) continue;
    const key = `${prefix}${name}`;
    if (field.type === "group" && value !== false)
      add(leavesOf(field.fields, value as Values | undefined, `${key}.`));
    else if (field.type === "map" && value !== undefined)
      for (const [each, inner] of Object.entries(value as Readonly<Record<string, Values>>))
        add(leavesOf(field.fields, inner, `${key}.${each}.`));
    else leaves.set(key, { field, value });
  }
  return leaves;
}

/**
 * Returns every setting with its value and the places that set it, in the order of the table. `used` are the
 * settings in use, which `combineSettings` computed from the places.
 */
export function explainSettings(
  layers: readonly SettingsLayer[],
  used: Settings,
): readonly ExplainedSetting[] {
  const known = leavesOf(settingsFields, undefined);
  const inUse = leavesOf(settingsFields, used);
  const set = layers.map((layer) => ({ layer, leaves: leavesOf(settingsFields, layer.settings) }));
  const keys = new Set([
    ...known.keys(),
    ...inUse.keys(),
    ...set.flatMap(({ leaves }) => [...leaves.keys()]),
  ]);
  keys.delete("$schema");
  return [...keys].map((key): ExplainedSetting => {
    const leaf = inUse.get(key);
    const setting = set.flatMap(({ layer, leaves }) => {
      const found = leaves.get(key);
      return found === undefined ? [] : [{ layer, value: found.value as JsonValue, field: found.field }];
    });
    const field = leaf?.field ?? known.get(key)?.field ?? setting[0]?.field;
    const usable = setting.filter(({ layer }) => !isGuarded(layer, key));
    const isList = field?.type === "texts";
    const from = leaf === undefined ? [] : isList ? usable : usable.slice(-1);
    return {
      key,
      value: (leaf?.value ?? null) as JsonValue,
      from: from.map(({ layer }) => placeOf(layer, key)),
      unused: setting
        .filter((each) => !from.includes(each))
        .map(({ layer, value }) => ({
          ...placeOf(layer, key),
          value,
          why: isGuarded(layer, key)
            ? "the project is not trusted"
            : leaf === undefined
              ? "it belongs to another model, or its group is switched off"
              : "a later place sets it, too",
        })),
      description: field?.description ?? "",
    };
  });
}

/** Whether a place sets a key without effect, because the key or the group that contains it needs trust. */
function isGuarded({ guarded }: SettingsLayer, key: string): boolean {
  return guarded.some((each) => key === each || key.startsWith(`${each}.`));
}

function placeOf({ origin, path }: SettingsLayer, key: string): SettingPlace {
  if (origin !== "environment") return { origin, path };
  const variable = Object.entries(settingVariables).find(([, setting]) => setting === key);
  return { origin, path: variable?.[0] ?? "" };
}
