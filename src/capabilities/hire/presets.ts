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
  /** Paths that the program reads in addition to its own folder. Default: none. */
  readonly readable?: (root: string) => readonly string[];
  /** The protocol (wire) of its model calls. The gateway refuses its token on other protocols. */
  readonly wire: NonNullable<ProgramLimits["wire"]>;
  /** Returns the environment variables of the process, in addition to those of the gateway. */
  readonly variables: (given: PresetValues) => Readonly<Record<string, string>>;
  /**
   * Returns files of the private home by their paths in it, which are written before each start. An agent with such
   * files needs a private home.
   */
  readonly homeFiles?: (given: PresetValues) => Readonly<Record<string, string>>;
  /** The login method that the agent needs before it opens a session. Default: none. */
  readonly login?: string;
}

/** The values from which the variables and the files of a preset are made. */
interface PresetValues {
  /** The model that the agent must use. `undefined` if the agent chooses its model. */
  readonly model: string | undefined;
  /** Address of the gateway, without `/v1`, and the token of the agent. */
  readonly access: { readonly url: string; readonly token: string };
  /** The private home. `undefined` if the agent uses the home of the user. */
  readonly home: string | undefined;
  /** Whether the sandbox of Reeve confines the process. */
  readonly isConfined: boolean;
}

const modules = "/node_modules/";

/**
 * Returns the folders of the packages that Reeve loads: beside its own folder, or inside a clone. A package manager
 * may link a package to another folder.
 */
function packageFolders(root: string): readonly string[] {
  const folder = root.includes(modules) ? modulesAbove(root) : join(root, "node_modules");
  const one = join(folder, "commander");
  return existsSync(one) ? [...new Set([folder, modulesAbove(realpathSync(one))])] : [folder];
}

function modulesAbove(path: string): string {
  return path.slice(0, path.lastIndexOf(modules) + modules.length - 1);
}

/** The names of the presets. */
export type PresetName = "claude-code" | "codex" | "opencode" | "gemini" | "demo";

const known: Readonly<Record<PresetName, Preset>> = {
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
  codex: {
    package: "@agentclientprotocol/codex-acp",
    command: () => ["codex-acp"],
    wire: "openai",
    variables: ({ home, isConfined }) => ({
      ...(home !== undefined && { CODEX_HOME: join(home, ".codex") }),
      // The adapter chooses the inner sandbox by its mode, whatever the file says.
      INITIAL_AGENT_MODE: isConfined ? "agent-full-access" : "workspace-write",
    }),
    homeFiles: ({ model, access, isConfined }) => ({
      ".codex/config.toml": codexConfig(model, access.url, isConfined),
    }),
  },
  opencode: {
    package: "opencode-ai",
    command: () => ["opencode", "acp"],
    wire: "anthropic",
    variables: ({ model, access }) => ({
      // This configuration precedes those of the folder and of the home.
      OPENCODE_CONFIG_CONTENT: JSON.stringify(opencodeConfig(model, access)),
      OPENCODE_DISABLE_AUTOUPDATE: "1",
      OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
      OPENCODE_DISABLE_MODELS_FETCH: "1",
      OPENCODE_DISABLE_SHARE: "1",
      OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
    }),
  },
  gemini: {
    package: "@google/gemini-cli",
    command: () => ["gemini", "--acp"],
    wire: "gemini",
    variables: ({ model }) => ({
      GEMINI_SANDBOX: "false",
      // Without a model, a second one chooses it before each prompt.
      ...(model !== undefined && { GEMINI_MODEL: model }),
    }),
    homeFiles: () => ({ ".gemini/settings.json": JSON.stringify(geminiSettings) }),
    login: "gemini-api-key",
  },
  demo: {
    package: "reeve",
    command: (root) => [process.execPath, join(root, "dist/surfaces/cli/main.js"), "demo", "--agent"],
    readable: (root) => [join(root, "dist"), join(root, "package.json"), ...packageFolders(root)],
    wire: "anthropic",
    variables: ({ model }) => (model === undefined ? {} : { ANTHROPIC_MODEL: model }),
  },
};

/**
 * Returns the configuration of Codex. Its models are those of the gateway, and only the gateway retries calls.
 * Inside the sandbox of Reeve, the sandbox of Codex is off, because Bubblewrap cannot be nested.
 */
function codexConfig(model: string | undefined, url: string, isConfined: boolean): string {
  const lines = [
    ...(model === undefined ? [] : [`model = ${JSON.stringify(model)}`]),
    'model_provider = "reeve"',
    `sandbox_mode = "${isConfined ? "danger-full-access" : "workspace-write"}"`,
    'approval_policy = "on-request"',
    // The gateway refuses tools that the provider runs, because it cannot bound their cost.
    'web_search = "disabled"',
    "check_for_update_on_startup = false",
    "",
    "[analytics]",
    "enabled = false",
    "",
    "[feedback]",
    "enabled = false",
    "",
    "[model_providers.reeve]",
    'name = "Reeve"',
    `base_url = ${JSON.stringify(`${url}/v1`)}`,
    'env_key = "REEVE_GATEWAY_TOKEN"',
    'wire_api = "responses"',
    "request_max_retries = 0",
    "stream_max_retries = 0",
  ];
  return `${lines.join("\n")}\n`;
}

/** The configuration of OpenCode: the provider is the gateway, and it asks before it writes and runs commands. */
function opencodeConfig(model: string | undefined, { url, token }: PresetValues["access"]): object {
  const named = model === undefined ? undefined : `anthropic/${model}`;
  return {
    autoupdate: false,
    share: "disabled",
    // Titles are written by the same model, because another one may have no price.
    ...(named !== undefined && { model: named, small_model: named }),
    enabled_providers: ["anthropic"],
    provider: { anthropic: { options: { baseURL: `${url}/v1`, apiKey: token } } },
    permission: { edit: "ask", bash: "ask", webfetch: "ask" },
  };
}

/** The settings of Gemini CLI: no updates, no reports, and the key of the gateway in place of a login. */
const geminiSettings = {
  general: { enableAutoUpdate: false, enableAutoUpdateNotification: false },
  privacy: { usageStatisticsEnabled: false },
  telemetry: { enabled: false },
  security: { auth: { selectedType: "gemini-api-key" } },
};

/** The names of the presets. */
export const presetNames = Object.keys(known) as readonly PresetName[];

/** The presets of programs that a user installs, by their names. */
export const installable: Readonly<Record<string, Preset>> = Object.fromEntries(
  Object.entries(known).filter(([, preset]) => preset.package !== known.demo.package),
);

/** Returns the command of a preset. `undefined` for an unknown name. */
export function presetCommand(name: string, root: string): readonly string[] | undefined {
  return Object.hasOwn(known, name) ? known[name as PresetName].command(root) : undefined;
}

/** Returns the preset of a name. Throws `invalid_argument`. */
export function presetOf(name: string, owner: string): Preset {
  if (Object.hasOwn(known, name)) return known[name as PresetName];
  const nearest = nearestName(name, presetNames);
  const fix =
    nearest === undefined ? `expected one of ${presetNames.join(", ")}` : `use ${describeValue(nearest)}`;
  throw new Fault(
    "invalid_argument",
    `invalid preset ${describeValue(name)} of ${owner}: ${fix}; hire any other agent of the Agent Client Protocol with command`,
  );
}
