import { bashTool, fetchTool, fileTools, askHumanTool, todoTool } from "../capabilities/tools/index.ts";
import { errorResult, tool } from "../capabilities/index.ts";
import { Sandbox } from "../capabilities/sandbox/sandbox.ts";
import { Fault, nearestName, type EphemeralSource, type Tool } from "../kernel/index.ts";
import {
  docsPrefix,
  isBelow,
  ownToolName,
  readDocument,
  readSkillFile,
  type FileSkill,
  type KnowledgeDocument,
  type Settings,
} from "./files/index.ts";

/** The folders, servers and functions from which the tools of a workspace's agents are created. */
export interface ToolShelfOptions {
  /** Folder to which file tools and shell commands are confined. */
  readonly root: string;
  /** More folders that file tools and shell commands may use. */
  readonly folders: readonly string[];
  readonly settings: Settings;
  readonly skills: readonly FileSkill[];
  readonly knowledge: readonly KnowledgeDocument[];
  /** Folder with the documentation of Reeve. */
  readonly docsFolder?: string;
  /** Returns the tools of the MCP servers, and starts the servers. The list may change later. */
  readonly remote: () => Promise<readonly Tool[]>;
  /** Creates the tools of the browser or the desktop when they are first used. */
  readonly live: Readonly<Record<"browser" | "desktop", () => Promise<LiveTools>>>;
  /** Creates additional tools, such as those for the memory files. */
  readonly own: () => readonly Tool[];
  /** Called when an agent loads a skill in a session. */
  readonly onSkill: (skill: FileSkill, sessionId: string) => void;
}

/** Tools whose live state the model sees before each turn. */
export interface LiveTools {
  readonly tools: readonly Tool[];
  readonly ephemeral: EphemeralSource;
  /** Returns what the machine is missing for the tools, and how to get it. `undefined` if nothing is missing. */
  problem(): Promise<string | undefined>;
}

/** A tool of an agent that this machine cannot offer. */
export interface LackingTool {
  readonly tool: string;
  /** What is missing on the machine, and how to get it. */
  readonly problem: string;
  /** Whether the agent names the tool. If not, it has the tool only through the tool set `all`. */
  readonly isNamed: boolean;
}

/** The tools of one agent. */
export interface ChosenTools {
  /** Returns the current tools. The tools of MCP servers may change. */
  readonly tools: () => readonly Tool[];
  readonly ephemeral: readonly EphemeralSource[];
}

/** The tools of the sets `read` and `all`. */
const readers = ["read", "ls", "find", "grep"];
const everything = [...readers, "write", "edit", "bash", "fetch", "todo"];

/** Names and patterns of tools in the settings. */
type ToolRules = Readonly<Partial<Record<"allow" | "ask" | "deny", readonly string[]>>>;

/**
 * Returns the tool that a rule probably means. `undefined` if the rule names an existing tool, is a pattern, or
 * resembles no tool.
 */
function nearestOwn(name: string, known: ReadonlySet<string>): string | undefined {
  if (name.includes("*") || known.has(name)) return undefined;
  const own = ownToolName(name);
  if (known.has(own)) return own;
  // `read_mail` contains `read` and may be a tool of an extension. A misspelt name has about the same length.
  return nearestName(
    name,
    [...known].filter((each) => Math.abs(each.length - name.length) <= 2),
  );
}

/**
 * Returns the tool of an MCP server that a rule probably means, like `nearestOwn`. The name of the server is
 * checked also in a pattern.
 */
function nearestRemote(name: string, known: ReadonlySet<string>): string | undefined {
  const remote = [...known].filter((each) => each.startsWith("mcp__"));
  const [, server = "", own] = /^mcp__(.+?)(?:__(.*))?$/su.exec(name) ?? [];
  const servers = new Set(remote.map((each) => each.split("__")[1] ?? ""));
  if (server.includes("*") || servers.size === 0) return undefined;
  if (!servers.has(server)) {
    const meant = nearestName(server, servers);
    return meant === undefined ? undefined : `mcp__${meant}__${own ?? "*"}`;
  }
  if (own === undefined || own.includes("*") || known.has(name)) return undefined;
  return nearestName(
    name,
    remote.filter((each) => each.startsWith(`mcp__${server}__`)),
  );
}

/** All tools that the agents of a workspace can name in their files. */
export class ToolShelf {
  readonly #options: ToolShelfOptions;
  #made: ReadonlyMap<string, Tool> | undefined;
  #sandbox: Sandbox | undefined;

  constructor(options: ToolShelfOptions) {
    this.#options = options;
  }

  /**
   * The tools by name. They are created when they are first used, because compiling their schemas takes most of the
   * time of a reload.
   */
  get #byName(): ReadonlyMap<string, Tool> {
    return (this.#made ??= new Map(this.#create().map((each) => [each.name, each])));
  }

  #create(): readonly Tool[] {
    const { root, folders, settings, own } = this.#options;
    return [
      ...fileTools({ root, folders }),
      bashTool({ root, folders, sandbox: settings.sandbox ?? "enforce" }),
      fetchTool(),
      todoTool(),
      askHumanTool(),
      ...own(),
    ];
  }

  /**
   * Checks of what a machine may be missing, by the tool that needs it: a sandbox, Chromium or its driver, a
   * display. Everything else that tools need is a part of Reeve.
   */
  readonly #needs: Readonly<Record<string, () => Promise<string | undefined>>> = {
    bash: async () => {
      const { root, settings } = this.#options;
      this.#sandbox ??= new Sandbox({ mode: settings.sandbox ?? "enforce" });
      return this.#sandbox.policy.mode === "enforce" ? this.#sandbox.problem(root) : undefined;
    },
    browser: async () => (await this.#options.live.browser()).problem(),
    desktop: async () => (await this.#options.live.desktop()).problem(),
  };

  /** Returns which of the tools with these names the machine cannot offer now. */
  async lacking(names: readonly string[]): Promise<readonly LackingTool[]> {
    const named = names.map(ownToolName);
    const wanted = new Set(named.flatMap((name) => (name === "all" ? everything : [name])));
    const found: LackingTool[] = [];
    for (const [name, check] of Object.entries(this.#needs)) {
      const problem = wanted.has(name) ? await check() : undefined;
      if (problem !== undefined) found.push({ tool: name, problem, isNamed: named.includes(name) });
    }
    return found;
  }

  /**
   * Returns the tools with these names, without those that are `absent`. A name is the name of a tool, `all`,
   * `browser`, `desktop`, or a pattern of MCP tools such as `mcp__github__*`. A single `none`, `read` or `all`
   * selects the tool set of that name. Throws `invalid_argument`, which names the file, for an unknown name.
   * `skill` and `knowledge` are added if there is something to read and the agent has any tools.
   */
  async choose(
    names: readonly string[],
    where: string,
    absent: readonly LackingTool[] = [],
  ): Promise<ChosenTools> {
    const chosen = new Map<string, Tool>();
    const ephemeral: EphemeralSource[] = [];
    const patterns: string[] = [];
    const isSet = names.length === 1 && names[0] === "read";
    for (const written of isSet ? readers : names) {
      const name = ownToolName(written);
      if (name === "all" || name.startsWith("mcp__")) patterns.push(name === "all" ? "mcp__*" : name);
      if (name === "browser" || name === "desktop") {
        const live = await this.#options.live[name]();
        for (const each of live.tools) chosen.set(each.name, each);
        ephemeral.push(live.ephemeral);
      } else for (const each of this.#named(name, where)) chosen.set(each.name, each);
    }
    if (names.some((name) => name !== "none"))
      for (const each of this.#readers()) chosen.set(each.name, each);
    for (const { tool: name } of absent) chosen.delete(name);
    const fixed = [...chosen.values()];
    if (patterns.length === 0) return { tools: () => fixed, ephemeral };
    const remote = await this.#options.remote();
    const fits = ({ name }: Tool): boolean =>
      patterns.some((each) => (each.endsWith("*") ? name.startsWith(each.slice(0, -1)) : name === each));
    return { tools: () => [...fixed, ...remote.filter(fits)], ephemeral };
  }

  #named(name: string, where: string): readonly Tool[] {
    if (["none", "skill", "knowledge"].includes(name) || name.startsWith("mcp__")) return [];
    if (name === "all") return this.#take(everything);
    const found = this.#byName.get(name);
    if (found !== undefined) return [found];
    const known = [...this.#byName.keys(), "none", "all", "browser", "desktop"];
    const nearest = nearestName(name, known);
    const fix = nearest === undefined ? `expected some of ${known.join(", ")}` : `use ${nearest}`;
    throw new Fault("invalid_argument", `unknown tool ${JSON.stringify(name)} in ${where}: ${fix}`);
  }

  /**
   * Throws `invalid_argument` for a rule of the settings that names no tool but resembles one, because the rule
   * would have no effect. `tools` are the tools of an agent, including those of its MCP servers. A name that
   * resembles no tool is accepted, because an extension may add this tool later.
   */
  checkRules(rules: ToolRules, tools: readonly Tool[]): void {
    const known = new Set([...this.#byName.keys(), ...tools.map(({ name }) => name), "skill", "knowledge"]);
    for (const [kind, names] of Object.entries(rules))
      for (const name of names ?? []) {
        const nearest = name.startsWith("mcp__") ? nearestRemote(name, known) : nearestOwn(name, known);
        if (nearest === undefined) continue;
        throw new Fault(
          "invalid_argument",
          `invalid setting "permissions.${kind}": no tool is named ${JSON.stringify(name)}, so that the rule would have no effect; use ${JSON.stringify(nearest)}, or a pattern such as ${JSON.stringify(`${name}*`)} for a tool that is added later`,
          { details: { key: `permissions.${kind}`, name } },
        );
      }
  }

  #take(names: readonly string[]): readonly Tool[] {
    return names.flatMap((name) => this.#byName.get(name) ?? []);
  }

  #readers(): readonly Tool[] {
    const { skills, knowledge, docsFolder } = this.#options;
    return [
      ...(skills.some(({ hidden = false }) => !hidden) ? [this.#skillTool()] : []),
      ...(docsFolder !== undefined || knowledge.some(({ content }) => content === undefined)
        ? [this.#knowledgeTool()]
        : []),
    ];
  }

  #skillTool(): Tool {
    const { skills, onSkill } = this.#options;
    const visible = skills.filter(({ hidden = false }) => !hidden);
    return tool({
      name: "skill",
      description:
        "Load a skill of the list in the system prompt by its name, or with `file` one of the files that a skill mentions.",
      inputSchema: {
        type: "object",
        properties: {
          name: { type: "string", description: "The name of the skill" },
          file: { type: "string", description: "A path relative to the skill, such as references/forms.md" },
        },
        required: ["name"],
        additionalProperties: false,
      } as const,
      risk: "safe",
      destructive: false,
      execute: async ({ name, file }, { facts }) => {
        const found = visible.find((skill) => skill.name === name);
        if (found === undefined) {
          const nearest = nearestName(
            name,
            visible.map((skill) => skill.name),
          );
          return errorResult(`There is no skill ${name}.${nearest === undefined ? "" : ` Use ${nearest}.`}`);
        }
        onSkill(found, facts.sessionId);
        if (file !== undefined) return readSkillFile(found, file);
        return `${await found.read()}\n\nThe files of this skill are in ${found.folder}.`;
      },
    });
  }

  #knowledgeTool(): Tool {
    const { knowledge, docsFolder } = this.#options;
    return tool({
      name: "knowledge",
      description: "Read a document that the system prompt lists, by its path.",
      inputSchema: {
        type: "object",
        properties: { path: { type: "string", description: "The path of the document, as it is listed" } },
        required: ["path"],
        additionalProperties: false,
      } as const,
      risk: "safe",
      destructive: false,
      execute: async ({ path }) => {
        const found = knowledge.find((document) => document.path === path);
        if (found !== undefined) return readDocument(found);
        const name = path.startsWith(docsPrefix) ? path.slice(docsPrefix.length) : "";
        if (docsFolder === undefined || !/^[\w-]+\/[\w-]+\.md$/u.test(name))
          return errorResult(`There is no document ${path}.`);
        return readDocument({ file: `${docsFolder}/${name}`, within: docsFolder });
      },
    });
  }
}

/** Returns whether the file tools of a root can read a path. */
export function readableBelow(root: string): (path: string) => boolean {
  return (path) => isBelow(path, root);
}
