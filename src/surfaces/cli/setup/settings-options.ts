import { statSync } from "node:fs";
import { resolve } from "node:path";
import type { SandboxMode } from "../../../capabilities/tools/index.ts";
import { Fault } from "../../../kernel/index.ts";
import { toolSets, type RunSettings, type ToolSet } from "./run-settings.ts";

const sandboxModes: readonly SandboxMode[] = ["enforce", "warn", "off"];

/** The options for agents, as texts from the command line. */
export interface SettingsOptions {
  readonly model?: string;
  readonly baseUrl?: string;
  readonly tools?: string;
  readonly root?: string;
  readonly sandbox?: string;
  readonly instructions?: string;
  readonly maxTurns?: string;
  readonly agent?: string;
  readonly profile?: string;
}

/** Returns the settings that the options name. Throws `invalid_argument` if a value is invalid. */
export function settingsOf(options: SettingsOptions): RunSettings {
  const { model, tools, root = ".", sandbox, instructions, baseUrl, agent, profile } = options;
  if (tools !== undefined && !toolSets.includes(tools as ToolSet))
    throw new Fault("invalid_argument", `invalid --tools ${tools}: expected one of ${toolSets.join(", ")}`);
  if (sandbox !== undefined && !sandboxModes.includes(sandbox as SandboxMode))
    throw new Fault(
      "invalid_argument",
      `invalid --sandbox ${sandbox}: expected one of ${sandboxModes.join(", ")}`,
    );
  if (statSync(root, { throwIfNoEntry: false })?.isDirectory() !== true)
    throw new Fault("invalid_argument", `invalid --root ${root}: the folder does not exist`);
  const maxTurns = numberOf("--max-turns", options.maxTurns, { whole: true });
  return {
    root: resolve(root),
    folder: process.cwd(),
    ...(model !== undefined && { model }),
    ...(tools !== undefined && { tools: tools as ToolSet }),
    ...(sandbox !== undefined && { sandbox: sandbox as SandboxMode }),
    ...(agent !== undefined && { agent }),
    ...(profile !== undefined && { profile }),
    ...(baseUrl !== undefined && { baseUrl }),
    ...(instructions !== undefined && { instructions }),
    ...(maxTurns !== undefined && { maxTurns }),
  };
}

/** Returns the numeric value of an option, or `undefined` if the option is absent. */
export function numberOf(
  option: string,
  text: string | undefined,
  { whole = false }: { readonly whole?: boolean },
): number | undefined {
  if (text === undefined) return undefined;
  const value = text.trim() === "" ? Number.NaN : Number(text);
  const fits = Number.isFinite(value) && value > 0 && (!whole || Number.isSafeInteger(value));
  if (fits) return value;
  throw new Fault(
    "invalid_argument",
    `invalid ${option} ${text}: expected ${whole ? "an integer from 1" : "a number above 0"}`,
  );
}
