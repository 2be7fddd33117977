import {
  Fault,
  type AgentResolver,
  type AllowedChanges,
  type HostedAgent,
  type RunRecord,
  type Runtime,
} from "../../../kernel/index.ts";
import { isAgent, type Workspace, type WorkspaceAgent } from "../../../workspace/workspace.ts";
import { hostedInfo, servedInfo, type AgentInfo } from "../../http/served-agents.ts";
import { printable, type Terminal } from "../terminal/terminal.ts";
import { reportTools } from "./machine-tools.ts";
import { defaultAgentName, inFolder, runResolver, type RunResolverOptions } from "./run-agent.ts";
import type { RunSettings } from "./run-settings.ts";
import { agentSettings, ignoredOptions } from "./run-workspace.ts";

/** An agent of the workspace that this process hosts, or would host if it could be used. */
export interface HostedFacts extends AgentInfo {
  /** Settings of its runs. */
  readonly settings: RunSettings;
  /** Whether the agent can be used. Making another one throws the reason. */
  readonly isUsable: boolean;
  /** What callers with the scope `run` may change in its runs. Absent if nothing. */
  readonly allowedChanges?: AllowedChanges;
}

/**
 * Finds the agents that a server or worker of the workspace hosts: those with a model, as far as `reeve.config.ts` lists
 * them, or the one that `--agent` names. Agents in code are loaded. Prints why others cannot be used; an error of the agent
 * that `--agent` names is thrown. Without a worker the runs are executed elsewhere, so what this machine lacks does not matter.
 */
export async function hostableAgents(
  workspace: Workspace,
  flags: RunSettings,
  terminal: Terminal,
  { isWorker }: { readonly isWorker: boolean },
): Promise<readonly HostedFacts[]> {
  const agents: HostedFacts[] = [];
  // Without a worker no agent is hosted here, and callers start runs that other processes execute.
  const not = isWorker ? "not hosted" : "not offered to callers";
  const withoutModel: string[] = [];
  const say = (text: string): void => terminal.say(`reeve: ${printable(text)}`);
  const served = servedBy(workspace, flags);
  const names = served.flatMap((agent) => (lacksModel(agent) ? [] : [agent.name]));
  const missing = isWorker ? await reportTools(workspace, names, flags.root, terminal) : [];
  const refused = missing.flatMap((each) => each.refused);
  // The error names the nearest agent.
  if (flags.agent !== undefined && served.length === 0) await agentSettings(workspace, flags);
  for (const agent of served) {
    const { name } = agent;
    const unusable = { ...described(workspace, agent), settings: { ...flags, agent: name }, isUsable: false };
    if (name !== flags.agent && (refused.includes(name) || lacksModel(agent))) {
      if (lacksModel(agent)) withoutModel.push(name);
      agents.push(unusable);
      continue;
    }
    try {
      // Making an agent that the machine cannot offer throws the error that names it.
      if (refused.includes(name)) await workspace.agent(name);
      requireTeam(workspace, agent, refused);
      const ignored = ignoredOptions(agent, flags);
      if (ignored !== undefined) say(ignored);
      agents.push(await factsOf(workspace, agent, flags));
    } catch (error) {
      if (name === flags.agent) throw error;
      say(`agent ${name} is ${not}: ${Fault.from(error).message}`);
      agents.push(unusable);
    }
  }
  if (withoutModel.length > 0)
    say(
      `${not}, because they have no model: ${withoutModel.join(", ")}; use --model provider/id, set REEVE_MODEL, or set "model" in settings.json`,
    );
  return agents;
}

/** The agents of the workspace that `--agent`, or else `reeve.config.ts`, lets a server host. */
function servedBy(workspace: Workspace, { agent: chosen }: RunSettings): readonly WorkspaceAgent[] {
  const names = chosen === undefined ? workspace.config.server?.agents : [chosen];
  const all = workspace.agents();
  return names === undefined ? all : all.filter(({ name }) => names.includes(name));
}

/** Whether an agent has no model. An agent in code has its own, which the workspace does not know. */
function lacksModel({ model, tools }: WorkspaceAgent): boolean {
  return model === undefined && tools !== undefined;
}

/** Throws if the agent cannot be made because of an agent below it. */
function requireTeam(
  workspace: Workspace,
  { subAgents = [] }: WorkspaceAgent,
  refused: readonly string[],
  seen = new Set<string>(),
): void {
  for (const name of subAgents) {
    if (seen.has(name)) continue;
    seen.add(name);
    const found = workspace.agents().find((each) => each.name === name);
    if (found === undefined) throw new Fault("not_found", `its sub-agent ${name} does not exist`);
    if (lacksModel(found)) throw new Fault("invalid_argument", `its sub-agent ${name} has no model`);
    if (refused.includes(name))
      throw new Fault("dependency_missing", `this machine cannot offer its sub-agent ${name}`);
    requireTeam(workspace, found, refused, seen);
  }
}

async function factsOf(
  workspace: Workspace,
  agent: WorkspaceAgent,
  flags: RunSettings,
): Promise<HostedFacts> {
  const { name, tools } = agent;
  const settings = await agentSettings(workspace, { ...flags, agent: name });
  const { allowedChanges: ofFile } = agent;
  if (tools !== undefined)
    return {
      ...described(workspace, agent),
      settings,
      isUsable: true,
      ...(ofFile !== undefined && { allowedChanges: ofFile }),
    };
  const made = await workspace.agent(name);
  if (!isAgent(made))
    throw new Fault("unsupported", "it is not an instance of Agent; host it in a program of yours");
  const { allowedChanges } = made;
  return {
    ...hostedInfo(made),
    name,
    settings,
    isUsable: true,
    ...(allowedChanges !== undefined && { allowedChanges }),
  };
}

/** An agent as the files describe it. Of an agent in code they have only the name. */
function described(workspace: Workspace, agent: WorkspaceAgent): AgentInfo {
  const canRead = agent.tools?.some((tool) => tool !== "none") === true;
  const skills = canRead ? workspace.skills.filter(({ hidden = false }) => !hidden) : [];
  return servedInfo({ ...agent, skills: skills.map(({ name }) => name) });
}

/** The settings of one of these agents, as the files say that the workspace has read last. `undefined` if it is not hosted. */
export async function currentSettings(
  workspace: Workspace,
  flags: RunSettings,
  name: string,
): Promise<RunSettings | undefined> {
  if (flags.agent !== undefined)
    return flags.agent === name ? await agentSettings(workspace, flags) : undefined;
  const agent = servedBy(workspace, flags).find((each) => each.name === name);
  return agent === undefined || lacksModel(agent)
    ? undefined
    : agentSettings(workspace, { ...flags, agent: name });
}

interface HostedResolverOptions {
  /** The settings that the flags of the command determine. */
  readonly flags: RunSettings;
  readonly onOpen: (workspace: Workspace) => void;
  /** Called once for each run that this process does not execute. */
  readonly onLeave: (runId: string, reason: string) => void;
  /** Which runs of this folder are executed. Others are left to other processes without a word. Default: all. */
  readonly takes?: (run: RunRecord) => boolean;
}

/**
 * Registers resolvers that make the agents of the runs of this folder, whichever process started them. The hosted ones also
 * execute the runs of schedules, with the settings of the files at that time. Call the returned function after a reload, so
 * that the runs of new agents are executed, too, and with `true` when `takes` has changed its mind.
 */
export function hostRuns(
  runtime: Pick<Runtime, "register" | "list">,
  workspace: Workspace,
  { flags, onOpen, onLeave, takes = () => true }: HostedResolverOptions,
): (again?: boolean) => void {
  const registered = new Set<string>();
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
  const registerNew = (again = false): void => {
    for (const name of [defaultAgentName, ...workspace.agents().map((agent) => agent.name)]) {
      if (registered.has(name) && !again) continue;
      registered.add(name);
      const settings = (): Promise<RunSettings | undefined> => currentSettings(workspace, flags, name);
      const resolver = runResolver({ name, accepts, onOpen, settings, runs: runtime });
      runtime.register({
        name,
        resolve: async (run) => (takes(run) ? whereComplete(resolver, run, leave) : undefined),
      });
    }
  };
  registerNew();
  return registerNew;
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
