import { Fault, nearestName, withoutSecrets, type JsonValue } from "../../../../kernel/index.ts";
import {
  explainSettings,
  type ExplainedSetting,
  type SettingPlace,
} from "../../../../workspace/files/index.ts";
import { inspectWorkspace, type InspectedWorkspace } from "../../../../workspace/inspect-workspace.ts";
import { reportNotices } from "../../setup/run-workspace.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { columns, short } from "../../terminal/format.ts";
import { variableName } from "../../terminal/variable-name.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";

export interface ConfigCommandOptions {
  readonly profile?: string;
  readonly onlySet?: boolean;
  readonly json?: boolean;
}

/** Prints the settings with their values and the places that set them. No code of the workspace is loaded. */
export async function configCommand(
  keys: readonly string[],
  { profile, onlySet = false, json = false }: ConfigCommandOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const { env } = terminal;
  const loaded = await inspectWorkspace({ env, ...(profile !== undefined && { profile }) });
  const all = explainSettings(loaded.settingsLayers, loaded.settings).map((each) => withoutKeys(each, env));
  const chosen = keys.length === 0 ? all : keys.flatMap((key) => chosenBy(key, all));
  const shown = onlySet ? chosen.filter(({ from, unused }) => from.length + unused.length > 0) : chosen;
  const lines = json ? shown.map((each) => JSON.stringify(each)) : columns(shown.flatMap(rowsOf));
  for (const line of lines) await terminal.out(line);
  if (!json) sayPlaces(loaded, terminal);
  if (shown.length === 0) terminal.say("No place sets a setting.");
  if (loaded.lostTrust !== undefined) terminal.say(`reeve: ${printable(loaded.lostTrust)}`);
  // What is skipped is part of the list.
  reportNotices({ notices: loaded.notices.filter(({ kind }) => kind === "warning") }, terminal);
  return "ok";
}

/** Returns the settings that a key names: one setting, or the members of a group. */
function chosenBy(key: string, all: readonly ExplainedSetting[]): readonly ExplainedSetting[] {
  const found = all.filter((each) => each.key === key || each.key.startsWith(`${key}.`));
  if (found.length > 0) return found;
  const groups = all.map((each) => each.key.slice(0, Math.max(0, each.key.lastIndexOf("."))));
  const nearest = nearestName(key, [...all.map((each) => each.key), ...groups]);
  throw new Fault(
    "invalid_argument",
    `unknown setting ${JSON.stringify(key)}${nearest === undefined ? "" : `: use ${nearest}`}; reeve config lists the settings`,
  );
}

/**
 * Returns the setting without secrets. Files name variables and should contain no keys, but a person may have
 * pasted one.
 */
function withoutKeys(setting: ExplainedSetting, env: Terminal["env"]): ExplainedSetting {
  const isVariable = setting.key.endsWith("Env");
  const hidden = (value: JsonValue): JsonValue => {
    if (Array.isArray(value)) return (value as readonly JsonValue[]).map(hidden);
    if (typeof value !== "string") return value;
    return isVariable ? variableName(value, env) : withoutSecrets(value);
  };
  return {
    ...setting,
    value: hidden(setting.value),
    unused: setting.unused.map((each) => ({ ...each, value: hidden(each.value) })),
  };
}

function rowsOf({ key, value, from, unused, description }: ExplainedSetting): readonly string[][] {
  const places = from.map(placeWords).join(", ");
  const row =
    from.length === 0
      ? [printable(key), "-", defaultIn(description)]
      : [printable(key), shownValue(value), printable(places)];
  return [
    row,
    ...unused.map((each) => [
      `  not used: ${printable(key)}`,
      shownValue(each.value),
      `${printable(placeWords(each))}, because ${each.why}`,
    ]),
  ];
}

function shownValue(value: JsonValue): string {
  return printable(short(value));
}

function placeWords({ origin, path }: SettingPlace): string {
  if (origin === "environment") return `variable ${path}`;
  return path === "" ? origin : path;
}

/** Returns the default value that is named in the description of a setting. */
function defaultIn(description: string): string {
  const found = /Default: (.+)\.$/u.exec(description)?.[1];
  return found === undefined ? "not set" : `default: ${found}`;
}

function sayPlaces({ places, isTrusted, guarded }: InspectedWorkspace, terminal: Terminal): void {
  const { home, profile, project, projectFolder } = places;
  terminal.say(`home     ${printable(home)}`);
  if (profile !== undefined) terminal.say(`profile  ${printable(profile.folder)}`);
  if (projectFolder !== undefined)
    terminal.say(
      `project  ${printable(project)} (${isTrusted ? "trusted" : guarded.length === 0 ? "nothing needs trust" : "not trusted"})`,
    );
}
