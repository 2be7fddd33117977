import type { GatewayOptions } from "../capabilities/gateway/gateway-options.ts";
import {
  Fault,
  type Guardrail,
  type HostedAgent,
  is,
  optionTable,
  type OptionKinds,
} from "../kernel/index.ts";
import type { RuntimeOptions } from "../runtime/index.ts";
import {
  loadModule,
  type ChannelSettings,
  type NotificationSettings,
  type SourceFile,
} from "./files/index.ts";

/** The options of `openRuntime` that choose or open the store. */
const optionsOfStore = ["store", "auditKey", "inbox"] as const;

/** The content of `reeve.config.ts`. */
export interface WorkspaceConfig {
  /** Agents in addition to those in `.reeve/agents`. */
  readonly agents?: readonly HostedAgent[];
  /** Options of the runtime that the command line opens for runs of this project. It opens the store itself. */
  readonly runtime?: Omit<RuntimeOptions, (typeof optionsOfStore)[number]>;
  /**
   * Options of the gateway of `reeve serve` and of the gateway of hired agents. Default of `upstreams`: the
   * providers whose key is in the environment, at their public addresses.
   */
  readonly gateway?: Partial<GatewayOptions>;
  /** What a server of this project offers. */
  readonly server?: {
    /** Names of the agents that a server or worker hosts. Default: all agents of the workspace. */
    readonly agents?: readonly string[];
    /**
     * Channels by name, in addition to those of the setting `server.channels`. A value is either settings of the
     * same form, or a channel in code.
     */
    readonly channels?: Readonly<Record<string, ChannelSettings | CodedChannel>>;
    /** Notifications by name, in addition to those of the setting `server.notifications`. */
    readonly notifications?: Readonly<Record<string, NotificationSettings>>;
  };
}

/** A channel in code. */
export interface CodedChannel extends Pick<ChannelSettings, "agent" | "allow" | "pairing"> {
  /** A `ChannelAdapter` of `reeve/server`. Its name is the name of the channel. */
  readonly adapter: object;
}

/**
 * Returns its argument. Use it in `reeve.config.ts`, so that the compiler and the editor check the configuration.
 *
 * @example
 * ```ts
 * import { Agent } from "reeve";
 * import { defineConfig } from "reeve/workspace";
 *
 * export default defineConfig({
 *   agents: [new Agent({ name: "scout", model: "anthropic/claude-sonnet-5" })],
 *   server: { agents: ["scout"] },
 * });
 * ```
 */
export function defineConfig(config: WorkspaceConfig): WorkspaceConfig {
  configTable.read("defineConfig()", config);
  for (const name of optionsOfStore)
    if (Object.hasOwn(config.runtime ?? {}, name))
      throw new Fault(
        "invalid_argument",
        `invalid runtime.${name} of reeve.config.ts: the commands of reeve open the store that --store names, without this option; remove it, or run the agents in a program of yours with openRuntime({ ${name} })`,
      );
  return config;
}

const configTable = optionTable({
  agents: is.list(),
  runtime: is.any,
  gateway: is.any,
  server: is.any,
} satisfies OptionKinds<WorkspaceConfig>);

/** Loads the configuration of a project. Returns an empty one if there is no file. */
export async function readConfig(
  source: SourceFile | undefined,
  timeoutMs: number,
): Promise<WorkspaceConfig> {
  if (source === undefined) return {};
  const { default: config } = await loadModule(source, timeoutMs);
  if (typeof config !== "object" || config === null)
    throw new Fault(
      "invalid_argument",
      `invalid configuration ${source.path}: export default defineConfig({ ... })`,
    );
  return defineConfig(config);
}

/** Loads the guardrails of files. If several have the same name, the last one is used. */
export async function readGuardrails(
  files: readonly SourceFile[],
  timeoutMs: number,
): Promise<readonly Guardrail[]> {
  const found = new Map<string, Guardrail>();
  for (const file of files) {
    const { path } = file;
    const { default: exported } = await loadModule(file, timeoutMs);
    for (const each of Array.isArray(exported) ? (exported as unknown[]) : [exported]) {
      if (typeof (each as Partial<Guardrail> | undefined)?.name !== "string")
        throw new Fault(
          "invalid_argument",
          `invalid guardrail file ${path}: export a guardrail with a name as default, such as export default { name, beforeCall }`,
        );
      const guardrail = each as Guardrail;
      found.set(guardrail.name, guardrail);
    }
  }
  return [...found.values()];
}
