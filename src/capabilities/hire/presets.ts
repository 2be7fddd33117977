import { existsSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { Fault, describeValue, nearestName } from "../../kernel/index.ts";
import type { ProgramLimits } from "../gateway/gateway.ts";

/** A known agent: how it is started, and what it needs to work behind the gateway. */
export interface Preset {
  /** The npm package that brings the program. */
  readonly package: string;
  /** The command. `root` is the folder of the package of Reeve. */
  readonly command: (root: string) => readonly [string, ...string[]];
  /** What the program reads besides its own folder. Default: nothing. */
  readonly readable?: (root: string) => readonly string[];
  /** The wire of its model calls. Its token is refused on the others. */
  readonly wire: NonNullable<ProgramLimits["wire"]>;
  /** Variables for the process, besides those of the gateway. */
  readonly variables: (given: PresetValues) => Readonly<Record<string, string>>;
}

/** What the variables of a preset are made from. */
interface PresetValues {
  /** The model that the agent shall use. `undefined`: the one that it chooses. */
  readonly model: string | undefined;
}

const modules = "/node_modules/";

/** The folder of the packages that Reeve loads: beside its own, or inside a clone. A package manager may link them to another one. */
function packageFolders(root: string): readonly string[] {
  const folder = root.includes(modules) ? modulesAbove(root) : join(root, "node_modules");
  const one = join(folder, "commander");
  return existsSync(one) ? [...new Set([folder, modulesAbove(realpathSync(one))])] : [folder];
}

function modulesAbove(path: string): string {
  return path.slice(0, path.lastIndexOf(modules) + modules.length - 1);
}

const known: Readonly<Record<string, Preset>> = {
  "claude-code": {
    package: "@agentclientprotocol/claude-agent-acp",
    command: () => ["claude-agent-acp"],
    wire: "anthropic",
    variables: ({ model }) => ({
      // The updater and the reports would call other addresses.
      DISABLE_AUTOUPDATER: "1",
      DISABLE_TELEMETRY: "1",
      DISABLE_ERROR_REPORTING: "1",
      ...(model !== undefined && { ANTHROPIC_MODEL: model }),
    }),
  },
  demo: {
    package: "reeve",
    command: (root) => [process.execPath, join(root, "dist/surfaces/cli/main.js"), "demo", "--agent"],
    readable: (root) => [join(root, "dist"), join(root, "package.json"), ...packageFolders(root)],
    wire: "anthropic",
    variables: ({ model }) => (model === undefined ? {} : { ANTHROPIC_MODEL: model }),
  },
};

/** The names of the presets. */
export const presetNames: readonly string[] = Object.keys(known);

/** Returns the preset of a name. Throws `invalid_argument`. */
export function presetOf(name: string, owner: string): Preset {
  const found = Object.hasOwn(known, name) ? known[name] : undefined;
  if (found !== undefined) return found;
  const nearest = nearestName(name, presetNames);
  const fix =
    nearest === undefined ? `expected one of ${presetNames.join(", ")}` : `use ${describeValue(nearest)}`;
  throw new Fault(
    "invalid_argument",
    `invalid preset ${describeValue(name)} of ${owner}: ${fix}; hire any other agent of the Agent Client Protocol with command`,
  );
}
