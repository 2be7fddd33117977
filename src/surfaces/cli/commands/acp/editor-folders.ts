import { statSync } from "node:fs";
import { join, resolve } from "node:path";
import type { ServerConfigs } from "../../../../capabilities/mcp/index.ts";
import { Fault, type RunId, type Runtime, type SessionId, type Store } from "../../../../kernel/index.ts";
import { openRuntime } from "../../../../assembly/open-runtime.ts";
import type { Workspace } from "../../../../workspace/workspace.ts";
import type {
  EditorCommand,
  EditorFolder,
  EditorHost,
  SessionAgent,
} from "../../../protocols/acp/acp-host.ts";
import { extensionReports, extensionSurface, LiveWorkspaces } from "../../setup/live-workspaces.ts";
import type { OpenParts } from "../../setup/open-parts.ts";
import { openOwnStore } from "../../setup/own-store.ts";
import { packageVersion } from "../../../../assembly/package-root.ts";
import { obeyedOrders } from "../../../http/obeyed-orders.ts";
import { defaultAgentName, openRunWorkspace, runAgent } from "../../setup/run-agent.ts";
import { reportTools } from "../../setup/machine-tools.ts";
import { toMetadata, type RunSettings } from "../../setup/run-settings.ts";
import { agentSettings, reportNotices, runtimeOptions } from "../../setup/run-workspace.ts";
import { settingsOf, type SettingsOptions } from "../../setup/settings-options.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";
import { observedStore } from "../../setup/observed-store.ts";

/** The options of `reeve acp`, as texts from the command line. */
export interface AcpOptions extends SettingsOptions {
  /** Address of the store. If absent, each session uses the store of its folder. */
  readonly store?: string;
}

/** A store with the runtime that executes the runs of its sessions. */
interface OpenStore {
  readonly store: Store;
  readonly runtime: Runtime;
}

/**
 * The folders in which an editor works, each with its workspace and its store. A runtime executes only the runs of
 * sessions that the editor has continued. This is possible because an agent's id contains its session.
 */
export class EditorFolders implements EditorHost {
  readonly version = packageVersion();
  readonly cwd = process.cwd();
  readonly #options: AcpOptions;
  readonly #flags: RunSettings;
  readonly #terminal: Terminal;
  readonly #open: OpenParts;
  readonly #live: LiveWorkspaces;
  readonly #stores = new Map<string, Promise<OpenStore>>();
  readonly #workspaces = new Map<string, Promise<Workspace>>();
  readonly #folders = new Map<string, Promise<EditorFolder>>();

  constructor(options: AcpOptions, terminal: Terminal, open: OpenParts) {
    this.#options = options;
    this.#flags = settingsOf(options);
    this.#terminal = terminal;
    this.#open = open;
    this.#live = new LiveWorkspaces(open, terminal);
  }

  open(cwd: string, servers: ServerConfigs): Promise<EditorFolder> {
    return kept(this.#folders, JSON.stringify([cwd, servers]), () => this.#openFolder(cwd, servers));
  }

  async find(cwd: string): Promise<Runtime | undefined> {
    const address = this.#storeOf(cwd);
    if (!this.#stores.has(address) && isAbsent(address)) return undefined;
    return (await this.#openStore(cwd)).runtime;
  }

  log(line: string): void {
    this.#terminal.say(`reeve: ${printable(line)}`);
  }

  async #openFolder(cwd: string, servers: ServerConfigs): Promise<EditorFolder> {
    if (statSync(cwd, { throwIfNoEntry: false })?.isDirectory() !== true)
      throw new Fault("invalid_argument", `invalid cwd ${cwd}: the folder does not exist`);
    const workspace = await this.#openWorkspace(cwd, servers);
    reportNotices(workspace, this.#terminal);
    const flags = this.#flagsOf(cwd);
    const settings = await agentSettings(workspace, flags);
    const { agent = defaultAgentName, root } = settings;
    await reportTools(workspace, [agent], root, this.#terminal);
    return new WorkspaceFolder(workspace, flags, settings, await this.#openStore(cwd));
  }

  #openWorkspace(cwd: string, servers: ServerConfigs): Promise<Workspace> {
    return kept(this.#workspaces, JSON.stringify([cwd, servers]), async () => {
      const workspace = await openRunWorkspace(this.#flagsOf(cwd), { mcpServers: servers });
      return this.#live.add(workspace);
    });
  }

  #flagsOf(cwd: string): RunSettings {
    return { ...this.#flags, root: cwd, folder: cwd };
  }

  /**
   * Opens the store of a folder. The options of the runtime, such as caps, are taken from the first folder that
   * needs the store.
   */
  #openStore(cwd: string): Promise<OpenStore> {
    const address = this.#storeOf(cwd);
    return kept(this.#stores, address, async () => {
      const workspace = await this.#openWorkspace(cwd, {});
      const onWarning = (text: string): void => this.log(text);
      const isOfFolder = this.#options.store === undefined;
      const store = observedStore(
        this.#open.add(await openOwnStore(address, { onWarning, refusesLinks: isOfFolder })),
        extensionReports(this.#terminal),
      );
      const runtime = this.#open.add(
        await openRuntime({
          ...runtimeOptions(workspace),
          store,
          surface: extensionSurface(this.#terminal, () => this.#live.reload()),
          // A session that is loaded again may have other MCP servers, and therefore another agent.
          sameName: "replace",
          onError: ({ message }) => this.log(message),
        }),
      );
      return { store, runtime };
    });
  }

  #storeOf(cwd: string): string {
    return this.#options.store ?? `sqlite:${join(resolve(cwd), ".reeve", "reeve.db")}`;
  }
}

class WorkspaceFolder implements EditorFolder {
  readonly root: string;
  readonly runtime: Runtime;
  readonly agentName: string;
  readonly isAgentChosen: boolean;
  readonly #workspace: Workspace;
  readonly #flags: RunSettings;
  readonly #store: Store;
  readonly #agents = new Map<string, Promise<SessionAgent>>();

  constructor(
    workspace: Workspace,
    flags: RunSettings,
    settings: RunSettings,
    { store, runtime }: OpenStore,
  ) {
    this.root = settings.root;
    this.runtime = runtime;
    this.agentName = settings.agent ?? defaultAgentName;
    this.isAgentChosen = flags.agent !== undefined;
    this.#workspace = workspace;
    this.#flags = flags;
    this.#store = store;
  }

  /** The agents that have a model. An agent in code has its own model, which the workspace does not know. */
  get agents(): EditorFolder["agents"] {
    return this.#workspace
      .agents()
      .filter(
        ({ model, tools, name }) => model !== undefined || tools === undefined || name === this.agentName,
      )
      .map(({ name, description }) => ({ name, ...(description !== undefined && { description }) }));
  }

  get commands(): readonly EditorCommand[] {
    const { templates, skills } = this.#workspace;
    return [
      ...templates.map(({ name, description }) => ({
        name,
        description: description ?? "A prompt template",
        hint: "arguments",
      })),
      ...skills.map(({ name, description }) => ({ name: `skill:${name}`, description })),
    ];
  }

  /**
   * Returns the agent of a session. A session always keeps the same agent, because the agent remembers approvals
   * for all later calls of a tool.
   */
  agent(name: string, sessionId: SessionId): Promise<SessionAgent> {
    return kept(this.#agents, JSON.stringify([name, sessionId]), async () => {
      const settings = await agentSettings(this.#workspace, { ...this.#flags, agent: name });
      return { agent: await runAgent(this.#workspace, settings, sessionId), metadata: toMetadata(settings) };
    });
  }

  expand(input: string, sessionId: SessionId): Promise<string> {
    return this.#workspace.expand(input, { sessionId });
  }

  whenResumed(runId: RunId): Promise<void> {
    return obeyedOrders(this.#store, runId);
  }
}

/** Returns the open object under a key, or opens it. If the opening failed before, it is tried again. */
function kept<Value>(
  open: Map<string, Promise<Value>>,
  key: string,
  create: () => Promise<Value>,
): Promise<Value> {
  const known = open.get(key);
  if (known !== undefined) return known;
  const opening = create();
  open.set(key, opening);
  opening.catch(() => open.delete(key));
  return opening;
}

/** Whether a store is a file that does not exist. To open it would create it. */
function isAbsent(address: string): boolean {
  const path = address.startsWith("sqlite:") ? address.slice("sqlite:".length) : undefined;
  return path !== undefined && statSync(path, { throwIfNoEntry: false }) === undefined;
}
