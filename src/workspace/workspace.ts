import type { Reviewer } from "../agents/index.ts";
import { Fault, type HostedAgent, type PromptSource, type Tool } from "../kernel/index.ts";
import {
  expandSlash,
  type FileSkill,
  type LoadedWorkspace,
  loadMaterial,
  loadWorkspace,
  type LoadWorkspaceOptions,
  memoryFolder,
  Notices,
  type Places,
  projectCoverage,
  PromptCache,
  promptCaches,
  type PromptMaterial,
  type PromptTemplate,
  readInstructions,
  type SavedInstructions,
  saveInstructions,
  type Settings,
  tempFolder,
  textHashes,
  type TrustedProject,
  TrustStore,
  type WorkspaceNotice,
} from "./files/index.ts";
import { AgentShelf, defaultAgent, type MissingTool, type WorkspaceAgent } from "./workspace-agents.ts";
import { readConfig, readGuardrails, type WorkspaceConfig } from "./workspace-config.ts";
import { loadExtensions, packageIdentities } from "./workspace-extensions.ts";
import { LiveParts } from "./workspace-live.ts";
import { memoryFileTool, memoryReviewer } from "./workspace-memory.ts";
import { checkWorkspaceOptions, loadingOptions, type WorkspaceOptions } from "./workspace-options.ts";
import { providerHashes, providerLoader } from "./workspace-providers.ts";
import { ActiveSkills } from "./workspace-skills.ts";
import { ToolShelf } from "./workspace-tools.ts";
import { sha256Hex } from "../runtime/index.ts";
import { existsSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export type { WorkspaceOptions } from "./workspace-options.ts";
export { isAgent, type MissingTool, type WorkspaceAgent } from "./workspace-agents.ts";
export { defineConfig, type CodedChannel, type WorkspaceConfig } from "./workspace-config.ts";
export type {
  ChannelSettings,
  FileSkill,
  NotificationSettings,
  Places,
  Profile,
  PromptTemplate,
  Settings,
  WorkspaceNotice,
} from "./files/index.ts";

/**
 * Opens the workspace of a folder: agents, prompts, skills, extensions and settings from the files of the user, the
 * profile and the project. Files of the project that can run code or widen permissions are used only if the user
 * has trusted the current state of the project; otherwise `notices` lists them as `skipped`. Throws
 * `permission_denied` for a project that was trusted with guardrails, extensions or agents in code and has changed
 * since then. The caller must close the workspace.
 *
 * @example
 * ```ts
 * import { openWorkspace } from "reeve/workspace";
 *
 * await using workspace = await openWorkspace({ cwd: "./shop" });
 * const agent = await workspace.agent("reviewer");
 * ```
 */
export async function openWorkspace(options: WorkspaceOptions = {}): Promise<Workspace> {
  checkWorkspaceOptions(options);
  const workspace = new Workspace(options);
  await workspace.reload();
  return workspace;
}

/** The parts that one reading of the files produced. Agents from an earlier reading keep the parts of that reading. */
interface Reading {
  readonly loaded: LoadedWorkspace;
  readonly notices: readonly WorkspaceNotice[];
  readonly agents: AgentShelf;
  readonly prompts: PromptCache;
  readonly config: WorkspaceConfig;
  readonly extensions: readonly string[];
}

/** What a decision to trust a project covers. */
export interface TrustScope {
  /** Hash of all code that the project runs. */
  readonly hash: string;
  /** Descriptions of what fetches code that the decision cannot cover. */
  readonly fetched: readonly string[];
  /** Reasons why it is not known which code the project runs. */
  readonly unresolved: readonly string[];
}

/** Options of `workspace.trust()`. */
export interface TrustOptions {
  /** Hash of the scope that the person has seen. Default: that of the current state of the project. */
  readonly hash?: string;
  /** Whether the person accepts that it is not known which code the project runs. Default: `false`. */
  readonly acceptUnresolved?: boolean;
}

/** The instructions of an agent in its Markdown file, and whether this workspace may change them. */
export interface AgentInstructions extends SavedInstructions {
  /** Why this workspace must not change the file. `null` if it may. */
  readonly refusal: string | null;
}

/**
 * The workspace of a folder: its files and those of its profile and its user, from which it creates agents.
 * `openWorkspace` creates one.
 */
export class Workspace implements AsyncDisposable {
  readonly #options: WorkspaceOptions;
  readonly #activeSkills = new ActiveSkills();
  readonly #live = new LiveParts(() => this.#requireUnchanged());
  #current: Reading | undefined;
  #decision: TrustedProject | undefined;
  #reloading: Promise<void> = Promise.resolve();

  /** Use `openWorkspace`. */
  constructor(options: WorkspaceOptions) {
    this.#options = options;
  }

  get places(): Places {
    return this.#reading.loaded.places;
  }

  get settings(): Settings {
    return this.#reading.loaded.settings;
  }

  /** Whether the user has trusted the current state of the project. */
  get isTrusted(): boolean {
    return this.#reading.loaded.isTrusted;
  }

  /** Notices about problems of files, duplicates, and what was skipped because it needs trust. */
  get notices(): readonly WorkspaceNotice[] {
    return this.#reading.notices;
  }

  /**
   * What is not used because the project is not trusted. An entry is a path, or a path, `#` and the key of a
   * setting.
   */
  get guarded(): readonly string[] {
    return this.#reading.loaded.guarded;
  }

  /**
   * Files of the project's code that have changed since the user trusted it, as paths in the project. Empty if the
   * project is trusted, and if the changes are not known.
   */
  get changed(): readonly string[] {
    return this.#reading.loaded.changed;
  }

  /** The configuration in `reeve.config.ts`. Empty if there is no such file or it is not trusted. */
  get config(): WorkspaceConfig {
    return this.#reading.config;
  }

  get skills(): readonly FileSkill[] {
    return this.#reading.loaded.skills;
  }

  /** Names of the extensions that take part in the runs of every agent from a file in Markdown. */
  get extensions(): readonly string[] {
    return this.#reading.extensions;
  }

  get templates(): readonly PromptTemplate[] {
    return this.#reading.loaded.templates;
  }

  /** Lists the agents of the workspace. */
  agents(): readonly WorkspaceAgent[] {
    return this.#reading.agents.list();
  }

  /**
   * Creates an agent. Default: the setting `defaultAgent`, else `assistant`. `key` distinguishes instances of one
   * agent. Throws `not_found` for an unknown name.
   */
  async agent(name?: string, { key }: { readonly key?: string } = {}): Promise<HostedAgent> {
    return this.#reading.agents.make(name ?? this.settings.defaultAgent ?? defaultAgent, key);
  }

  /**
   * Returns which tools of the agents this machine cannot offer now: `bash` without a sandbox, `browser` without
   * Chromium, `desktop` without a display. An agent that names such a tool cannot be created. An agent that has it
   * through the tool set `all` works without it.
   *
   * @param agents - Names of the agents. Default: all agents of the workspace.
   */
  missingTools(agents?: readonly string[]): Promise<readonly MissingTool[]> {
    return this.#reading.agents.missingTools(agents ?? this.agents().map(({ name }) => name));
  }

  /** Creates the agents that a server or worker of this project hosts. */
  async hosted(): Promise<readonly HostedAgent[]> {
    const names = this.config.server?.agents ?? this.agents().map(({ name }) => name);
    return Promise.all(names.map((name) => this.agent(name)));
  }

  /** The source of the system prompt for an agent that has no file. */
  get prompts(): PromptSource {
    return this.#reading.prompts.source({ name: defaultAgent, instructions: "", canRead: () => false });
  }

  /**
   * Replaces an input `/name arguments` by the template of that name, and `/skill:name` by the instructions of the skill.
   * Any other input is returned unchanged. Throws `not_found` for a name that does not exist.
   */
  async expand(input: string, { sessionId }: { readonly sessionId?: string } = {}): Promise<string> {
    const { templates, skills } = this;
    const onSkill = (skill: FileSkill): void => {
      if (sessionId !== undefined) this.#activeSkills.add(skill, sessionId);
    };
    return expandSlash(input, { templates, skills, onSkill });
  }

  /** Returns what a decision to trust the project would cover in its current state. */
  async trustScope(): Promise<TrustScope> {
    const { code, texts, providers } = await this.#trusting();
    const { fetched, unresolved } = code;
    return { hash: scopeHash(code.hash(), texts, providers), fetched, unresolved };
  }

  /** Returns the parts of a decision to trust the project in its current state. */
  async #trusting() {
    const { project } = this.places;
    const code = await projectCoverage(this.#loading());
    return { code, texts: await textHashes(project), providers: await providerHashes(project) };
  }

  /**
   * Trusts the current state of the project, and reads the files again. `trust.json` stores the decision; with
   * `ephemeral` it applies only to this process. Throws `permission_denied` if the project has changed since
   * `trustScope()` returned `hash`, because the person has not seen the change. Without `acceptUnresolved`, it also
   * throws `permission_denied` if it is not known which code the project runs.
   */
  async trust({ hash, acceptUnresolved = false }: TrustOptions = {}): Promise<void> {
    const { home, project } = this.places;
    const { code, texts, providers } = await this.#trusting();
    const { unresolved } = code;
    const current = scopeHash(code.hash(), texts, providers);
    if (unresolved.length > 0 && !acceptUnresolved)
      throw new Fault(
        "permission_denied",
        `the project ${project} is not trusted, because it is not known what it runs: ${unresolved.join("; ")}; name files by literal paths, or run reeve trust at a terminal`,
      );
    const { packages: named, guards } = await loadWorkspace({ ...this.#loading(), trust: "always" });
    if (hash !== undefined && hash !== current)
      throw new Fault(
        "permission_denied",
        `the project ${project} has changed since the question and is not trusted; run reeve trust again`,
      );
    this.#decision = {
      hash: code.hash(),
      parts: code.parts(),
      at: new Date(this.#now()).toISOString(),
      providers,
      texts,
      guards,
    };
    if (this.#options.ephemeral !== true) {
      const written = named.flatMap((each) => (each.origin === "project" ? [each.written] : []));
      const packages = await packageIdentities(written, home, this.#env);
      await new TrustStore(home).trust(project, { ...this.#decision, packages });
    }
    await this.reload();
  }

  /**
   * Reads the instructions of an agent from the current state of its Markdown file. `undefined` for an agent
   * without such a file.
   */
  async instructions(name: string): Promise<AgentInstructions | undefined> {
    const agent = this.#inMarkdown(name);
    if (agent === undefined) return undefined;
    const { path, within } = agent;
    return {
      ...(await readInstructions(path, { ...(within !== undefined && { within }) })),
      refusal: this.#refusal(agent),
    };
  }

  /**
   * Replaces the instructions in the Markdown file of an agent, and reads the files again. The front matter does
   * not change. Throws `version_mismatch` if the file has changed since `hash` was read, `permission_denied` if the
   * project is not trusted, and `unsupported` for an agent without such a file. If the user had accepted the
   * agent's text, the new text counts as accepted.
   */
  async saveInstructions(name: string, instructions: string, hash: string): Promise<AgentInstructions> {
    const agent = this.#inMarkdown(name);
    if (agent === undefined)
      throw new Fault(
        "unsupported",
        `agent ${name} has no Markdown file; change its instructions in its code`,
      );
    const refusal = this.#refusal(agent);
    if (refusal !== null) throw new Fault("permission_denied", refusal, { details: { agent: name } });
    const { path, within } = agent;
    const options = { ...(within !== undefined && { within }) };
    const saved = await saveInstructions(path, instructions, hash, options);
    if (agent.origin === "project") await this.#acceptText(path, hash, saved.hash);
    await this.reload();
    return { ...saved, refusal: null };
  }

  /** Returns the agent of a Markdown file that this workspace uses. */
  #inMarkdown(
    name: string,
  ): (WorkspaceAgent & { readonly path: string; readonly within?: string }) | undefined {
    const agent = this.agents().find((each) => each.name === name);
    if (agent?.path === undefined || !agent.path.endsWith(".md")) return undefined;
    const { path, origin } = agent;
    return { ...agent, path, ...(origin === "project" && { within: this.places.project }) };
  }

  #refusal({ origin, path }: Pick<WorkspaceAgent, "origin"> & { readonly path: string }): string | null {
    if (this.#isEphemeral(this.places)) return "the profile is ephemeral, so that nothing is written";
    if (origin === "project" && !this.isTrusted)
      return `${path} is not changed, because the project is not trusted; run reeve trust`;
    return null;
  }

  /**
   * Renews the trust decision about a text that a person has changed here, if the decision covered the text before
   * the change.
   */
  async #acceptText(path: string, before: string, after: string): Promise<void> {
    const { home, project } = this.places;
    const store = new TrustStore(home);
    const stored = this.#decision ?? (await store.all()).get(project);
    const key = relative(project, path);
    if (stored?.texts?.[key] !== before) return;
    const decision = { ...stored, texts: { ...stored.texts, [key]: after } };
    if (this.#decision !== undefined) this.#decision = decision;
    if (this.#options.ephemeral !== true) await store.trust(project, decision);
  }

  /** Removes the decision to trust the project, and reads the files again. Returns whether there was a decision. */
  async distrust(): Promise<boolean> {
    const { home, project } = this.places;
    this.#decision = undefined;
    const wasTrusted = await new TrustStore(home).remove(project);
    await this.reload();
    return wasTrusted;
  }

  /**
   * Reads all files again. Agents that were created before, and their running invocations, keep their parts. If a
   * file is invalid, the workspace does not change, and the error is thrown. Concurrent calls run one after
   * another.
   */
  reload(): Promise<void> {
    const next = this.#reloading.then(() => this.#reload());
    this.#reloading = next.catch(() => undefined);
    return next;
  }

  /**
   * Clears the cached prompts of this process that contain the memory of this workspace, so that the next
   * invocation reads memory and instructions again. Prompts of agents from before a reload, and of other workspaces
   * with this profile, are also cleared.
   */
  clearPrompts(): void {
    promptCaches.clear(memoryFolder(this.places));
  }

  /**
   * Reads all files again when the process receives a signal. For a command that runs for a long time. A failed
   * reload goes to `onError`; `onReload` is called after a successful one. The returned function stops listening.
   */
  reloadOnSignal(
    signal: "SIGHUP" | "SIGUSR2",
    onError: (error: unknown) => void,
    onReload: () => void = () => undefined,
  ): () => void {
    const listener = (): void => {
      this.reload().then(onReload).catch(onError);
    };
    process.on(signal, listener);
    return () => void process.off(signal, listener);
  }

  /** Stops MCP servers, the browser, the desktop and the gateway of hired agents. */
  async close(): Promise<void> {
    await this.#live.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Throws if the trusted code of the project has changed since the files were read. */
  async #requireUnchanged(): Promise<void> {
    const { places, decision } = this.#reading.loaded;
    if ((this.#options.trust ?? "stored") !== "stored") return;
    if ((await projectCoverage(this.#loading())).hash() === decision?.hash) return;
    throw new Fault(
      "permission_denied",
      `no MCP server of ${places.project} is started, because its code has changed since you trusted it; run reeve trust`,
    );
  }

  get #reading(): Reading {
    if (this.#current === undefined)
      throw new Fault("invalid_argument", "the workspace is not open; use openWorkspace()");
    return this.#current;
  }

  get #env(): Readonly<Record<string, string | undefined>> {
    return this.#options.env ?? process.env;
  }

  #now(): number {
    return (this.#options.now ?? Date.now)();
  }

  async #reload(): Promise<void> {
    const { settings: flags = {}, trust = "stored", importTimeoutMs = 10_000 } = this.#options;
    const env = this.#env;
    const loaded = await loadWorkspace({ ...this.#loading(), trust });
    const { places, settings } = loaded;
    const notices = new Notices();
    const canInstall = !this.#isEphemeral(places);
    const isChecked = trust === "stored" && this.#decision === undefined;
    const extended = await loadExtensions(loaded, { env, importTimeoutMs, canInstall, isChecked }, notices);
    const skills = [...loaded.skills, ...extended.skills.filter(isNewIn(loaded.skills))];
    const temp = await tempFolder(places, notices);
    const { prompts, material } = await this.#prompts({ ...loaded, skills }, notices, temp);
    const root = resolve(this.#options.root ?? places.cwd);
    const config = await readConfig(loaded.config, importTimeoutMs);
    const docs = docsFolder();
    const shelf = new ToolShelf({
      root,
      folders: temp === undefined ? [] : [temp],
      settings,
      skills,
      knowledge: material.knowledge,
      ...(docs !== undefined && { docsFolder: docs }),
      remote: () => this.#live.remoteTools(loaded.mcpFiles, env, this.#options.mcpServers),
      live: { browser: () => this.#live.browser(settings), desktop: () => this.#live.desktop(settings) },
      own: () => this.#memoryTools(places),
      onSkill: (skill, sessionId) => this.#activeSkills.add(skill, sessionId),
    });
    const agents = await AgentShelf.open(
      {
        settings,
        flags,
        root,
        accepts: loaded.accepts,
        sources: loaded.agents,
        ignored: loaded.ignored,
        configured: config.agents ?? [],
        ...(loaded.config !== undefined && { configPath: loaded.config.path }),
        shelf,
        prompts,
        guardrails: await readGuardrails(loaded.guardrails, importTimeoutMs),
        extensions: extended.extensions,
        ...this.#memoryReview(settings, places),
        gateway: { config: config.gateway, openGateway: (options) => this.#live.gateway(options) },
        activeSkills: this.#activeSkills,
        env,
        ...(this.#options.resolveModel && { resolveModel: this.#options.resolveModel }),
        loadPackage: providerLoader(
          places.project,
          trust === "stored" ? loaded.decision : trust === "always" ? "always" : undefined,
          importTimeoutMs,
        ),
        importTimeoutMs,
      },
      notices,
    );
    const extensions = extended.extensions.map(({ name }) => name);
    this.#current = {
      extensions,
      loaded: { ...loaded, skills },
      prompts,
      agents,
      config,
      notices: [...loaded.notices, ...notices.all],
    };
  }

  #loading(): Omit<LoadWorkspaceOptions, "trust"> {
    const decision = this.#decision;
    return { ...loadingOptions(this.#options), ...(decision !== undefined && { decision }) };
  }

  #isEphemeral({ profile }: Places): boolean {
    return profile?.ephemeral === true || this.#options.ephemeral === true;
  }

  /**
   * Returns the tools that write to the memory. An ephemeral profile writes nothing and therefore has no such
   * tools.
   */
  #memoryTools(places: Places): readonly Tool[] {
    return this.#isEphemeral(places) ? [] : [memoryFileTool(this.#memoryPlace(places))];
  }

  #memoryReview(
    { memoryReviewEvery: every }: Settings,
    places: Places,
  ): { readonly memoryReview?: { readonly tool: Tool; readonly reviewer: Reviewer } } {
    if (every === undefined || this.#isEphemeral(places)) return {};
    const tool = memoryFileTool({ ...this.#memoryPlace(places), onlyReviews: true });
    return { memoryReview: { tool, reviewer: memoryReviewer(every) } };
  }

  #memoryPlace(places: Places): { readonly folder: string; readonly onChange: () => void } {
    const folder = memoryFolder(places);
    return { folder, onChange: () => promptCaches.clear(folder) };
  }

  async #prompts(
    loaded: LoadedWorkspace,
    notices: Notices,
    temp: string | undefined,
  ): Promise<{ readonly prompts: PromptCache; readonly material: PromptMaterial }> {
    const { material, notices: found } = await loadMaterial(loaded, docsFolder());
    for (const { kind, path, message } of found) notices.add(kind, path, message);
    const load = async (): Promise<PromptMaterial> => (await loadMaterial(loaded, docsFolder())).material;
    const { places } = loaded;
    const prompts = new PromptCache({ initial: material, load, places, temp, now: () => this.#now() });
    return { prompts, material };
  }
}

function scopeHash(...parts: readonly unknown[]): string {
  return sha256Hex(JSON.stringify(parts));
}

function isNewIn(known: readonly FileSkill[]): (skill: FileSkill) => boolean {
  return ({ name }) => !known.some((each) => each.name === name);
}

/** The folder of the documentation, after the first search for it. */
let packagedDocs: { readonly folder: string | undefined } | undefined;

/** Returns the folder of the documentation that the package contains. Searches for it only once. */
function docsFolder(): string | undefined {
  packagedDocs ??= { folder: docsAbove(dirname(fileURLToPath(import.meta.url))) };
  return packagedDocs.folder;
}

function docsAbove(folder: string): string | undefined {
  if (existsSync(join(folder, "package.json"))) {
    const docs = join(folder, "docs");
    return existsSync(docs) ? docs : undefined;
  }
  return dirname(folder) === folder ? undefined : docsAbove(dirname(folder));
}
