import { basename } from "node:path";
import { Agent, type AgentOptions } from "../assembly/agent.ts";
import { loopDetection } from "../agents/interception/guardrails/index.ts";
import { permissions, reviewer, type Reviewer, type SubAgent } from "../agents/index.ts";
import {
  Fault,
  nearestName,
  parseAgentId,
  type AllowedChanges,
  type Extension,
  type Guardrail,
  type HostedAgent,
  type Model,
  type PermissionRule,
  type Tool,
} from "../kernel/index.ts";
import { packageRoot } from "../assembly/package-root.ts";
import { presetCommand } from "../capabilities/hire/presets.ts";
import type { HiredParts } from "./workspace-hired.ts";
import { workspaceModel } from "./workspace-model.ts";
import type { ActiveSkills } from "./workspace-skills.ts";
import { readableBelow, type LackingTool, type ToolShelf } from "./workspace-tools.ts";
import {
  agentFields,
  combineValues,
  freeValues,
  hiredProgram,
  isAgentName,
  loadModule,
  ownToolName,
  readAgentFile,
  sharedFields,
  type AgentFile,
  type AgentValues,
  type Notices,
  type Origin,
  type PromptCache,
  type Settings,
  type SourceFile,
} from "./files/index.ts";

/** An agent of a workspace. */
export interface WorkspaceAgent {
  readonly name: string;
  readonly description?: string;
  /** The place that defines the agent. */
  readonly origin: Origin;
  /** File that defines the agent. Absent for the built-in agent. */
  readonly path?: string;
  /** The hired program that runs as this agent. Absent for an agent of Reeve. */
  readonly harness?: string;
  /** The command of the hired program with its arguments. Absent for an agent of Reeve, and for an unknown program. */
  readonly command?: readonly string[];
  /** Names of the agent's tools, or of a set of tools. Absent for an agent in code and for a hired agent. */
  readonly tools?: readonly string[];
  /** Names of the agents that this agent may hire. Absent for an agent in code, and if there are none. */
  readonly subAgents?: readonly string[];
  /**
   * Model of the agent as `provider/id`. Absent for an agent in code, for a hired agent, and if neither the file
   * nor the settings name a model.
   */
  readonly model?: string;
  /**
   * The highest amount that each run of the agent may spend, from its file or the settings. Absent for an agent in
   * code, and if there is no limit.
   */
  readonly maxCostUsd?: number;
  /**
   * What callers with the scope `run` may change in runs of the agent. Absent for an agent in code, and if they may
   * change nothing.
   */
  readonly allowedChanges?: AllowedChanges;
}

/** A tool that this machine cannot offer to the agents of a workspace. */
export interface MissingTool {
  /** `bash`, `browser` or `desktop`. */
  readonly tool: string;
  /** What is missing on the machine, and how to get it. */
  readonly problem: string;
  /** Names of the agents that work without the tool, because they have it only through the tool set `all`. */
  readonly without: readonly string[];
  /** Names of the agents that cannot be created on this machine, because they name the tool. */
  readonly refused: readonly string[];
}

/** The parts from which the agents of a workspace are made each time its files are read. */
export interface AgentParts {
  readonly settings: Settings;
  /** Settings of the caller, which take precedence over the files of agents. */
  readonly flags: Settings;
  readonly root: string;
  /** Whether the user has trusted the text of an agent of the project with this path and hash. */
  readonly accepts: (path: string, hash: string) => boolean;
  readonly sources: readonly SourceFile[];
  /** Agents and the configuration that are not used, because their project is not trusted. */
  readonly ignored: readonly SourceFile[];
  /** Agents of `reeve.config.ts`. */
  readonly configured: readonly HostedAgent[];
  readonly configPath?: string;
  readonly shelf: ToolShelf;
  readonly prompts: PromptCache;
  /** Guardrails of files. */
  readonly guardrails: readonly Guardrail[];
  readonly extensions: readonly Extension[];
  /** The tool and the reviewer that update the memory files. Absent if the memory is not reviewed. */
  readonly memoryReview?: { readonly tool: Tool; readonly reviewer: Reviewer };
  readonly activeSkills: ActiveSkills;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The option `gateway` of the configuration, and how the gateway of hired agents is opened. */
  readonly gateway: Pick<HiredParts, "config" | "openGateway">;
  /** Returns the model of this name. Default: `namedModel`. */
  readonly resolveModel?: (name: string) => Model;
  /** Loads the package of a model provider from the project, if it is not installed where Reeve is. */
  readonly loadPackage: (name: string) => Promise<object | undefined>;
  readonly importTimeoutMs: number;
}

export const defaultAgent = "assistant";

/** The agents of a workspace after one reading of its files. An agent is created when it is first used. */
export class AgentShelf {
  readonly #parts: AgentParts;
  readonly #entries: ReadonlyMap<string, Entry>;

  private constructor(parts: AgentParts, entries: ReadonlyMap<string, Entry>) {
    this.#parts = parts;
    this.#entries = entries;
  }

  /**
   * Reads the files of all agents. A file that cannot be read gives a notice, and its agent throws when it is used.
   */
  static async open(parts: AgentParts, notices: Notices): Promise<AgentShelf> {
    const entries = new Map<string, Entry>([[defaultAgent, { name: defaultAgent, origin: "built-in" }]]);
    for (const source of parts.sources) {
      const { name, path } = source;
      if (!isAgentName(name)) {
        notices.add(
          "warning",
          path,
          "the agent is not used: rename the file to letters, digits, _ and -, starting with a letter",
        );
        continue;
      }
      const entry = await readEntry(source, notices);
      if (entry.file !== undefined && source.origin === "project" && !parts.accepts(path, entry.file.hash)) {
        const program = hiredProgram(entry.file);
        const effect =
          program === undefined
            ? "your own limits apply to it, and --yes is refused"
            : `it is refused, because it would start ${program}`;
        notices.add(
          "warning",
          path,
          `the agent has changed since you trusted the project: ${effect}; run reeve trust`,
        );
      }
      const before = entries.get(name);
      if (before?.path !== undefined)
        notices.add("duplicate", before.path, `agent ${name} is also defined by ${path}, which is used`);
      entries.set(name, entry);
    }
    for (const agent of parts.configured) {
      const { name } = parseAgentId(agent.id);
      const path = parts.configPath;
      entries.set(name, { name, origin: "project", ...(path !== undefined && { path }), hosted: agent });
    }
    return new AgentShelf(parts, entries);
  }

  list(): readonly WorkspaceAgent[] {
    return [...this.#entries.values()].map((entry) => {
      const { name, origin, path, file, hosted } = entry;
      const description = file?.description ?? (hosted as { description?: string } | undefined)?.description;
      const harness = file?.harness;
      const isFromFile = file !== undefined || origin === "built-in";
      const isDescribed = isFromFile && harness === undefined;
      return {
        name,
        origin,
        ...(path !== undefined && { path }),
        ...(description !== undefined && { description }),
        ...(isDescribed && { tools: this.#toolNames(file) }),
        ...(file?.subAgents !== undefined && { subAgents: file.subAgents }),
        ...(isDescribed && this.#modelName(file)),
        ...(harness !== undefined && { harness, ...commandOf(harness, file?.command) }),
        ...(isFromFile && this.#limits(entry)),
      };
    });
  }

  /** Returns which tools of these agents the machine cannot offer now. */
  async missingTools(names: readonly string[]): Promise<readonly MissingTool[]> {
    const missing = new Map<string, MissingTool>();
    for (const { name, tools = [] } of this.list().filter((each) => names.includes(each.name)))
      for (const { tool, problem, isNamed } of await this.#parts.shelf.lacking(tools)) {
        const { without, refused } = missing.get(tool) ?? { without: [], refused: [] };
        missing.set(tool, {
          tool,
          problem,
          without: isNamed ? without : [...without, name],
          refused: isNamed ? [...refused, name] : refused,
        });
      }
    return [...missing.values()];
  }

  /** Creates an agent. `key` distinguishes instances of one agent, such as those of several sessions. */
  async make(name: string, key?: string): Promise<HostedAgent> {
    return this.#make(name, key, []);
  }

  async #make(name: string, key: string | undefined, above: readonly string[]): Promise<HostedAgent> {
    const entry = this.#entries.get(name);
    if (entry === undefined) throw this.#unknown(name);
    if (entry.problem !== undefined) throw entry.problem;
    if (above.includes(name))
      throw new Fault(
        "invalid_argument",
        `agents hire each other in a cycle: ${[...above, name].join(", ")}; remove one of the entries of subAgents`,
      );
    if (entry.hosted !== undefined) return withKey(this.#extended(entry.hosted), key);
    if (entry.source !== undefined && entry.file === undefined)
      return withKey(this.#extended(await this.#load(entry.source)), key);
    if (entry.file?.harness !== undefined) return this.#hired(entry, entry.file, entry.file.harness, key);
    return this.#fromFile(entry, key, above);
  }

  /**
   * Creates a hired agent from a file with `harness`. Such an agent needs trust, because it starts a program and
   * spends money with the key of the user.
   */
  async #hired(entry: Entry, file: AgentFile, harness: string, key: string | undefined): Promise<Agent> {
    const { name } = entry;
    const { settings, flags, root, env, guardrails, extensions, gateway } = this.#parts;
    if (!this.#isFree(entry))
      throw new Fault(
        "permission_denied",
        `agent ${name} of ${file.path} hires a program, and you have not trusted it as it is; run reeve trust`,
      );
    const { hiredFromFile } = await import("./workspace-hired.ts");
    return hiredFromFile({
      ...gateway,
      file: { ...file, harness },
      values: this.#values(entry, true),
      model: flags.model,
      sandbox: settings.sandbox,
      root,
      env,
      options: {
        name,
        ...(key !== undefined && { key }),
        permissions: this.#permissions(true),
        guardrails,
        ...(extensions.length > 0 && { extensions }),
      },
    });
  }

  /**
   * Adds the guardrails of files and the extensions to an agent in code. If the names are equal, a guardrail of a
   * file replaces one of the agent, but an extension of the agent replaces one of the workspace. Agents of other
   * classes are returned unchanged, because they have no such options.
   */
  #extended(agent: HostedAgent): HostedAgent {
    const { guardrails, extensions } = this.#parts;
    if (!isAgent(agent) || guardrails.length + extensions.length === 0) return agent;
    return agent.with((own) => ({
      guardrails: byName([...(own.guardrails ?? []), ...guardrails]),
      ...(extensions.length > 0 && { extensions: byName([...extensions, ...(own.extensions ?? [])]) }),
    }));
  }

  async #load(source: SourceFile): Promise<HostedAgent> {
    const { path, name } = source;
    const exports = await loadModule(source, this.#parts.importTimeoutMs);
    const agent = exports["default"] ?? exports["agent"];
    if (!isHosted(agent))
      throw new Fault(
        "invalid_argument",
        `invalid agent file ${path}: export the agent as default, such as export default new Agent({ ... })`,
      );
    const own = parseAgentId(agent.id).name;
    if (own !== name)
      throw new Fault(
        "invalid_argument",
        `invalid agent file ${path}: its agent is named ${own}; use the name of the file, ${name}`,
      );
    return agent;
  }

  /**
   * Whether an agent may have wider limits than the settings. It may not if it has changed since the user trusted
   * its project.
   */
  #isFree({ file, origin }: Entry): boolean {
    return origin !== "project" || file === undefined || this.#parts.accepts(file.path, file.hash);
  }

  /**
   * Combines the settings with the front matter of an agent. The front matter takes precedence; if the agent is not
   * free, it can only narrow the settings.
   */
  #values({ file }: Entry, isFree: boolean): AgentValues {
    const { settings } = this.#parts;
    const usual = Object.fromEntries(Object.entries(settings).filter(([key]) => key in sharedFields));
    const own = Object.fromEntries(Object.entries(file ?? {}).filter(([key]) => key in agentFields));
    return combineValues(usual, isFree ? own : freeValues(own, usual, agentFields), agentFields);
  }

  #limits(entry: Entry): Pick<WorkspaceAgent, "maxCostUsd" | "allowedChanges"> {
    const { budget, allowedChanges } = this.#values(entry, this.#isFree(entry));
    const { maxCostUsd } = budget ?? {};
    return {
      ...(maxCostUsd !== undefined && { maxCostUsd }),
      ...(allowedChanges !== undefined && { allowedChanges }),
    };
  }

  async #fromFile(entry: Entry, key: string | undefined, above: readonly string[]): Promise<Agent> {
    const { name, file } = entry;
    const { flags, prompts, root, guardrails, shelf } = this.#parts;
    const where = file?.path ?? `agent ${name}`;
    const isFree = this.#isFree(entry);
    if (!isFree) this.#refuseUnasked(name, where, file);
    const names = this.#toolNames(file);
    const lacking = await shelf.lacking(names);
    refuseLacking(name, file?.path, lacking);
    const { tools, ephemeral } = await shelf.choose(names, where, lacking);
    const { mode: _mode, ...rules } = this.#parts.settings.permissions ?? {};
    shelf.checkRules(rules, tools());
    const subAgents: SubAgent[] = [];
    for (const each of file?.subAgents ?? [])
      subAgents.push({ agent: await this.#make(each, undefined, [...above, name]) });
    const { reviewers, ...values } = this.#values(entry, isFree);
    const own: AgentOptions = {
      ...optionsOf(values),
      ...(values.isolation !== undefined && { isolation: { worktree: { repository: root } } }),
      ...(flags.maxTurns !== undefined && { maxTurns: flags.maxTurns }),
      name,
      ...(key !== undefined && { key }),
      model: this.#model(file, isFree),
      instructions: prompts.source({
        name,
        instructions: file?.instructions ?? "",
        canRead: readableBelow(root),
      }),
      ...this.#reviewed(tools, fileReviewers(reviewers, where, tools)),
      ephemeral,
      guardrails: byName([loopDetection(), ...guardrails]),
      ...(this.#parts.extensions.length > 0 && { extensions: this.#parts.extensions }),
      permissions: this.#permissions(isFree),
      ...(subAgents.length > 0 && { subAgents }),
    };
    return new Agent(own);
  }

  /**
   * Throws for an agent that has changed since its project was trusted, if it could act or see without asking the
   * user. This is the case in a mode that approves every call, also for a sub-agent, and with the desktop tools,
   * which read the screen without asking.
   */
  #refuseUnasked(name: string, where: string, file: AgentFile | undefined): void {
    const reason = "because it has changed since you trusted the project; run reeve trust";
    if (this.#parts.flags.permissions?.mode === "bypass")
      throw new Fault(
        "permission_denied",
        `--yes cannot be used with agent ${name} of ${where}, ${reason}, or leave out --yes`,
      );
    if (this.#toolNames(file).some((each) => ownToolName(each) === "desktop"))
      throw new Fault(
        "permission_denied",
        `agent ${name} of ${where} cannot use the desktop, ${reason}, or remove desktop from its tools`,
      );
  }

  /**
   * Adds the review of the memory to an agent. An agent without tools gets no review, because reviews are counted
   * in tool calls.
   */
  #reviewed(
    tools: () => readonly Tool[],
    reviewers: readonly Reviewer[],
  ): Pick<AgentOptions, "tools" | "reviewers"> {
    const { memoryReview } = this.#parts;
    if (memoryReview === undefined || tools().length === 0) return { tools, reviewers };
    const { tool, reviewer: ofMemory } = memoryReview;
    const others = (): readonly Tool[] => tools().filter(({ name }) => name !== tool.name);
    return { tools: () => [...others(), tool], reviewers: [...reviewers, ofMemory] };
  }

  #toolNames(file: AgentFile | undefined): readonly string[] {
    const { settings, flags } = this.#parts;
    if (flags.tools === undefined && file?.tools !== undefined) return file.tools;
    const set = settings.tools ?? "read";
    return set === "read" ? ["read", "ls", "find", "grep", "mcp__*"] : [set];
  }

  /** Returns the model name for an agent. A model that the caller names takes precedence over that of the file. */
  #modelName(file: AgentFile | undefined): { readonly model?: string } {
    const { settings, flags } = this.#parts;
    const model = flags.model ?? file?.model ?? settings.model;
    return model === undefined ? {} : { model };
  }

  #model(file: AgentFile | undefined, isFree: boolean): Model {
    const { settings, env, resolveModel, loadPackage } = this.#parts;
    const { model: name } = this.#modelName(file);
    if (name === undefined)
      throw new Fault(
        "invalid_argument",
        `missing model; use --model provider/id, such as anthropic/claude-sonnet-5, set REEVE_MODEL, or set "model" in settings.json`,
      );
    return workspaceModel(name, {
      settings,
      file: isFree ? file : undefined,
      isFree,
      env,
      resolveModel,
      loadPackage,
    });
  }

  /**
   * Returns the permissions of an agent. The user's mode `bypass` does not apply to an agent whose current text the
   * user has not seen (`isFree` is `false`).
   */
  #permissions(isFree: boolean) {
    const { settings, activeSkills } = this.#parts;
    const { mode: chosen, allow = [], ask = [], deny = [] } = settings.permissions ?? {};
    const mode = chosen === "bypass" && !isFree ? "default" : chosen;
    const bySkill: PermissionRule = {
      tool: "*",
      when: (input, facts, { toolName }) => activeSkills.allows(facts.sessionId, toolName, input),
    };
    return permissions({
      onAsk: "wait",
      allow: [...allow, bySkill],
      ask,
      deny,
      ...(mode !== undefined && { mode }),
    });
  }

  #unknown(name: string): Fault {
    const names = [...this.#entries.keys()];
    const ignored = this.#parts.ignored.find((each) => each.name === name);
    if (ignored !== undefined)
      return new Fault(
        "not_found",
        `agent ${JSON.stringify(name)} of ${ignored.path} is not used, because the project is not trusted; run reeve trust`,
      );
    const nearest = nearestName(name, names);
    const fix = nearest === undefined ? `the workspace has ${names.join(", ")}` : `use ${nearest}`;
    const config = this.#parts.ignored.find(({ path }) => basename(path).startsWith("reeve.config."));
    const trust =
      config === undefined
        ? ""
        : `; if it is an agent of ${config.path}, which is not used because the project is not trusted, run reeve trust`;
    return new Fault("not_found", `agent ${JSON.stringify(name)} not found: ${fix}${trust}`);
  }
}

/** Throws if an agent names a tool that the machine cannot offer. */
function refuseLacking(name: string, path: string | undefined, lacking: readonly LackingTool[]): void {
  const found = lacking.find(({ isNamed }) => isNamed);
  if (found === undefined) return;
  const who = path === undefined ? name : `${name} of ${path}`;
  throw new Fault(
    "dependency_missing",
    `agent ${who} names the tool ${found.tool}, which this machine cannot offer: ${found.problem}; or remove ${found.tool} from its tools`,
    { details: { agent: name, tool: found.tool } },
  );
}

interface Entry extends WorkspaceAgent {
  readonly source?: SourceFile;
  readonly file?: AgentFile;
  readonly hosted?: HostedAgent;
  readonly problem?: Fault;
}

async function readEntry(source: SourceFile, notices: Notices): Promise<Entry> {
  const { name, path, origin, root } = source;
  const entry = { name, path, origin, source };
  if (!path.endsWith(".md")) return entry;
  try {
    return {
      ...entry,
      file: await readAgentFile(path, notices, origin === "project" ? { within: root } : {}),
    };
  } catch (error) {
    const problem = Fault.from(error);
    notices.add("warning", path, `the agent cannot be used: ${problem.message}`);
    return { ...entry, problem };
  }
}

/** Returns the command of a hired agent: that of its file, or else the usual command of its program. */
function commandOf(harness: string, given: readonly string[] | undefined): Pick<WorkspaceAgent, "command"> {
  const command = given ?? presetCommand(harness, packageRoot);
  return command === undefined ? {} : { command };
}

function isHosted(value: unknown): value is HostedAgent {
  const agent = value as Partial<HostedAgent> | null | undefined;
  return (
    typeof agent === "object" &&
    agent !== null &&
    typeof agent.run === "function" &&
    typeof agent.id === "string"
  );
}

/** Whether the value is an `Agent`, even one from another copy of this package. */
export function isAgent(value: unknown): value is Agent {
  const agent = value as Partial<Agent> | null | undefined;
  return isHosted(value) && typeof agent?.with === "function" && typeof agent.submit === "function";
}

/** Returns the agent with another key. An agent without the method `with` has only one instance. */
function withKey(agent: HostedAgent, key: string | undefined): HostedAgent {
  return key !== undefined && isAgent(agent) ? agent.with({ key }) : agent;
}

/** Of parts with the same name, keeps the last one, at the position of the first one. */
function byName<Part extends { readonly name: string }>(parts: readonly Part[]): readonly Part[] {
  return [...new Map(parts.map((part) => [part.name, part])).values()];
}

/** Keys of a front matter from which the workspace creates parts. All other keys are options of `Agent`. */
const madeKeys = [
  "name",
  "model",
  "tools",
  "subAgents",
  "contextWindow",
  "harness",
  "command",
  "inheritEnv",
  "idleMs",
  "isolation",
] as const satisfies (keyof AgentValues)[];

/** The options of `Agent` that a front matter sets. */
function optionsOf(
  values: Omit<AgentValues, "reviewers">,
): Omit<AgentValues, (typeof madeKeys)[number] | "reviewers"> {
  return Object.fromEntries(
    Object.entries(values).filter(([key]) => !(madeKeys as readonly string[]).includes(key)),
  );
}

/**
 * Returns the reviewers of a front matter. Throws `invalid_argument`, which names the file, for a reviewer that
 * could not work.
 */
function fileReviewers(
  written: AgentValues["reviewers"],
  where: string,
  tools: () => readonly Tool[],
): readonly Reviewer[] {
  return Object.entries(written ?? {}).map(([name, values]) => {
    const problem = (text: string): Fault =>
      new Fault("invalid_argument", `invalid "reviewers.${name}" in ${where}: ${text}`);
    const { every, prompt, tools: named, budget } = values;
    if (every === undefined || prompt === undefined || named === undefined)
      throw problem("expected every, tools and prompt");
    const known = tools().map((tool) => tool.name);
    const unknown = named.find((tool) => !known.includes(tool));
    if (unknown !== undefined)
      throw problem(
        `there is no tool ${JSON.stringify(unknown)}; expected some of ${known.join(", ") || "none"}`,
      );
    return reviewer({ name, every, prompt, tools: named, ...(budget !== undefined && { budget }) });
  });
}
