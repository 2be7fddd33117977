import { type Model, is, optionTable, type OptionKinds } from "../kernel/index.ts";
import type { ServerConfigs } from "../capabilities/mcp/index.ts";
import { checkSettings, Notices, type LoadWorkspaceOptions, type Settings } from "./files/index.ts";
import { expander } from "./workspace-live.ts";
import { homedir } from "node:os";
import { join } from "node:path";

/** Options of `openWorkspace`. */
export interface WorkspaceOptions {
  /** Working folder. Default: the working folder of the process. */
  readonly cwd?: string;
  /** Folder of the user. Default: the variable `REEVE_HOME`, else `~/.reeve`. */
  readonly home?: string;
  /** Name of the profile. Default: the variable `REEVE_PROFILE`, else none. */
  readonly profile?: string;
  /** Whether Reeve must not write to the profile. The profile then need not exist. Default: `false`. */
  readonly ephemeral?: boolean;
  /** Environment variables. Default: those of the process. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Settings that take precedence over all files and the environment, such as those of a command line. */
  readonly settings?: Settings;
  /**
   * Whether the files of the project that need trust are used. `stored`: as the user decided with `reeve trust`.
   * `always`: in any case. `never`: not at all. Default: `stored`.
   */
  readonly trust?: "stored" | "always" | "never";
  /** Folder to which file tools and shell commands are confined. Default: the working folder. */
  readonly root?: string;
  /** Returns the model of a name. Used in place of `namedModel`. */
  readonly resolveModel?: (name: string) => Model;
  /** Maximum time in which a module of the user must load, in milliseconds. Default: 10_000. */
  readonly importTimeoutMs?: number;
  /**
   * MCP servers in addition to those of the files, such as those that an editor passes. A server replaces one of a
   * file with the same name.
   */
  readonly mcpServers?: ServerConfigs;
  /** Returns the current time, for the date in prompts. Default: the system's clock. */
  readonly now?: () => number;
}

const knownOptions = optionTable({
  cwd: is.text(),
  home: is.text(),
  profile: is.text(),
  ephemeral: is.boolean(),
  env: is.any,
  settings: is.any,
  trust: is.choice(["stored", "always", "never"]),
  root: is.text(),
  resolveModel: is.callback(),
  importTimeoutMs: is.number({ from: 0 }),
  mcpServers: is.any,
  now: is.callback(),
} satisfies OptionKinds<WorkspaceOptions>);

/** Throws for options that `openWorkspace` does not have. */
export function checkWorkspaceOptions(options: WorkspaceOptions): void {
  knownOptions.read("openWorkspace()", options);
}

/** How the files of a workspace are read. */
export function loadingOptions(options: WorkspaceOptions): Omit<LoadWorkspaceOptions, "trust"> {
  const { settings: flags = {}, ephemeral, env = process.env } = options;
  const profile = options.profile ?? variable(env, "REEVE_PROFILE");
  return {
    cwd: options.cwd ?? process.cwd(),
    home: options.home ?? variable(env, "REEVE_HOME") ?? join(homedir(), ".reeve"),
    env,
    expand: expander(env),
    flags: checkSettings(flags, "the options of openWorkspace()", new Notices()),
    ...(profile !== undefined && { profile }),
    ...(ephemeral !== undefined && { ephemeral }),
  };
}

function variable(env: Readonly<Record<string, string | undefined>>, name: string): string | undefined {
  const value = env[name];
  return value === "" ? undefined : value;
}
