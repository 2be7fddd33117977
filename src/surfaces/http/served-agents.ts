import {
  Fault,
  nearestName,
  parseAgentId,
  readProperty,
  type HostedAgent,
  type JsonObject,
  type JsonValue,
  type MaybePromise,
} from "../../kernel/index.ts";

/** What is known about a run before its agent is made. */
export interface StartRequest {
  /** Id of the new run. The same for every repetition of a request with an idempotency key. */
  readonly runId: string;
  readonly input: JsonValue;
  /** The session that the caller named. `undefined`: a new one. */
  readonly sessionId: string | undefined;
  readonly userId: string | null;
  readonly tenantId: string | null;
}

/** The agent of a new run. */
export interface StartedAgent {
  readonly agent: HostedAgent;
  /** Stored with the run in addition to the caller's metadata, for a resolver that makes the agent again. */
  readonly metadata?: JsonObject;
  /** The session of the run, if the agent belongs to one. Default: the session that the caller named. */
  readonly sessionId?: string;
}

/** An agent that callers may start by its name, and that is made for each run. */
export interface ServedAgent {
  readonly name: string;
  readonly description?: string;
  /** Name of the model, `provider/id`. */
  readonly model?: string;
  readonly tools?: readonly string[];
  /** What each run of the agent may spend at most. If absent, callers are not told. */
  readonly maxCostUsd?: number;
  start(request: StartRequest): MaybePromise<StartedAgent>;
  /**
   * Replaces a text of a caller before the agent receives it, such as `/name arguments` by a prompt template. Throws
   * `not_found` for a name that does not exist. If absent, texts stay as they are.
   */
  expand?(text: string, session: { readonly sessionId?: string }): MaybePromise<string>;
}

/** An agent as `GET /api/agents` shows it. */
export interface AgentInfo {
  readonly name: string;
  readonly description: string | null;
  readonly model: string | null;
  readonly tools: readonly string[];
  readonly subAgents: readonly string[];
  /** The agent's own allowance for a run. A submission can only lower it. `null`: none, or not known before the start. */
  readonly maxCostUsd: number | null;
}

interface Entry extends Pick<ServedAgent, "start" | "expand"> {
  readonly info: AgentInfo;
  /** Whether `start` makes an agent for each run, such as one with the session as its key. */
  readonly makesAgents: boolean;
}

/** The agents that callers of a server may start. */
export class ServedAgents {
  readonly #agents = new Map<string, Entry>();

  constructor(agents: readonly (HostedAgent | ServedAgent)[]) {
    for (const agent of agents) {
      const info = "id" in agent ? hostedInfo(agent) : servedInfo(agent);
      if (this.#agents.has(info.name))
        throw new Fault(
          "already_exists",
          `two agents of the server have the name ${info.name}; rename one of them`,
        );
      const start: ServedAgent["start"] =
        "id" in agent ? () => ({ agent }) : (request) => agent.start(request);
      const expand = "id" in agent ? undefined : agent.expand?.bind(agent);
      const makesAgents = !("id" in agent);
      this.#agents.set(info.name, { info, start, makesAgents, ...(expand !== undefined && { expand }) });
    }
  }

  get list(): readonly AgentInfo[] {
    return [...this.#agents.values()].map(({ info }) => info);
  }

  find(name: string): AgentInfo {
    return this.#find(name).info;
  }

  async start(name: string, request: StartRequest): Promise<StartedAgent> {
    return this.#find(name).start(request);
  }

  /**
   * Returns an input as the agent receives it: its text, or the first of its parts if that is a text, is expanded. An agent
   * that is not hosted here expands nothing.
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

  /**
   * Returns the agent of a name, or the one that made the agent with this id: runs and sessions show the ids of made agents,
   * and a caller who continues a session sends such an id.
   */
  #lookUp(name: string): Entry | undefined {
    const maker = this.#agents.get(name.split("/", 1)[0] ?? "");
    return this.#agents.get(name) ?? (maker?.makesAgents === true ? maker : undefined);
  }

  #find(name: string): Entry {
    const found = this.#lookUp(name);
    if (found !== undefined) return found;
    const names = [...this.#agents.keys()];
    const nearest = nearestName(name, names);
    const advice =
      nearest !== undefined
        ? `use ${nearest}`
        : names.length > 0
          ? `expected one of ${names.join(", ")}`
          : "this server hosts no agents";
    throw new Fault("not_found", `agent ${JSON.stringify(name)} is not hosted here: ${advice}`, {
      details: { agent: name },
    });
  }
}

function hostedInfo({ id, models, tools = [], subAgents = [], budget, ...agent }: HostedAgent): AgentInfo {
  const main = models?.["main"];
  const description: unknown = "description" in agent ? agent.description : undefined;
  return {
    name: id,
    description: typeof description === "string" ? description : null,
    model: main === undefined ? null : `${main.provider}/${main.modelId}`,
    tools: tools.map(({ name }) => name),
    subAgents: subAgents.map((each) => parseAgentId(each.id).name),
    maxCostUsd: budget?.maxCostUsd ?? null,
  };
}

function servedInfo({ name, description, model, tools = [], maxCostUsd }: ServedAgent): AgentInfo {
  return {
    name,
    description: description ?? null,
    model: model ?? null,
    tools,
    subAgents: [],
    maxCostUsd: maxCostUsd ?? null,
  };
}
