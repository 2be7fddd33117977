import type { AgentResolver } from "../../../kernel/index.ts";
import type { Workspace } from "../../../workspace.ts";
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
  const only = workspace.config.server?.agents;
  const settings: RunSettings[] = [];
  for (const { name, model, tools } of workspace.agents())
    // An agent in code has its own model, which the workspace does not know.
    if ((only?.includes(name) ?? true) && (model !== undefined || tools === undefined))
      settings.push(await agentSettings(workspace, { ...flags, agent: name }));
  return settings;
}

interface HostedResolverOptions {
  /** Settings of the agents that this process hosts. */
  readonly hosted: readonly RunSettings[];
  readonly root: string;
  readonly onOpen: (workspace: Workspace) => void;
  /** Called once for each run that this process does not drive. */
  readonly onLeave: (runId: string, reason: string) => void;
}

/**
 * Make the agents of the runs of this folder, whichever process started them. Those of `hosted` also execute the runs of
 * schedules.
 */
export function hostedResolvers(
  workspace: Workspace,
  { hosted, root, onOpen, onLeave }: HostedResolverOptions,
): readonly AgentResolver[] {
  const names = new Set([defaultAgentName, ...workspace.agents().map(({ name }) => name)]);
  const isOfFolder = inFolder(root);
  const told = new Set<string>();
  const accepts: RunResolverOptions["accepts"] = (run, stored) => {
    const reason = isOfFolder(run, stored)
      ? whyLeftAlone(stored, workspace)
      : `its folder ${stored.root} is not in ${root}`;
    if (reason !== undefined && !told.has(run.runId)) onLeave(run.runId, reason);
    told.add(run.runId);
    return reason === undefined;
  };
  return [...names].map((name) => {
    const settings = hosted.find(({ agent = defaultAgentName }) => agent === name);
    return runResolver({
      name,
      accepts,
      onOpen,
      ...(settings !== undefined && { settings }),
    });
  });
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
