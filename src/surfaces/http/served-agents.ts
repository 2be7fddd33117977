import { Agent } from "../../assembly/agent.ts";
import {
  Fault,
  nearestName,
  parseAgentId,
  readProperty,
  type AllowedChanges,
  type HostedAgent,
  type JsonObject,
  type JsonSchema,
  type JsonValue,
  type MaybePromise,
  type Runtime,
  type Signal,
} from "../../kernel/index.ts";

/** The data that are known about a run before its agent is created. */
export interface StartRequest {
  /** Id of the new run. All repetitions of a request with an idempotency key have the same id. */
  readonly runId: string;
  readonly input: JsonValue;
  /** The session that the caller named. `undefined` if a new session is to be created. */
  readonly sessionId: string | undefined;
  readonly userId: string | null;
  readonly tenantId: string | null;
}

/** The agent of a new run. */
export interface StartedAgent {
  readonly agent: HostedAgent;
  /** Stored with the run in addition to the caller's metadata, so that a resolver can create the agent again. */
  readonly metadata?: JsonObject;
  /** The session of the run, if the agent belongs to a session. Default: the session that the caller named. */
  readonly sessionId?: string;
}

/** The file with the instructions of an agent. */
export interface PromptFile {
  /** Reads the current instructions from the file. */
  read(): Promise<PromptText>;
  /**
   * Replaces the instructions. Throws `version_mismatch` if the file's text no longer has the hash `hash`, and
   * `permission_denied` if the file must not be changed. Returns the file after the change.
   */
  save(instructions: string, hash: string): Promise<PromptText>;
}

/** The instructions of an agent in their file. */
export interface PromptText {
  /** Path of the file, as people name it. */
  readonly path: string;
  readonly instructions: string;
  /** Hash of the whole file. */
  readonly hash: string;
  /** Why the file must not be changed. `null` if it can be changed. */
  readonly refusal: string | null;
}

/** The data about an agent that a caller wants to change for one run. */
export interface ChangeableAgent {
  readonly name: string;
  readonly allowed: AllowedChanges;
  /** Names of the models that the agent itself defines. The first one is its main model. */
  readonly models: readonly string[];
}

/** An agent that callers may start by its name, and that is created separately for each run. */
export interface ServedAgent {
  readonly name: string;
  readonly description?: string;
  /** Name of the model, `provider/id`. */
  readonly model?: string;
  readonly tools?: readonly string[];
  /** Names of the agents that it may hire. */
  readonly subAgents?: readonly string[];
  /** Names of the skills that it may load. */
  readonly skills?: readonly string[];
  /** Maximum cost of each run of the agent. If absent, callers receive no such information. */
  readonly maxCostUsd?: number;
  /** JSON Schema of the input. If absent, the input is a message. */
  readonly inputSchema?: JsonSchema;
  /**
   * Whether the agent is left out of lists, because it cannot be used at the moment. `start` then throws the
   * reason. Default: `false`.
   */
  readonly hidden?: boolean;
  /** The settings that callers with the scope `run` may change in the agent's runs. Default: none. */
  readonly allowedChanges?: AllowedChanges;
  start(request: StartRequest): MaybePromise<StartedAgent>;
  /**
   * Creates the agent only to describe it, for callers who want to change settings for one run. If absent, only the
   * fields of this object are known.
   */
  describe?(): MaybePromise<HostedAgent>;
  /** The file that contains the instructions of the agent. If absent, callers cannot change the instructions. */
  readonly prompt?: PromptFile;
  /**
   * Replaces a text of a caller before the agent receives it, such as `/name arguments` by a prompt template.
   * Throws `not_found` for an unknown name. If absent, texts are not changed.
   */
  expand?(text: string, session: { readonly sessionId?: string }): MaybePromise<string>;
  /** Returns the commands that a person may write as `/NAME`. If absent, there are none. */
  commands?(runtime: Runtime): MaybePromise<readonly AgentCommand[]>;
  /** Runs a command of an extension. If absent, the agent has no such commands. */
  runCommand?(call: CommandCall): MaybePromise<{ readonly sessionId: string }>;
}

/** The kinds of commands: code of an extension, a prompt template, or a skill. */
export const commandKinds = ["command", "prompt", "skill"] as const;

/** A command that a person may send to an agent as `/NAME`. */
export interface AgentCommand {
  readonly name: string;
  readonly description: string;
  readonly kind: (typeof commandKinds)[number];
}

/** A command of an extension with the text after its name, and the session in which the person wrote it. */
export interface CommandCall {
  readonly command: string;
  readonly args: string;
  readonly sessionId: string;
  readonly runtime: Runtime;
}

/** An agent as `GET /api/agents` shows it. */
export interface AgentInfo {
  readonly name: string;
  readonly description: string | null;
  readonly model: string | null;
  readonly tools: readonly string[];
  readonly subAgents: readonly string[];
  readonly skills: readonly string[];
  /**
   * The agent's own cost limit for a run. A submission can only lower it. `null` if there is none, or if it is
   * unknown before the start.
   */
  readonly maxCostUsd: number | null;
  /** JSON Schema of the input. `null` if the input is a message, or if the schema is unknown before the start. */
  readonly inputSchema: JsonSchema | null;
  readonly kind: (typeof agentKinds)[number];
  /** Names of the handlers of an object. */
  readonly handlers: readonly string[];
  /** Signals that a workflow declares. The workflow may also wait for undeclared signals. */
  readonly signals: readonly MessageInfo[];
  /** Updates that a workflow declares. */
  readonly updates: readonly MessageInfo[];
}

/** The kinds of definitions that callers may start: an agent, a durable function, or a call of an object. */
export const agentKinds = ["agent", "workflow", "object"] as const;

/** A signal or an update of a workflow. */
interface MessageInfo {
  readonly name: string;
  /** JSON Schema of the value. `null` if every JSON value is accepted. */
  readonly schema: JsonSchema | null;
}

interface Entry extends Pick<
  ServedAgent,
  "start" | "expand" | "hidden" | "describe" | "prompt" | "commands" | "runCommand"
> {
  readonly info: AgentInfo;
  /** Whether `start` creates an agent for each run, such as an agent with the session as its key. */
  readonly makesAgents: boolean;
  readonly changeable: ChangeableAgent;
  /** The signals that a workflow declares. */
  readonly signals: readonly Signal<never, unknown>[];
}

/** Agents of a server: a list, or a function that returns the current list. */
export type AgentList = readonly (HostedAgent | ServedAgent)[] | (() => readonly ServedAgent[]);

/** The agents that callers of a server may start. */
export class ServedAgents {
  readonly #source: () => readonly (HostedAgent | ServedAgent)[];
  /** The list from which the entries were made. If the function returns another list, the entries are made again. */
  #read: readonly (HostedAgent | ServedAgent)[] = [];
  #entries: ReadonlyMap<string, Entry> = new Map();

  constructor(agents: AgentList) {
    this.#source = typeof agents === "function" ? agents : () => agents;
    // Two agents with the same name are refused at once.
    this.#entries = this.#agents;
  }

  /**
   * Registers the agents of a list. For an agent that is created for each run, the caller must register a resolver.
   */
  static register(agents: AgentList, runtime: Pick<Runtime, "register">): void {
    if (typeof agents === "function") return;
    for (const agent of agents) if ("id" in agent) runtime.register(agent);
  }

  get #agents(): ReadonlyMap<string, Entry> {
    const agents = this.#source();
    if (agents === this.#read) return this.#entries;
    this.#entries = entriesOf(agents);
    this.#read = agents;
    return this.#entries;
  }

  get list(): readonly AgentInfo[] {
    return [...this.#agents.values()].flatMap(({ info, hidden = false }) => (hidden ? [] : [info]));
  }

  /** Returns the agent with a name. Also throws `not_found` for a hidden agent. */
  find(name: string): AgentInfo {
    const { info, hidden = false } = this.#find(name);
    if (hidden) throw this.#notHosted(name);
    return info;
  }

  /** Whether callers may start an agent of this name. */
  has(name: string): boolean {
    return this.#lookUp(name) !== undefined;
  }

  async start(name: string, request: StartRequest): Promise<StartedAgent> {
    return this.#find(name).start(request);
  }

  /** Creates the agent with a name in order to describe it. Throws `unsupported` if that is impossible. */
  async describe(name: string): Promise<HostedAgent> {
    const { describe } = this.#find(name);
    if (describe === undefined)
      throw new Fault(
        "unsupported",
        `agent ${name} is made for each run, so that it cannot be described before`,
      );
    return describe();
  }

  /** Returns the file with the instructions of an agent. `undefined` if the agent has no such file. */
  promptFile(name: string): PromptFile | undefined {
    return this.#find(name).prompt;
  }

  /**
   * Returns the settings that callers may change in runs of an agent, which is named by its name or id. No settings
   * if this process does not host the agent.
   */
  changeable(name: string): ChangeableAgent {
    return this.#lookUp(name)?.changeable ?? { name, allowed: {}, models: [] };
  }

  /**
   * Returns the signal with a name that a workflow declares. `undefined` if the workflow does not declare it, or is
   * not hosted by this process.
   */
  signal(agent: string, name: string): Signal<never, unknown> | undefined {
    return this.#lookUp(agent)?.signals.find((each) => each.name === name);
  }

  /**
   * Returns an input as the agent receives it. A text input is expanded, and so is the first content part if it is
   * a text. The input of an agent that this process does not host is not changed.
   */
  async expand(name: string, input: JsonValue, sessionId: string | undefined): Promise<JsonValue> {
    const expand = this.#lookUp(name)?.expand;
    if (expand === undefined) return input;
    const session = sessionId === undefined ? {} : { sessionId };
    if (typeof input === "string") return expand(input, session);
    if (!Array.isArray(input)) return input;
    const [first, ...others] = input as readonly JsonValue[];
    const text = readProperty(first, "text");
    if (typeof text !== "string" || readProperty(first, "type") !== "text") return input;
    return [{ ...(first as JsonObject), text: await expand(text, session) }, ...others];
  }

  /** Returns the commands that a person may send to an agent as `/NAME`. */
  async commands(name: string, runtime: Runtime): Promise<readonly AgentCommand[]> {
    return (await this.#find(name).commands?.(runtime)) ?? [];
  }

  /** Runs a command of an agent's extension. Throws `not_found` if the agent has no extensions in this process. */
  async runCommand(name: string, call: CommandCall): Promise<{ readonly sessionId: string }> {
    const { runCommand } = this.#find(name);
    if (runCommand !== undefined) return runCommand(call);
    throw new Fault("not_found", `agent ${name} has no command ${call.command}: it has no extensions here`);
  }

  /**
   * Returns the agent with a name or with the id of an agent that it has created. Runs and sessions show the ids of
   * created agents, and a caller who continues a session sends such an id.
   */
  #lookUp(name: string): Entry | undefined {
    const maker = this.#agents.get(name.split("/", 1)[0] ?? "");
    return this.#agents.get(name) ?? (maker?.makesAgents === true ? maker : undefined);
  }

  #find(name: string): Entry {
    const found = this.#lookUp(name);
    if (found !== undefined) return found;
    throw this.#notHosted(name);
  }

  #notHosted(name: string): Fault {
    const names = this.list.map((info) => info.name);
    const nearest = nearestName(name, names);
    const advice =
      nearest !== undefined
        ? `use ${nearest}`
        : names.length > 0
          ? `expected one of ${names.join(", ")}`
          : "this server hosts no agents";
    return new Fault("not_found", `agent ${JSON.stringify(name)} is not hosted here: ${advice}`, {
      details: { agent: name },
    });
  }
}

function entriesOf(agents: readonly (HostedAgent | ServedAgent)[]): ReadonlyMap<string, Entry> {
  const entries = new Map<string, Entry>();
  for (const agent of agents) {
    const info = "id" in agent ? hostedInfo(agent) : servedInfo(agent);
    if (entries.has(info.name))
      throw new Fault(
        "already_exists",
        `two agents of the server have the name ${info.name}; rename one of them`,
      );
    const start: ServedAgent["start"] = "id" in agent ? () => ({ agent }) : (request) => agent.start(request);
    const expand = "id" in agent ? undefined : agent.expand?.bind(agent);
    const makesAgents = !("id" in agent);
    const hidden = !("id" in agent) && agent.hidden === true;
    const describe = "id" in agent ? () => agent : agent.describe?.bind(agent);
    const prompt = "id" in agent ? undefined : agent.prompt;
    const commanded = "id" in agent ? commandsOf(agent) : agent;
    const { allowedChanges = {} } = agent;
    const models = "id" in agent ? modelNames(agent) : agent.model === undefined ? [] : [agent.model];
    entries.set(info.name, {
      info,
      start,
      hidden,
      makesAgents,
      changeable: { name: info.name, allowed: allowedChanges, models },
      signals: ("id" in agent ? agent.signals : undefined) ?? [],
      ...(expand !== undefined && { expand }),
      ...(describe !== undefined && { describe }),
      ...(prompt !== undefined && { prompt }),
      ...(commanded.commands !== undefined && { commands: commanded.commands.bind(commanded) }),
      ...(commanded.runCommand !== undefined && { runCommand: commanded.runCommand.bind(commanded) }),
    });
  }
  return entries;
}

/** Returns the functions for the commands of an agent in code, which its extensions define. */
function commandsOf(agent: HostedAgent): Pick<ServedAgent, "commands" | "runCommand"> {
  if (!(agent instanceof Agent)) return {};
  return {
    commands: (runtime) => extensionCommands(agent, runtime),
    runCommand: ({ command, args, sessionId, runtime }) =>
      agent.runCommand(command, args, { sessionId, runtime }),
  };
}

/** Returns the commands that the extensions of an agent have registered. */
export async function extensionCommands(agent: Agent, runtime: Runtime): Promise<readonly AgentCommand[]> {
  const commands = await agent.commands({ runtime });
  return commands.map(({ name, description }) => ({ name, description, kind: "command" }));
}

/** Returns the names of an agent's models, its main model first. */
export function modelNames({ models = {} }: Pick<HostedAgent, "models">): readonly string[] {
  const { main, ...others } = models;
  const all = [...(main === undefined ? [] : [main]), ...Object.values(others)];
  return [...new Set(all.map(({ provider, modelId }) => `${provider}/${modelId}`))];
}

/** Describes an agent as `GET /api/agents` shows it. */
export function hostedInfo({
  id,
  models,
  tools = [],
  subAgents = [],
  budget,
  inputSchema,
  runKind,
  signals = [],
  updates = [],
  ...agent
}: HostedAgent): AgentInfo {
  const main = models?.["main"];
  const description: unknown = "description" in agent ? agent.description : undefined;
  const handlers = readProperty(agent, "handlerNames");
  return {
    name: id,
    description: typeof description === "string" ? description : null,
    model: main === undefined ? null : `${main.provider}/${main.modelId}`,
    tools: tools.map(({ name }) => name),
    subAgents: subAgents.map((each) => parseAgentId(each.id).name),
    skills: [],
    maxCostUsd: budget?.maxCostUsd ?? null,
    inputSchema: inputSchema ?? null,
    kind: Array.isArray(handlers) ? "object" : runKind === "workflow" ? "workflow" : "agent",
    handlers: Array.isArray(handlers) ? (handlers as readonly string[]) : [],
    signals: signals.map(messageInfo),
    updates: updates.map(messageInfo),
  };
}

function messageInfo({ name, schema }: Pick<Signal<never, unknown>, "name" | "schema">): MessageInfo {
  return { name, schema: schema ?? null };
}

/** Describes an agent by its settings, without creating it. */
export function servedInfo(agent: Omit<ServedAgent, "start">): AgentInfo {
  const { name, description, model, tools = [], subAgents = [], skills = [] } = agent;
  const { maxCostUsd, inputSchema } = agent;
  return {
    name,
    description: description ?? null,
    model: model ?? null,
    tools,
    subAgents,
    skills,
    maxCostUsd: maxCostUsd ?? null,
    inputSchema: inputSchema ?? null,
    kind: "agent",
    handlers: [],
    signals: [],
    updates: [],
  };
}
