import type { Field, Fields } from "./fields.ts";
import { settingsFields, type Settings } from "./settings-fields.ts";

type Values = Readonly<Record<string, unknown>>;

/**
 * Combines settings; later ones take precedence. Groups are combined key by key, and lists are joined, so that no
 * place removes a rule of another place. The address and the API key belong to the provider of the model in the
 * same place: if a later place sets a model of another provider, they are not used for it, so that a key is sent
 * only to the provider for which it was set. The context window belongs to one model.
 */
export function combineSettings(...all: readonly Settings[]): Settings {
  const settings: Settings = all.reduce((lower, upper) => combineValues(lower, upper, settingsFields), {});
  const foreign = Object.keys(ofModel).filter((key) => isForeign(key as ModelKey, all, settings.model));
  return Object.fromEntries(Object.entries(settings).filter(([key]) => !foreign.includes(key)));
}

/** Keys that belong to a model. Each has the part of the model's name for which the key applies. */
const ofModel = {
  baseUrl: providerOf,
  apiKeyEnv: providerOf,
  contextWindow: (model: string) => model,
} as const satisfies { readonly [Key in keyof Settings]?: (model: string) => string };

type ModelKey = keyof typeof ofModel;

/** Whether a key was set together with another model than the one in use. */
function isForeign(key: ModelKey, all: readonly Settings[], model: string | undefined): boolean {
  const setBy = all.findLastIndex((each) => each[key] !== undefined);
  const beside = all.slice(0, setBy + 1).findLast((each) => each.model !== undefined)?.model;
  const part = ofModel[key];
  return beside !== undefined && model !== undefined && part(beside) !== part(model);
}

/** Returns the provider of a model, such as `anthropic` for `anthropic/claude-sonnet-5`. */
export function providerOf(model: string): string {
  return model.slice(0, model.indexOf("/"));
}

/**
 * Combines values of one table; `upper` takes precedence over `lower`. Groups are combined key by key, and lists
 * are joined.
 */
export function combineValues(lower: Values, upper: Values, fields: Fields): Values {
  const result: Record<string, unknown> = { ...lower };
  for (const [name, value] of Object.entries(upper)) {
    if (value === undefined) continue;
    const before = lower[name];
    const field = fields[name];
    if (field?.type === "group" && isOn(before) && isOn(value))
      result[name] = combineValues(before, value, field.fields);
    else if (field?.type === "map" && before !== undefined)
      result[name] = combinedMap(before as Values, value as Values, field.fields);
    else if (field?.type === "texts" && before !== undefined)
      result[name] = [...new Set([...(before as readonly string[]), ...(value as readonly string[])])];
    else result[name] = value;
  }
  return result;
}

/** Combines groups of the same name key by key. */
function combinedMap(lower: Values, upper: Values, fields: Fields): Values {
  const result: Record<string, unknown> = { ...lower };
  for (const [name, value] of Object.entries(upper))
    result[name] = combineValues((lower[name] ?? {}) as Values, value as Values, fields);
  return result;
}

/** Whether a group has values. `false` switches a group off. */
function isOn(group: unknown): group is Values {
  return typeof group === "object";
}

/** The settings of a project, divided by whether they need trust. */
export interface DividedSettings {
  /** Settings that apply without trust. */
  readonly free: Settings;
  /** Keys of the settings that need trust, such as `permissions.mode`. */
  readonly guarded: readonly string[];
}

/**
 * Divides the settings of a project by whether they need trust. `user` are the settings of the user; some keys need
 * trust only if the project allows more than the user.
 */
export function divideSettings(project: Settings, user: Settings): DividedSettings {
  const guarded: string[] = [];
  const free = divided(project, user, settingsFields, "", guarded);
  return { free, guarded };
}

/**
 * Returns the values of a table that need no trust. `user` are the values of the user, with which they are
 * compared.
 */
export function freeValues(values: Values, user: Values, fields: Fields): Values {
  return divided(values, user, fields, "", []);
}

function divided(project: Values, user: Values, fields: Fields, key: string, guarded: string[]): Values {
  const free: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(project)) {
    const field = fields[name];
    if (field === undefined) continue;
    if (field.type === "group" && isOn(value)) {
      const own = user[name];
      // A group that the user has switched off stays off.
      if (own === false) {
        guarded.push(`${key}${name}`);
        continue;
      }
      const inner = divided(value, (own ?? {}) as Values, field.fields, `${key}${name}.`, guarded);
      if (Object.keys(inner).length > 0) free[name] = inner;
    } else if (needsTrust(field, value, user[name])) guarded.push(`${key}${name}`);
    else free[name] = value;
  }
  return free;
}

function needsTrust(field: Field, value: unknown, own: unknown): boolean {
  if (field.trust === "always") return true;
  if (field.trust !== "wider") return false;
  const limit = own ?? field.usual;
  // Without a limit of the user, every value of the project is narrower.
  if (limit === undefined) return false;
  if (field.type === "choice")
    return field.choices.indexOf(value as string) > field.choices.indexOf(limit as string);
  return (value as number) > (limit as number);
}

/** Environment variables for settings, each with the key that it sets. */
export const settingVariables = {
  REEVE_MODEL: "model",
  REEVE_BASE_URL: "baseUrl",
  REEVE_AGENT: "defaultAgent",
  REEVE_TOOLS: "tools",
  REEVE_SANDBOX: "sandbox",
} as const satisfies Readonly<Record<string, keyof Settings>>;

/** Returns the settings that the environment sets, without a check. An empty variable sets nothing. */
export function settingsOfEnvironment(env: Readonly<Record<string, string | undefined>>): Values {
  const set = Object.entries(settingVariables).flatMap(([variable, key]) => {
    const value = env[variable];
    return value === undefined || value === "" ? [] : [[key, value] as const];
  });
  return Object.fromEntries(set);
}
