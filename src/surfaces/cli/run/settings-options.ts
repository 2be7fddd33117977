import { statSync } from "node:fs";
import { resolve } from "node:path";
import type { SandboxMode } from "../../../capabilities/tools/index.ts";
import { Fault } from "../../../kernel/index.ts";
import type { Terminal } from "../terminal.ts";
import { sandboxModes } from "./run-sandbox.ts";
import { toolSets, type RunSettings, type ToolSet } from "./run-settings.ts";

/** The options of the default agent, as the command line passes them: texts. */
export interface SettingsOptions {
  readonly model?: string;
  readonly baseUrl?: string;
  readonly tools?: string;
  readonly root?: string;
  readonly sandbox?: string;
  readonly instructions?: string;
  readonly maxTurns?: string;
}

/** Returns the settings of the default agent. Throws `invalid_argument` if a value is invalid or there is no model. */
export function settingsOf(options: SettingsOptions, { env }: Terminal): RunSettings {
  const { tools = "read", root = ".", sandbox = "enforce", instructions, baseUrl } = options;
  const model = options.model ?? env["REEVE_MODEL"];
  if (model === undefined || model === "") {
    throw new Fault(
      "invalid_argument",
      "missing model; use --model provider/id, such as anthropic/claude-sonnet-5, or set REEVE_MODEL",
    );
  }
  if (!toolSets.includes(tools as ToolSet))
    throw new Fault("invalid_argument", `invalid --tools ${tools}: expected one of ${toolSets.join(", ")}`);
  if (!sandboxModes.includes(sandbox as SandboxMode))
    throw new Fault(
      "invalid_argument",
      `invalid --sandbox ${sandbox}: expected one of ${sandboxModes.join(", ")}`,
    );
  if (statSync(root, { throwIfNoEntry: false })?.isDirectory() !== true)
    throw new Fault("invalid_argument", `invalid --root ${root}: the folder does not exist`);
  const maxTurns = numberOf("--max-turns", options.maxTurns, { whole: true });
  return {
    model,
    tools: tools as ToolSet,
    root: resolve(root),
    sandbox: sandbox as SandboxMode,
    ...(baseUrl !== undefined && { baseUrl }),
    ...(instructions !== undefined && { instructions }),
    ...(maxTurns !== undefined && { maxTurns }),
  };
}

/** The number of an option. `undefined` if the option is absent. */
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
