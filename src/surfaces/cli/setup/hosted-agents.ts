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

/** An agent of the workspace that this process hosts, or that it would host if the agent could be created. */
export interface HostedFacts extends AgentInfo {
  /** Settings of its runs. */
  readonly settings: RunSettings;
  /** Whether the agent can be created. If not, the attempt to create it throws the reason. */
  readonly isUsable: boolean;
  /** The settings that callers with the scope `run` may change in the agent's runs. Absent if they may change none. */
  readonly allowedChanges?: AllowedChanges;
}

/**
 * Finds the agents that a server or worker of the workspace hosts: the agents with a model that `reeve.config.ts`
 * lists, or the agent that `--agent` names. Agents in code are loaded. For an agent that cannot be used, the reason
 * is printed; for the agent that `--agent` names, it is thrown. Without a worker the runs are executed on other
 * machines, so missing parts of this machine do not matter.
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

/**
 * Returns the agents of the workspace that the server may host: the agent that `--agent` names, or else those that
 * `reeve.config.ts` lists.
 */
function servedBy(workspace: Workspace, { agent: chosen }: RunSettings): readonly WorkspaceAgent[] {
  const names = chosen === undefined ? workspace.config.server?.agents : [chosen];
  const all = workspace.agents();
  return names === undefined ? all : all.filter(({ name }) => names.includes(name));
}

/** Whether an agent has no model. An agent in code has its own model, which the workspace does not know. */
function lacksModel({ model, tools }: WorkspaceAgent): boolean {
  return model === undefined && tools !== undefined;
}

/** Throws if the agent cannot be created because one of the agents below it cannot be created. */
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

/** Returns the description of an agent from its files. For an agent in code, the files contain only the name. */
function described(workspace: Workspace, agent: WorkspaceAgent): AgentInfo {
  const canRead = agent.tools?.some((tool) => tool !== "none") === true;
  const skills = canRead ? workspace.skills.filter(({ hidden = false }) => !hidden) : [];
  return servedInfo({ ...agent, skills: skills.map(({ name }) => name) });
}

/**
 * Returns the settings of a hosted agent, from the files as the workspace last read them. `undefined` if the agent
 * is not hosted.
 */
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
  /** The settings that are given by command-line flags. */
  readonly flags: RunSettings;
  readonly onOpen: (workspace: Workspace) => void;
  /** Called once for each run that this process does not execute. */
  readonly onLeave: (runId: string, reason: string) => void;
  /**
   * Decides which runs of this folder are executed. Other runs are silently left to other processes. Default: all
   * runs.
   */
  readonly takes?: (run: RunRecord) => boolean;
}

/**
 * Registers resolvers that create the agents for the runs of this folder, regardless of the process that started
 * the runs. Hosted agents also execute the runs of schedules, with the settings that the files contain at that
 * time. Call the returned function after a reload, so that the runs of new agents are also executed. Call it with
 * `true` when `takes` may return other results than before.
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

/**
 * Creates the agent of a run. If this machine lacks something that the agent needs, the run is left to other
 * workers.
 */
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
 * Returns why a run is not executed here. Its stored settings need trust, because they name an address that would
 * receive the user's key, or a weaker sandbox. `undefined` if they name neither. A run that is not executed waits
 * for `reeve run --resume`.
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
