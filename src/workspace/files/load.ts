import { basename, dirname, extname, join, relative, resolve } from "node:path";
import { Fault } from "../../kernel/index.ts";
import { hiredProgram, readAgentFile } from "./agent-file.ts";
import { FileReader, isFolder, problemOf } from "./text/bounded-file.ts";
import { Notices, type WorkspaceNotice } from "./notices.ts";
import { findPlaces, type Places, type PlacesOptions } from "./places.ts";
import { combineSettings, divideSettings, settingsOfEnvironment } from "./settings/combine-settings.ts";
import type { SettingsLayer } from "./settings/explain-settings.ts";
import { checkSettings, readSettings } from "./settings/read-settings.ts";
import type { Settings } from "./settings/settings-fields.ts";
import type { Origin, SourceFile } from "./source-file.ts";
import { readTemplates, type PromptTemplate } from "./skills/prompt-templates.ts";
import { readSkills, type FileSkill } from "./skills/read-skills.ts";
import { readPrograms } from "./mcp-file.ts";
import { codeEndings } from "./trust/code-texts.ts";
import { Coverage, type CoverageOptions } from "./trust/coverage.ts";
import { addProgram } from "./trust/programs.ts";
import { skillHash, textHash } from "./trust/text-hashes.ts";
import { TrustStore, type TrustedProject } from "./trust/trust-store.ts";

/** How a workspace is read. */
export interface LoadWorkspaceOptions extends PlacesOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Settings of the caller, such as the options of a command line. They take precedence over all files. */
  readonly flags: Settings;
  /**
   * Whether the files of the project that need trust are used. `stored`: as the user has decided earlier. `always`:
   * in any case. `never`: not at all.
   */
  readonly trust: "stored" | "always" | "never";
  /** The decision about the project in this process. Default: the stored decision. */
  readonly decision?: TrustedProject;
  /** Replaces the variables in a text of a file with MCP servers. */
  readonly expand: (text: string) => string;
}

/** The files of a workspace as they were when they were read. No code of the project has run. */
export interface LoadedWorkspace {
  readonly places: Places;
  readonly settings: Settings;
  /** Whether the user trusts the project as it is now. A folder that is not a project counts as trusted. */
  readonly isTrusted: boolean;
  /** The decision of the user about the project, even if the project has changed since then. */
  readonly decision?: TrustedProject;
  /** The protections that a project must not lose: see `guards` of `TrustedProject`. */
  readonly guards: readonly string[];
  /** Whether the user has trusted a text of the project with this path and hash. */
  readonly accepts: (path: string, hash: string) => boolean;
  /**
   * What was not used because it has changed since the user trusted it: a path, or a path and the key of a setting.
   */
  readonly guarded: readonly string[];
  readonly notices: readonly WorkspaceNotice[];
  readonly skills: readonly FileSkill[];
  readonly templates: readonly PromptTemplate[];
  /** Agents by file. If several files have the same name, the last one is used. */
  readonly agents: readonly SourceFile[];
  /** Agents and the configuration of a project that is not trusted. They are not loaded. */
  readonly ignored: readonly SourceFile[];
  /** Files of the project's code that have changed since the user trusted it, as far as this is known. */
  readonly changed: readonly string[];
  readonly extensions: readonly SourceFile[];
  /** Packages that the settings name. */
  readonly packages: readonly { readonly written: string; readonly origin: Origin }[];
  readonly guardrails: readonly SourceFile[];
  /** `reeve.config.ts`, if the project has one and is trusted. */
  readonly config?: SourceFile;
  /** Files with MCP servers, from the most general to the most specific. */
  readonly mcpFiles: readonly SourceFile[];
  /** Files with MCP servers of a project that is not trusted. They are not used. */
  readonly ignoredMcpFiles: readonly SourceFile[];
  /** The places of the settings, from the most general to the most specific. */
  readonly settingsLayers: readonly SettingsLayer[];
  /** Text of `SYSTEM.md`. */
  readonly system?: string;
}

const maxSystemBytes = 256 * 1024;

/** Reads the files of a workspace. It executes none of them and writes nothing. */
export async function loadWorkspace(options: LoadWorkspaceOptions): Promise<LoadedWorkspace> {
  const places = await findPlaces(options);
  const notices = new Notices();
  const layers = layersOf(places);
  const read = await settingsOf(layers, notices);
  const ofOrigin = (isProject: boolean): Settings =>
    combineSettings(
      ...read.flatMap(({ origin, settings }) => ((origin === "project") === isProject ? [settings] : [])),
    );
  const [user, own] = [ofOrigin(false), ofOrigin(true)];
  const { free, guarded: guardedKeys } = divideSettings(own, user);
  const code = await codeOf(read, places, notices);
  const decisions = await new TrustStore(places.home).all();
  const decision = options.decision ?? decisions.get(places.project);
  const { covered, changed } = await coveredBy(decision, { options, places, code, own }, notices);
  const isTrusted = options.trust === "always" || covered !== undefined || places.projectFolder === undefined;
  const guards = guardsOf(code, own, places.project);
  // The folder of the user is no project, but a project may have become a link to it.
  if (options.trust === "stored" && covered === undefined)
    refuseUnguarded(places, { decision, decisions, guards, changed });
  const accepts = (path: string, hash: string): boolean =>
    options.trust === "always" || (isTrusted && decision?.texts?.[relative(places.project, path)] === hash);
  const isUsed = ({ origin }: { readonly origin: Origin }): boolean => isTrusted || origin !== "project";
  const used = (files: readonly SourceFile[]): readonly SourceFile[] =>
    files
      .filter(isUsed)
      .map((file) => (file.origin === "project" && covered !== undefined ? { ...file, covered } : file));
  const project = isTrusted ? own : free;
  const env = checkSettings(settingsOfEnvironment(options.env), "the environment", notices);
  const settings = combineSettings(user, project, env, options.flags);
  const guarded = isTrusted ? [] : await guardedCode(places, code, guardedKeys);
  const skills = await trustedSkills(places, accepts, notices);
  const system = await systemOf(layers, accepts, notices);
  for (const { folder, origin, isTrusted: isAccepted, allowedTools } of skills)
    if (isTrusted && origin === "project" && !isAccepted && allowedTools.length > 0)
      guarded.push({ path: folder, what: "allowed-tools of the skill" });
  if (system.ignored !== undefined) guarded.push({ path: system.ignored, what: "a system prompt" });
  const reason = isTrusted ? "has changed since you trusted the project" : "needs trust";
  for (const { path, what } of guarded) notices.add("skipped", path, `${what} ${reason}; run reeve trust`);
  const [config] = used(code.config);
  return {
    places,
    settings,
    isTrusted,
    ...(decision !== undefined && { decision }),
    guards,
    accepts,
    guarded: guarded.map(({ path }) => path),
    skills,
    templates: await readTemplates(
      layers.toReversed().map((layer) => ({ folder: join(layer.folder, "prompts"), ...limitOf(layer) })),
      notices,
    ),
    agents: used(code.agents),
    ignored: [...code.agents, ...code.config].filter((file) => !isUsed(file)),
    changed,
    extensions: used(code.extensions),
    packages: read
      .filter(isUsed)
      .flatMap(({ origin, settings: { packages = [] } }) => packages.map((written) => ({ written, origin }))),
    guardrails: used(code.guardrails),
    mcpFiles: used(code.mcpFiles),
    ignoredMcpFiles: code.mcpFiles.filter((file) => !isUsed(file)),
    settingsLayers: [
      ...read.map((layer): SettingsLayer => ({
        path: join(layer.folder, "settings.json"),
        origin: layer.origin,
        settings: layer.settings,
        guarded: isUsed(layer) ? [] : guardedKeys,
      })),
      { path: "", origin: "environment", settings: env, guarded: [] },
      { path: "", origin: "options", settings: options.flags, guarded: [] },
    ],
    ...(config !== undefined && { config }),
    ...(system.text !== undefined && { system: system.text }),
    notices: notices.all,
  };
}

/** A folder with workspace files: the user's folder, the profile or the project. */
interface Layer {
  readonly folder: string;
  readonly origin: Origin;
  /** Folder that links must not leave. Modules may import only files in it. */
  readonly root: string;
}

/** Returns the folders from the most general to the most specific. */
function layersOf({ home, profile, project, projectFolder }: Places): readonly Layer[] {
  return [
    { folder: home, origin: "home", root: home },
    ...(profile === undefined
      ? []
      : [{ folder: profile.folder, origin: "profile" as const, root: profile.folder }]),
    ...(projectFolder === undefined
      ? []
      : [{ folder: projectFolder, origin: "project" as const, root: project }]),
  ];
}

/**
 * Returns the folder that links must not leave. Files of the user have no such limit: they may be links to
 * anywhere, such as a folder with dotfiles.
 */
function limitOf({ origin, root }: Pick<Layer, "origin" | "root">): { readonly within?: string } {
  return origin === "project" ? { within: root } : {};
}

/** A layer with the settings of its file. */
interface ReadLayer extends Layer {
  readonly settings: Settings;
}

async function settingsOf(layers: readonly Layer[], notices: Notices): Promise<readonly ReadLayer[]> {
  const all: ReadLayer[] = [];
  for (const layer of layers) {
    const settings = await readSettings(join(layer.folder, "settings.json"), notices, limitOf(layer));
    all.push({ ...layer, settings });
  }
  return all;
}

interface CodeFiles {
  readonly agents: readonly SourceFile[];
  readonly extensions: readonly SourceFile[];
  readonly guardrails: readonly SourceFile[];
  readonly config: readonly SourceFile[];
  readonly mcpFiles: readonly SourceFile[];
}

async function codeOf(
  layers: readonly ReadLayer[],
  { project }: Places,
  notices: Notices,
): Promise<CodeFiles> {
  const found = {
    agents: [] as SourceFile[],
    extensions: [] as SourceFile[],
    guardrails: [] as SourceFile[],
  };
  const mcpFiles: SourceFile[] = [];
  for (const layer of layers) {
    await refuseUnloaded(layer, notices);
    found.agents.push(...(await filesIn(layer, "agents", [".md", ...codeEndings], notices)));
    found.extensions.push(...(await modulesIn(layer, "extensions", notices)));
    for (const path of layer.settings.extensions ?? [])
      found.extensions.push(...(await namedModule(layer, path, notices)));
    found.guardrails.push(...(await filesIn(layer, "guardrails", codeEndings, notices)));
    mcpFiles.push(
      ...(await existing(
        { ...layer, folder: layer.origin === "project" ? project : layer.folder },
        ".mcp.json",
        notices,
      )),
    );
    mcpFiles.push(...(await existing(layer, "mcp.json", notices)));
  }
  const root = { folder: project, origin: "project" as const, root: project };
  const hasProject = layers.some(({ origin }) => origin === "project");
  const configs = await Promise.all(
    codeEndings.map((ending) => existing(root, `reeve.config${ending}`, notices)),
  );
  return { ...found, mcpFiles, config: hasProject ? configs.flat() : [] };
}

/**
 * Matches other file extensions of JavaScript and TypeScript, in any case. The workspace loads only modules with an
 * extension in `codeEndings`.
 */
const otherCode = /\.[cm]?[jt]sx?$/iu;

/**
 * Warns about code in a folder that is not loaded because of its file extension, such as `.cjs`. Throws
 * `invalid_argument` for a guardrail, because agents would run without it.
 */
async function refuseUnloaded(layer: Layer, notices: Notices): Promise<void> {
  for (const name of ["guardrails", "extensions", "agents"]) {
    const folder = join(layer.folder, name);
    for (const entry of await new FileReader(notices).list(folder, limitOf(layer))) {
      if (!otherCode.test(entry) || codeEndings.some((ending) => entry.endsWith(ending))) continue;
      const path = join(folder, entry);
      const problem = `code with the ending ${extname(entry)} is not loaded; write an ES module with the ending ${codeEndings.join(", ")}, or move the file`;
      if (name === "guardrails")
        throw new Fault("invalid_argument", `the guardrail ${path} would have no effect: ${problem}`);
      notices.add("skipped", path, problem);
    }
  }
}

async function existing(layer: Layer, name: string, notices: Notices): Promise<readonly SourceFile[]> {
  const { folder, origin, root } = layer;
  const path = join(folder, name);
  return (await new FileReader(notices).isUsable(path, limitOf(layer))) ? [{ name, path, origin, root }] : [];
}

/**
 * Returns the files of a subfolder with one of the extensions. The name of each is its file name without the
 * extension.
 */
async function filesIn(
  layer: Layer,
  name: string,
  endings: readonly string[],
  notices: Notices,
): Promise<readonly SourceFile[]> {
  const { origin, root } = layer;
  const folder = join(layer.folder, name);
  const reader = new FileReader(notices);
  const files: SourceFile[] = [];
  for (const entry of await reader.list(folder, limitOf(layer))) {
    const ending = endings.find((each) => entry.endsWith(each) && !entry.endsWith(`.d${each}`));
    const path = join(folder, entry);
    if (ending !== undefined && (await reader.isUsable(path, limitOf(layer))))
      files.push({ name: entry.slice(0, -ending.length), path, origin, root });
  }
  return files;
}

/** Returns the modules of a subfolder: files, and folders with an `index` file. */
async function modulesIn(layer: Layer, name: string, notices: Notices): Promise<readonly SourceFile[]> {
  const files = await filesIn(layer, name, codeEndings, notices);
  const folder = join(layer.folder, name);
  const folders: SourceFile[] = [];
  for (const entry of await new FileReader(notices).list(folder, limitOf(layer)))
    folders.push(...(await indexOf(layer, join(folder, entry), notices)));
  return [...files, ...folders];
}

/** Returns the module in the `index` file of a folder. Empty if the folder has none. */
async function indexOf(layer: Layer, folder: string, notices: Notices): Promise<readonly SourceFile[]> {
  const { origin, root } = layer;
  if (!(await isFolder(folder))) return [];
  const reader = new FileReader(notices);
  for (const ending of codeEndings) {
    const path = join(folder, `index${ending}`);
    if (await reader.isUsable(path, limitOf(layer))) return [{ name: basename(folder), path, origin, root }];
  }
  return [];
}

/**
 * Returns the module that a setting names: a file, or a folder with an `index` file. The path is relative to the
 * folder of the settings.
 */
async function namedModule(layer: Layer, written: string, notices: Notices): Promise<readonly SourceFile[]> {
  const { origin, root } = layer;
  const path = resolve(layer.folder, written);
  const inFolder = await indexOf(layer, path, notices);
  if (inFolder.length > 0) return inFolder;
  const isUsable = await new FileReader(notices).isUsable(path, limitOf(layer));
  if (codeEndings.includes(extname(path)) && isUsable)
    return [{ name: basename(path, extname(path)), path, origin, root }];
  notices.add(
    "warning",
    path,
    `the setting "extensions" names a file that does not exist, is outside the project or is not one of ${codeEndings.join(", ")}`,
  );
  return [];
}

interface Guarded {
  readonly path: string;
  readonly what: string;
}

function ofProject(files: readonly SourceFile[], what: string): readonly Guarded[] {
  return files.flatMap(({ path, origin }) => (origin === "project" ? [{ path, what }] : []));
}

/** Returns the agents of the project, with those marked that would start a program. */
async function guardedAgents(files: readonly SourceFile[]): Promise<readonly Guarded[]> {
  const own = files.filter(({ origin }) => origin === "project");
  return Promise.all(
    own.map(async ({ path, root }) => {
      const program = path.endsWith(".md") ? await startedBy(path, root) : undefined;
      return { path, what: program === undefined ? "an agent" : `an agent that starts ${program}` };
    }),
  );
}

/**
 * Returns the program that an agent file would start. `undefined` for an agent of Reeve, and for a file that cannot
 * be used.
 */
async function startedBy(path: string, within: string): Promise<string | undefined> {
  try {
    return hiredProgram(await readAgentFile(path, new Notices(), { within }));
  } catch (error) {
    // The file is refused with its reason once it is used.
    if (error instanceof Fault) return undefined;
    throw error;
  }
}

/** Returns the code and the settings of the project that need trust. */
async function guardedCode(
  { project, projectFolder }: Places,
  code: CodeFiles,
  keys: readonly string[],
): Promise<Guarded[]> {
  if (projectFolder === undefined) return [];
  return [
    ...ofProject(code.config, "the configuration"),
    ...(await guardedAgents(code.agents)),
    ...ofProject(code.extensions, "an extension"),
    ...ofProject(code.guardrails, "a guardrail"),
    ...ofProject(code.mcpFiles, "a list of MCP servers"),
    ...keys.map((key) => ({
      path: `${join(project, ".reeve/settings.json")}#${key}`,
      what: `the setting ${key}`,
    })),
  ];
}

/** The files and settings from which the code of a project is found. */
interface ProjectCode {
  readonly options: Pick<LoadWorkspaceOptions, "env" | "expand" | "trust">;
  readonly places: Places;
  readonly code: CodeFiles;
  /** Settings of the project. */
  readonly own: Settings;
}

/**
 * Returns the covered files if the decision covers the project in its current state. Otherwise returns what has
 * changed. Without a decision it reads nothing.
 */
async function coveredBy(
  decision: TrustedProject | undefined,
  project: ProjectCode,
  notices: Notices,
): Promise<{ readonly covered?: ReadonlyMap<string, string>; readonly changed: readonly string[] }> {
  const { options, places } = project;
  if (options.trust !== "stored" || decision === undefined || places.projectFolder === undefined)
    return { changed: [] };
  try {
    const coverage = await coverageOf(project);
    if (coverage.hash() === decision.hash) return { covered: coverage.files, changed: [] };
    return { changed: changedParts(decision.parts, coverage.parts()) };
  } catch (error) {
    notices.add("skipped", places.projectFolder, problemOf(error));
    return { changed: [] };
  }
}

/**
 * Returns the names whose hashes differ or are new. If there are none, returns the names that no longer exist,
 * because a changed file may also load less. A decision of an earlier version has no hashes.
 */
function changedParts(
  before: Readonly<Record<string, string>> | undefined,
  now: Readonly<Record<string, string>>,
): readonly string[] {
  if (before === undefined) return [];
  const differing = Object.keys(now).filter((name) => before[name] !== now[name]);
  const gone = Object.keys(before).filter((name) => !(name in now));
  return (differing.length > 0 ? differing : gone).toSorted();
}

/** Maximum number of changed files that an error names. */
const shownChanges = 5;

/** Describes the changed parts of a project, as text with a space before it. Empty if they are not known. */
export function changedWords(changed: readonly string[]): string {
  if (changed.length === 0) return "";
  const more = changed.length > shownChanges ? ` and ${changed.length - shownChanges} more` : "";
  return ` (${changed.slice(0, shownChanges).join(", ")}${more})`;
}

/** Returns everything that runs as code of a project: its modules, its MCP servers, and what they load. */
export async function projectCoverage(
  options: Omit<LoadWorkspaceOptions, "trust">,
  limits: CoverageOptions = {},
): Promise<Coverage> {
  const places = await findPlaces(options);
  const notices = new Notices();
  const read = await settingsOf(layersOf(places), notices);
  const own = read.find(({ origin }) => origin === "project")?.settings ?? {};
  const code = await codeOf(read, places, notices);
  return coverageOf({ options: { ...options, trust: "stored" }, places, code, own }, limits);
}

async function coverageOf(
  { options, places, code, own }: ProjectCode,
  limits: CoverageOptions = {},
): Promise<Coverage> {
  const { project } = places;
  const coverage = new Coverage(project, limits);
  if (places.projectFolder === undefined) return coverage;
  const modules = code.agents.filter(({ path }) => !path.endsWith(".md"));
  const parts = [...modules, ...code.extensions, ...code.guardrails, ...code.config, ...code.mcpFiles];
  await coverage.addFile(join(places.projectFolder, "settings.json"));
  for (const { path, origin } of parts) if (origin === "project") await coverage.addFile(path);
  const servers = code.mcpFiles.filter(({ origin }) => origin === "project");
  const programs = [...(await readPrograms(servers, options.expand)).values()];
  const browser = own.browser?.executablePath;
  if (browser !== undefined) programs.push({ command: browser, args: [], env: {}, cwd: project });
  for (const program of programs) await addProgram(coverage, program, options.env["PATH"] ?? "");
  return coverage;
}

/**
 * Returns the parts of a project that can limit an agent, as paths in the project. They are its guardrails, its
 * extensions and packages, which can register a guardrail or block a call, its agents in code and its
 * configuration, which can contain guardrails, and its choice of an agent. Without one of them, a run would
 * continue with fewer limits.
 */
function guardsOf(code: CodeFiles, own: Settings, project: string): readonly string[] {
  const agents = code.agents.filter(({ path }) => !path.endsWith(".md"));
  const files = [...code.guardrails, ...code.extensions, ...agents, ...code.config];
  return [
    ...files.flatMap(({ path, origin }) => (origin === "project" ? [relative(project, path)] : [])),
    ...(own.packages ?? []),
    ...(own.defaultAgent === undefined ? [] : [".reeve/settings.json#defaultAgent"]),
  ];
}

/** Facts about the trust of a project. */
interface Decided extends Pick<LoadedWorkspace, "guards" | "changed"> {
  readonly decision: TrustedProject | undefined;
  readonly decisions: ReadonlyMap<string, TrustedProject>;
}

/**
 * Throws for a project that was trusted with parts that limit agents, and has changed since then. It would
 * otherwise run without these limits, and an agent that may write files could switch off its own guardrail. It also
 * throws for a folder inside such a project that now counts as a separate project, because a file was added, or as
 * a part of a larger one, because `.reeve` was removed.
 */
function refuseUnguarded({ project, cwd }: Places, { decision, decisions, guards, changed }: Decided): void {
  // A decision of an earlier version does not say which guards the project had.
  const lost = decision === undefined ? [] : (decision.guards ?? guards);
  if (lost.length > 0)
    throw new Fault(
      "permission_denied",
      `the project ${project} was trusted with code that can limit its agents (${lost.join(", ")}), and its code has changed since${changedWords(changed)}, so it does not run without it; look at the change and run reeve trust, or give that code up with reeve trust --remove`,
      { details: { lostTrust: project } },
    );
  for (let folder = cwd; ; folder = dirname(folder)) {
    if (folder !== project && (decisions.get(folder)?.guards ?? []).length > 0)
      throw new Fault(
        "permission_denied",
        `the folder ${cwd} is in ${folder}, which was trusted with code that can limit its agents, but its project is now ${project}, which is not trusted; run reeve trust, or give that code up with reeve trust --remove ${folder}`,
        { details: { lostTrust: project } },
      );
    if (dirname(folder) === folder) return;
  }
}

/**
 * Reads the skills. A skill of the project approves tools in advance only if the user has trusted its current text.
 */
async function trustedSkills(
  { home, profile, project, projectFolder }: Places,
  accepts: LoadedWorkspace["accepts"],
  notices: Notices,
): Promise<readonly FileSkill[]> {
  const own = { origin: "project", isTrusted: false, within: project };
  const sources = [
    ...(profile === undefined
      ? []
      : [{ folder: join(profile.folder, "skills"), origin: "profile", isTrusted: true }]),
    { folder: join(home, "skills"), origin: "home", isTrusted: true },
    ...(projectFolder === undefined
      ? []
      : [".reeve", ".agents", ".claude"].map((name) => ({ ...own, folder: join(project, name, "skills") }))),
  ];
  const skills: FileSkill[] = [];
  for (const skill of await readSkills(sources, notices)) {
    const { folder, isTrusted, allowedTools } = skill;
    const isAccepted =
      isTrusted || (allowedTools.length > 0 && accepts(folder, await skillHash(folder, project)));
    skills.push({ ...skill, isTrusted: isAccepted });
  }
  return skills;
}

/**
 * Returns the most specific `SYSTEM.md`. Also returns the path of a `SYSTEM.md` of the project that is ignored
 * because it is not trusted.
 */
async function systemOf(
  layers: readonly Layer[],
  accepts: LoadedWorkspace["accepts"],
  notices: Notices,
): Promise<{ readonly text?: string; readonly ignored?: string }> {
  let ignored: { readonly ignored?: string } = {};
  for (const layer of layers.toReversed()) {
    const path = join(layer.folder, "SYSTEM.md");
    const file = await new FileReader(notices).read(path, { maxBytes: maxSystemBytes, ...limitOf(layer) });
    if (file?.isCut === true)
      throw new Fault("invalid_argument", `${path} is longer than ${maxSystemBytes} bytes; shorten it`);
    if (file === undefined || file.text.trim() === "") continue;
    if (layer.origin !== "project" || accepts(path, textHash(file.text)))
      return { text: file.text, ...ignored };
    ignored = { ignored: path };
  }
  return ignored;
}
