import { settingsFields, type Field, type Fields, type Settings } from "./settings-fields.ts";

type Values = Readonly<Record<string, unknown>>;

/**
 * Combines settings. The latter take precedence; groups are combined key by key, and lists are joined, so that a rule
 * of one place is not removed by another. Address and key belong to the provider of the model beside them: a later model
 * of another provider does not inherit them, so that a key is sent only to the provider for which it was set.
 */
export function combineSettings(...all: readonly Settings[]): Settings {
  const settings: Settings = all.reduce((lower, upper) => combined(lower, upper, settingsFields), {});
  const foreign = addressKeys.filter((key) => isForeign(key, all, settings.model));
  return Object.fromEntries(
    Object.entries(settings).filter(([key]) => !(foreign as readonly string[]).includes(key)),
  );
}

const addressKeys = ["baseUrl", "apiKeyEnv"] as const;

/** Whether a key was set beside a model of another provider than that of the model in use. */
function isForeign(
  key: (typeof addressKeys)[number],
  all: readonly Settings[],
  model: string | undefined,
): boolean {
  const setBy = all.findLastIndex((each) => each[key] !== undefined);
  const beside = all.slice(0, setBy + 1).findLast((each) => each.model !== undefined)?.model;
  return beside !== undefined && model !== undefined && providerOf(beside) !== providerOf(model);
}

/** The provider of a model, such as `anthropic` of `anthropic/claude-sonnet-5`. */
export function providerOf(model: string): string {
  return model.slice(0, model.indexOf("/"));
}

function combined(lower: Values, upper: Values, fields: Fields): Values {
  const result: Record<string, unknown> = { ...lower };
  for (const [name, value] of Object.entries(upper)) {
    if (value === undefined) continue;
    const before = lower[name];
    const field = fields[name];
    if (field?.type === "group" && before !== undefined)
      result[name] = combined(before as Values, value as Values, field.fields);
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
    result[name] = combined((lower[name] ?? {}) as Values, value as Values, fields);
  return result;
}

/** The settings of a project, divided by whether they need trust. */
export interface DividedSettings {
  /** Settings that apply without trust. */
  readonly free: Settings;
  /** Keys of the settings that need trust, such as `permissions.mode`. */
  readonly guarded: readonly string[];
}

/** Divides the settings of a project. `user` are the settings of the user, compared to which a value may be wider. */
export function divideSettings(project: Settings, user: Settings): DividedSettings {
  const guarded: string[] = [];
  const free = divided(project, user, settingsFields, "", guarded);
  return { free, guarded };
}

function divided(project: Values, user: Values, fields: Fields, key: string, guarded: string[]): Values {
  const free: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(project)) {
    const field = fields[name];
    if (field === undefined) continue;
    if (field.type === "group") {
      const inner = divided(
        value as Values,
        (user[name] ?? {}) as Values,
        field.fields,
        `${key}${name}.`,
        guarded,
      );
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

/** Environment variables that set a setting, each with its key. */
const variables = {
  REEVE_MODEL: "model",
  REEVE_BASE_URL: "baseUrl",
  REEVE_AGENT: "defaultAgent",
  REEVE_TOOLS: "tools",
  REEVE_SANDBOX: "sandbox",
} as const satisfies Readonly<Record<string, keyof Settings>>;

/** Returns the settings that the environment sets, unchecked. An empty variable sets nothing. */
export function settingsOfEnvironment(env: Readonly<Record<string, string | undefined>>): Values {
  const set = Object.entries(variables).flatMap(([variable, key]) => {
    const value = env[variable];
    return value === undefined || value === "" ? [] : [[key, value] as const];
  });
  return Object.fromEntries(set);
}
