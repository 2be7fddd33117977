import { kindTable, permissions } from "../agents/index.ts";
import { Gateway } from "../capabilities/gateway/gateway.ts";
import { leadsAway } from "../capabilities/gateway/program-variables.ts";
import { presetNames, presetOf, type PresetName } from "../capabilities/hire/presets.ts";
import { HiredArchitecture } from "../capabilities/hire/hired-architecture.ts";
import type { SandboxMode, SandboxPolicy } from "../capabilities/sandbox/sandbox-policy.ts";
import { Sandbox } from "../capabilities/sandbox/sandbox.ts";
import { describeValue, Fault, invalidOption, is, type OptionKinds } from "../kernel/index.ts";
import { systemClock } from "../runtime/index.ts";
import { Agent, type AgentOptions } from "./agent.ts";
import { packageRoot } from "./package-root.ts";

/** Options that are meaningful only for an agent that calls models and tools itself. */
export const notOfHired = [
  "architecture",
  "model",
  "models",
  "modelTimeouts",
  "retry",
  "tools",
  "maxTurns",
  "maxToolCallsPerTurn",
  "maxParallelToolCalls",
  "repairToolCall",
  "prepareStep",
  "stopWhen",
  "subAgents",
  "ephemeral",
  "compaction",
  "reviewers",
  "middleware",
  "steering",
  "followUps",
] as const;

/** Options of `hiredAgent()`. */
export interface HiredAgentOptions extends Omit<AgentOptions, (typeof notOfHired)[number]> {
  /**
   * A known agent program. The preset sets the command and the settings that the program needs to work behind the
   * gateway. `demo` is a small agent that is part of Reeve.
   */
  readonly preset?: PresetName;
  /**
   * The model for the agent of the preset, by the name that its provider uses. Default: the agent chooses its
   * model.
   */
  readonly model?: string;
  /**
   * The program and its arguments. It must speak the Agent Client Protocol over its standard input and output.
   * Default: the command of the preset.
   */
  readonly command?: readonly string[];
  /** The gateway through which the agent calls models. Open one with `openGateway` of `reeve/gateway`. */
  readonly gateway: Gateway;
  /**
   * The folder in which the agent works. With `isolation`, the agent works in the corresponding folder of the
   * task's worktree. Default: the working directory of the process.
   */
  readonly folder?: string;
  /**
   * Additional environment variables for the process of the agent. It also receives harmless variables such as
   * `PATH`, and those of the gateway.
   */
  readonly env?: Readonly<Record<string, string>>;
  /** Names of environment variables of this process that the agent also receives. Default: none. */
  readonly inheritEnv?: readonly string[];
  /**
   * `private`: the agent has a separate home folder in each conversation, so that it finds neither logins nor
   * settings of the user. `user`: it uses the user's home folder, which requires `sandbox: "off"`. Default:
   * `private`.
   */
  readonly home?: "private" | "user";
  /**
   * Sandbox of the agent: it may write to its folder and its private home folder, and can reach no network address
   * except the gateway. `readable` names additional paths that it may read, besides system folders and the folder
   * of its program. Default: `enforce`, so that the agent is refused where no sandbox is available.
   */
  readonly sandbox?: SandboxMode | SandboxPolicy;
  /**
   * Time that the process of the agent stays alive while it only waits for people, in milliseconds. Then the
   * process is ended, and the first answer starts it again. Default: 3_600_000.
   */
  readonly idleMs?: number;
  /**
   * Maximum time for an answer of the agent that needs no model call, such as to `initialize` and `session/new`, in
   * milliseconds. Default: 60_000.
   */
  readonly startTimeoutMs?: number;
}

type FilledOptions = Required<Pick<HiredAgentOptions, "folder" | "home" | "idleMs" | "startTimeoutMs">>;
type OwnOptions = Omit<HiredAgentOptions, Exclude<keyof AgentOptions, "model">>;

const ownKinds = {
  preset: is.choice(presetNames, { hint: "use command for another agent" }),
  model: is.text(),
  command: is.list({ of: is.text() }),
  gateway: is.checkedBy((gateway: unknown, option, owner) => {
    if (!(gateway instanceof Gateway))
      throw invalidOption(
        owner,
        option,
        gateway,
        "a gateway",
        "use await openGateway({ ... }) of reeve/gateway",
      );
  }),
  folder: is.text({ default: "." }),
  env: is.checkedBy((env: unknown, option, owner) => {
    const isText = typeof env === "object" && env !== null && !Array.isArray(env);
    if (!isText || Object.values(env).some((value) => typeof value !== "string"))
      throw invalidOption(owner, option, env, "an object with texts", 'use env: { NAME: "value" }');
    refuseKeys(owner, option, Object.keys(env));
  }),
  inheritEnv: is.checkedBy((names: unknown, option, owner) => {
    if (!Array.isArray(names) || names.some((name) => typeof name !== "string"))
      throw invalidOption(owner, option, names, "a list of names", 'use inheritEnv: ["NAME"]');
    refuseKeys(owner, option, names as readonly string[]);
  }),
  home: is.choice(["private", "user"], { default: "private" }),
  sandbox: is.any,
  idleMs: is.integer({ from: 0, default: 3_600_000 }),
  startTimeoutMs: is.integer({ from: 1, default: 60_000 }),
} satisfies OptionKinds<OwnOptions>;

/**
 * Throws if the options contain a key or another address, with which a hired agent could bypass the gateway and its
 * budget.
 */
function refuseKeys(owner: string, option: string, names: readonly string[]): void {
  const name = names.find(leadsAway);
  if (name !== undefined)
    throw new Fault(
      "invalid_argument",
      `invalid ${option} of ${owner}: with ${name} the agent could spend past the gateway; leave it out, and give the key to the gateway`,
    );
}

const hiredTable = kindTable(notOfHired, ownKinds);

/**
 * Creates an agent that is another program. Each task starts the program, sends it the prompt, asks a person about
 * its calls, and pays for its model calls through the gateway.
 *
 * @example
 * ```ts
 * import { hiredAgent } from "reeve/hire";
 * import { openGateway } from "reeve/gateway";
 *
 * const gateway = await openGateway({
 *   upstreams: { anthropic: { baseUrl: "https://api.anthropic.com", apiKey: process.env["ANTHROPIC_API_KEY"] ?? "" } },
 * });
 * const coder = hiredAgent({
 *   name: "coder",
 *   description: "Changes code",
 *   preset: "claude-code",
 *   gateway,
 *   isolation: "worktree",
 *   budget: { maxCostUsd: 0.5 },
 * });
 * ```
 */
export function hiredAgent(options: HiredAgentOptions): Agent {
  return new HiredAgent(options);
}

/** Limits for a process that may run for hours and start other processes. */
const hiredLimits = { processes: 4_096, memoryBytes: 32 * 1024 ** 3, cpuSeconds: 7 * 86_400 };

function hiredSandbox(wanted: SandboxMode | SandboxPolicy, readable: readonly string[]): Sandbox {
  const policy: SandboxPolicy = typeof wanted === "string" ? { mode: wanted } : wanted;
  return new Sandbox({
    ...policy,
    readable: [...readable, ...(policy.readable ?? [])],
    limits: { ...hiredLimits, ...policy.limits },
  });
}

class HiredAgent extends Agent {
  constructor(options: HiredAgentOptions) {
    const owner = `hired agent ${describeValue(options.name)}`;
    const read = hiredTable.read(owner, options) as HiredAgentOptions & FilledOptions;
    const {
      preset,
      model,
      command,
      gateway,
      folder,
      env = {},
      inheritEnv = [],
      home,
      sandbox: wanted = "enforce",
      idleMs,
      startTimeoutMs,
      ...rest
    } = read;
    const known = preset === undefined ? undefined : presetOf(preset, owner);
    if (model !== undefined && known === undefined)
      throw new Fault(
        "invalid_argument",
        `invalid model of ${owner}: only a preset knows how its agent chooses a model; set preset, or the variable of the agent in env`,
      );
    const [program = "", ...args] = command ?? known?.command(packageRoot) ?? [];
    if (program === "")
      throw invalidOption(
        owner,
        "command",
        command,
        "a program and its arguments",
        `use command: ["my-agent", "acp"], or preset: "${presetNames[0]}"`,
      );
    const sandbox = hiredSandbox(wanted, known?.readable?.(packageRoot) ?? []);
    if (home === "user" && sandbox.policy.mode !== "off")
      throw new Fault(
        "invalid_argument",
        `invalid home "user" of ${owner}: a sandbox shows no home of the user; use sandbox: "off", or home: "private"`,
      );
    if (home === "user" && known?.homeFiles !== undefined)
      throw new Fault(
        "invalid_argument",
        `invalid home "user" of ${owner}: preset ${describeValue(preset)} is configured by files in its home, and those of the user are not changed; use home: "private"`,
      );
    super({
      ...rest,
      permissions: rest.permissions ?? permissions({ onAsk: "wait" }),
      architecture: new HiredArchitecture({
        name: options.name,
        command: [program, ...args],
        ...(known && { preset: known }),
        ...(model !== undefined && { model }),
        gateway,
        folder,
        env,
        inheritEnv,
        home,
        sandbox,
        idleMs,
        startTimeoutMs,
        clock: systemClock,
      }),
    });
  }
}
