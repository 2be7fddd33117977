import { Fault, type AgentResolver, type HostedAgent, type RunRecord } from "../../../kernel/index.ts";
import type { Workspace } from "../../../workspace/workspace.ts";
import { defaultAgentName, inFolder, runResolver, type RunResolverOptions } from "./run-agent.ts";
import type { RunSettings } from "./run-settings.ts";
import { agentSettings } from "./run-workspace.ts";

/**
 * The settings of each agent of the workspace that has a model, as far as `reeve.config.ts` lists them for the server, or
 * of the agent that `--agent` names.
 */
export async function hostedSettings(
  workspace: Workspace,
  flags: RunSettings,
): Promise<readonly RunSettings[]> {
  if (flags.agent !== undefined) return [await agentSettings(workspace, flags)];
  const settings: RunSettings[] = [];
  for (const { name } of workspace.agents()) {
    const own = await currentSettings(workspace, flags, name);
    if (own !== undefined) settings.push(own);
  }
  return settings;
}

/** The settings of one of these agents, as the files say that the workspace has read last. `undefined` if it is not hosted. */
export async function currentSettings(
  workspace: Workspace,
  flags: RunSettings,
  name: string,
): Promise<RunSettings | undefined> {
  if (flags.agent !== undefined)
    return flags.agent === name ? await agentSettings(workspace, flags) : undefined;
  const agent = workspace.agents().find((each) => each.name === name);
  const isServed = workspace.config.server?.agents?.includes(name) ?? true;
  // An agent in code has its own model, which the workspace does not know.
  if (agent === undefined || !isServed || (agent.model === undefined && agent.tools !== undefined))
    return undefined;
  return agentSettings(workspace, { ...flags, agent: name });
}

interface HostedResolverOptions {
  /** The settings that the flags of the command determine. */
  readonly flags: RunSettings;
  readonly onOpen: (workspace: Workspace) => void;
  /** Called once for each run that this process does not drive. */
  readonly onLeave: (runId: string, reason: string) => void;
}

/**
 * Make the agents of the runs of this folder, whichever process started them. The hosted ones also execute the runs of
 * schedules, with the settings of the files at that time.
 */
export function hostedResolvers(
  workspace: Workspace,
  { flags, onOpen, onLeave }: HostedResolverOptions,
): readonly AgentResolver[] {
  const names = new Set([defaultAgentName, ...workspace.agents().map(({ name }) => name)]);
  const { root } = flags;
  const isOfFolder = inFolder(root);
  const told = new Set<string>();
  const leave = ({ runId }: RunRecord, reason: string): void => {
    if (!told.has(runId)) onLeave(runId, reason);
    told.add(runId);
  };
  const accepts: RunResolverOptions["accepts"] = (run, stored) => {
    const reason = isOfFolder(run, stored)
      ? whyLeftAlone(stored, workspace)
      : `its folder ${stored.root} is not in ${root}`;
    if (reason !== undefined) leave(run, reason);
    return reason === undefined;
  };
  return [...names].map((name) => {
    const settings = (): Promise<RunSettings | undefined> => currentSettings(workspace, flags, name);
    const resolver = runResolver({ name, accepts, onOpen, settings });
    return { name, resolve: (run) => whereComplete(resolver, run, leave) };
  });
}

/** Makes the agent of a run. Leaves the run to other workers if this machine lacks something that the agent needs. */
async function whereComplete(
  resolver: AgentResolver,
  run: RunRecord,
  leave: (run: RunRecord, reason: string) => void,
): Promise<HostedAgent | undefined> {
  try {
    return await resolver.resolve(run);
  } catch (error) {
    if (!Fault.is(error) || error.code !== "dependency_missing") throw error;
    leave(run, error.message);
    return undefined;
  }
}

/**
 * Why a run is left alone whose stored settings need trust: they name an address that would receive the user's key, or a
 * weaker sandbox. `undefined` if they name nothing of the kind. Such a run is left to `reeve run --resume`.
 */
export function whyLeftAlone(
  { baseUrl, sandbox }: Pick<RunSettings, "baseUrl" | "sandbox">,
  { isTrusted, settings }: Pick<Workspace, "isTrusted" | "settings">,
): string | undefined {
  if (isTrusted) return undefined;
  if (baseUrl !== undefined && baseUrl !== settings.baseUrl)
    return `its settings name the address ${baseUrl}, and the project is not trusted`;
  if (sandbox !== undefined && sandbox !== "enforce" && sandbox !== settings.sandbox)
    return `its settings name the sandbox mode ${sandbox}, and the project is not trusted`;
  return undefined;
}
