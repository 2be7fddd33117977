import { isAbsolute, relative, resolve, sep } from "node:path";
import type { Agent } from "../../../assembly/agent.ts";
import {
  Fault,
  parseAgentId,
  type AgentResolver,
  type HostedAgent,
  type RunRecord,
  type Runtime,
  type SessionId,
} from "../../../kernel/index.ts";
import {
  isAgent,
  openWorkspace,
  type Settings,
  type Workspace,
  type WorkspaceOptions,
} from "../../../workspace/workspace.ts";
import { changedWords } from "../../../workspace/files/index.ts";
import { findSettings, type RunSettings } from "./run-settings.ts";

export const defaultAgentName = "assistant";

/** The person or option that decides about calls that need approval. */
interface Decider {
  /** Whether every call is approved in advance. Default: `false`, so that a person is asked. */
  readonly yes?: boolean;
}

export type RunWorkspaceOptions = Decider & Pick<WorkspaceOptions, "ephemeral" | "mcpServers" | "trust">;

/** Opens the workspace of a run. The caller must close it. */
export function openRunWorkspace(
  settings: RunSettings,
  { yes = false, ephemeral = false, mcpServers, trust = "stored" }: RunWorkspaceOptions = {},
): Promise<Workspace> {
  const { model, baseUrl, tools, sandbox, maxTurns, root, folder, profile } = settings;
  const flags: Settings = {
    ...(model !== undefined && { model }),
    ...(baseUrl !== undefined && { baseUrl }),
    ...(tools !== undefined && { tools }),
    ...(sandbox !== undefined && { sandbox }),
    ...(maxTurns !== undefined && { maxTurns }),
    ...(yes && { permissions: { mode: "bypass" } }),
  };
  return openWorkspace({
    cwd: folder ?? root,
    root,
    settings: flags,
    ephemeral,
    trust,
    ...(mcpServers !== undefined && { mcpServers }),
    ...(profile !== undefined && { profile }),
  });
}

/**
 * Creates the agent of one session. The agent's id contains the session, so that a process that hosts it executes
 * only the runs of this session, and no unfinished runs of other processes in the same store.
 */
export function runAgent(workspace: Workspace, settings: RunSettings, sessionId: SessionId): Promise<Agent> {
  return agentWithKey(workspace, settings, sessionId.replaceAll("/", ":"));
}

export interface RunResolverOptions extends Decider {
  /** Name of the agent whose runs are executed. Default: `assistant`. */
  readonly name?: string;
  /**
   * Returns whether this process executes a run of `reeve run`. A run that is not accepted is left to other
   * processes.
   */
  readonly accepts: (run: RunRecord, settings: RunSettings) => boolean;
  /**
   * Returns the settings for runs that name the agent without a session and store no settings, such as runs of a
   * schedule.
   */
  readonly settings?: () => Promise<RunSettings | undefined>;
  /**
   * Used to find the settings of reviews and compactions that an earlier version stored without settings. If
   * absent, such a run is not executed.
   */
  readonly runs?: Pick<Runtime, "list">;
  /** Receives each workspace that is opened for an agent, so that the caller can close it. */
  readonly onOpen?: (workspace: Workspace) => void;
}

/**
 * Returns a resolver that creates the agents of runs of `reeve run` from the data that are stored with each run, so
 * that any process can execute them. The command line resumes runs only in this way. With `settings`, the resolver
 * also creates the agent for runs that schedules and other programs start.
 */
export function runResolver({
  name = defaultAgentName,
  accepts,
  settings: own,
  runs,
  onOpen,
  ...decider
}: RunResolverOptions): AgentResolver {
  const workspaces = new Map<string, Promise<Workspace>>();
  const workspaceOf = (settings: RunSettings): Promise<Workspace> => {
    const key = JSON.stringify(settings);
    const known = workspaces.get(key);
    if (known !== undefined) return known;
    const opening = openRunWorkspace(settings, decider).then((workspace) => {
      onOpen?.(workspace);
      return workspace;
    });
    workspaces.set(key, opening);
    opening.catch(() => workspaces.delete(key));
    return opening;
  };
  return {
    name,
    resolve: async (run) => {
      const { key } = parseAgentId(run.agentId);
      const settings = key === undefined ? await own?.() : await storedSettings(run, runs);
      if (settings === undefined || !accepts(run, settings)) return undefined;
      const workspace = await workspaceOf(settings);
      if (settings.isTrusted === true && !workspace.isTrusted) throw lostTrust(run, workspace);
      return agentWithKey(workspace, settings, key);
    },
  };
}

/**
 * Returns the settings that are stored with a run. Earlier versions stored no settings with reviews and
 * compactions. For these runs, the settings of the newest invocation of their agent are used; the agent's id
 * contains the session.
 */
async function storedSettings(
  { agentId, kind, metadata }: RunRecord,
  runs: RunResolverOptions["runs"],
): Promise<RunSettings | undefined> {
  const own = findSettings(metadata);
  if (own !== undefined || kind === "invocation" || runs === undefined) return own;
  const [newest] = (await runs.list({ agentId, kind: "invocation", limit: 1 })).runs;
  return newest && findSettings(newest.metadata);
}

/**
 * Returns the fault for a run whose project was trusted when the run started, but is no longer trusted in its
 * present state. Without the parts that need trust, the replay would differ from the journal, and the run would
 * fail although only a decision about trust is missing.
 */
function lostTrust({ runId }: RunRecord, { places, changed }: Workspace): Fault {
  return new Fault(
    "permission_denied",
    `${runId} is not continued: its project ${places.project} was trusted when it started, and its code has changed since${changedWords(changed)}; look at the change, run reeve trust, then reeve run --resume ${runId}`,
  );
}

/** Accepts the runs whose tools work in this folder or below it. Used by a worker of the folder. */
export function inFolder(folder: string): RunResolverOptions["accepts"] {
  return (_run, { root }) => {
    const path = relative(resolve(folder), resolve(root));
    return !isAbsolute(path) && path.split(sep)[0] !== "..";
  };
}

async function agentWithKey(
  workspace: Workspace,
  { agent: name = defaultAgentName, instructions }: RunSettings,
  key: string | undefined,
): Promise<Agent> {
  const agent: HostedAgent = await workspace.agent(name, key === undefined ? {} : { key });
  if (!isAgent(agent))
    throw new Fault(
      "unsupported",
      `agent ${name} is not an instance of Agent; reeve run can run only such agents`,
    );
  return instructions === undefined ? agent : agent.with({ instructions });
}
