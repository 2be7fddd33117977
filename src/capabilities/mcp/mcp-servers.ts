import { hash } from "node:crypto";
import type {
  Prompt,
  Resource,
  ResourceTemplateType,
  Tool as ListedTool,
} from "@modelcontextprotocol/client";
import {
  assistantMessage,
  Fault,
  userMessage,
  type ChatMessage,
  type Clock,
  type JsonObject,
  type Tool,
  type UserPart,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";
import { Connection, type Backoff, type OnQuestion } from "./connection.ts";
import { remoteParts, resourcePart } from "./remote-result.ts";
import { remoteTool } from "./remote-tool.ts";
import { resourceTools } from "./resource-tools.ts";
import { readConfig, type ServerConfigs } from "./server-config.ts";
import type { Variables } from "./variable-text.ts";

/** Server of a tool, and the server's own name for the tool. */
interface RemoteName {
  readonly server: string;
  readonly tool: string;
}

/** Maximum length of a tool name that every provider accepts. */
const maxLength = 64;

/**
 * Returns the names by which the model calls the tools, in the same order: `mcp__<server>__<tool>`. Characters that
 * providers do not accept become `_`, and a name of more than 64 characters is cut and ends with a hash. The tools
 * must differ from each other; their names then differ too.
 */
export function toolNames(tools: readonly RemoteName[]): readonly string[] {
  const named = new Map<RemoteName, string>();
  const taken = new Set<string>();
  for (const remote of inOrder(tools)) {
    const name = freeName(remote, taken);
    taken.add(name);
    named.set(remote, name);
  }
  return tools.map((remote) => named.get(remote) ?? "");
}

/**
 * Returns the tools in the order in which they choose their names. A name that needs no change is chosen before
 * names that are derived from others, so that a tool cannot take the name of another one. The order of the input
 * does not matter.
 */
function inOrder(tools: readonly RemoteName[]): readonly RemoteName[] {
  const key = (remote: RemoteName): string =>
    JSON.stringify([fitted(remote) === fullName(remote) ? 0 : 1, remote.server, remote.tool]);
  return tools.toSorted((one, other) => (key(one) < key(other) ? -1 : 1));
}

function freeName(remote: RemoteName, taken: ReadonlySet<string>): string {
  const first = fitted(remote);
  for (let attempt = 0, name = first; ; attempt++, name = marked(first, remote, attempt))
    if (!taken.has(name)) return name;
}

/** Returns the name that the tool would have if it were the only one. */
function fitted(remote: RemoteName): string {
  const name = fullName(remote).replaceAll(/[^A-Za-z0-9_-]/gu, "_");
  return name.length <= maxLength ? name : marked(name, remote, 0);
}

function fullName({ server, tool }: RemoteName): string {
  return `mcp__${server}__${tool}`;
}

/** Returns the name with a hash of server, tool and attempt at its end, within the maximum length. */
function marked(name: string, { server, tool }: RemoteName, attempt: number): string {
  const mark = `_${hash("sha256", JSON.stringify([server, tool, attempt]), "hex").slice(0, 8)}`;
  return name.slice(0, maxLength - mark.length) + mark;
}

/** Options of `McpServers`. */
export interface McpServersOptions {
  /** Clock of the timeouts and delays. */
  readonly clock: Clock;
  /** Variables for `${NAME}` in the configuration. */
  readonly env: Variables;
  /** How starts of servers are retried. */
  readonly backoff?: Backoff;
  /** Name under which this client introduces itself to servers. Default: `reeve`. */
  readonly name?: string;
  /** Version under which this client introduces itself to servers. Default: `0.0.0`. */
  readonly version?: string;
  /** Answers questions that a server asks a person outside a run. If absent, such questions are cancelled. */
  readonly onQuestion?: OnQuestion;
  /**
   * Receives problems that do not stop an operation: an optional server that did not start, a list of tools that
   * could not be read again, a tool that cannot be offered, or a session that the server did not end.
   */
  readonly onWarning?: (warning: Fault) => void;
  /** Called with the name of a server before each of its starts. If it throws, the server is not started. */
  readonly beforeStart?: (server: string) => Promise<void>;
}

/** An item together with the name of its server. */
type FromServer<Item> = Item & { readonly server: string };

/** Tools that one server offers. */
interface Offer {
  readonly connection: Connection;
  readonly listed: readonly ListedTool[];
}

const readTable = optionTable({ signal: is.any } satisfies OptionKinds<{ readonly signal?: AbortSignal }>);

const knownOptions = optionTable({
  clock: is.any,
  env: is.any,
  backoff: is.any,
  name: is.text(),
  version: is.text(),
  onQuestion: is.any,
  onWarning: is.callback(),
  beforeStart: is.callback(),
} satisfies OptionKinds<McpServersOptions>);

/**
 * The MCP servers of a configuration. A server is started when one of its tools or other parts is first used. It
 * runs until `close()`, independent of the runs that call it. `mcpServers()` of `reeve/mcp` creates one with the
 * clock and environment of this process.
 *
 * @example
 * ```ts
 * import { Agent } from "reeve";
 * import { mcpServers } from "reeve/mcp";
 *
 * const servers = mcpServers({
 *   files: { command: "npx", args: ["-y", "@modelcontextprotocol/server-filesystem", "./workspace"] },
 * });
 * const agent = new Agent({
 *   name: "librarian",
 *   model: "anthropic/claude-sonnet-5",
 *   tools: await servers.tools(),
 * });
 * await agent.invoke("Which files are there?");
 * await servers.close();
 * ```
 */
export class McpServers {
  readonly #connections: ReadonlyMap<string, Connection>;
  readonly #options: McpServersOptions;
  readonly #offers = new Map<string, Offer>();
  readonly #tools: Tool<JsonObject>[] = [];
  readonly #watchers = new Set<() => void>();
  /**
   * The current read of tool lists. Lists are read one after the other, so that the newest list of a server is
   * used.
   */
  #reading: Promise<void> = Promise.resolve();
  #listed = false;

  constructor(configs: ServerConfigs | { readonly mcpServers: ServerConfigs }, options: McpServersOptions) {
    knownOptions.read("mcpServers()", options);
    this.#options = options;
    const servers = isWrapped(configs) ? configs.mcpServers : configs;
    const { clock, env, backoff = {}, name: client = "reeve", version = "0.0.0" } = options;
    const { onQuestion, beforeStart } = options;
    this.#connections = new Map(
      [...readConfig(servers, env)].map(([name, config]) => [
        name,
        new Connection({
          name,
          config,
          clock,
          backoff,
          clientInfo: { name: client, version },
          onToolsChanged: () => this.#changed(name),
          onWarning: (warning) => options.onWarning?.(warning),
          ...(onQuestion && { onQuestion }),
          ...(beforeStart && { beforeStart: () => beforeStart(name) }),
        }),
      ]),
    );
  }

  /** Names of the servers, as configured. */
  get names(): readonly string[] {
    return [...this.#connections.keys()];
  }

  /** Returns the process id of a server's program, or `null` if it is not running. */
  pid(server: string): number | null {
    return this.#find(server).pid;
  }

  /**
   * Returns the tools of all servers, and starts the servers for that. The order is that of the configuration, and by
   * name within a server. Every call returns the same array: when a server reports changed tools, the array is updated
   * in place, and agents use the new tools from their next invocation.
   */
  async tools(): Promise<readonly Tool<JsonObject>[]> {
    if (!this.#listed) {
      await this.#inTurn(async () => {
        if (this.#listed) return;
        await Promise.all([...this.#connections.keys()].map((name) => this.#read(name, true)));
        this.#listed = true;
        this.#publish();
      });
    }
    return this.#tools;
  }

  /** Returns tools with which a model can list and read the resources of the servers. */
  resourceTools(): readonly Tool[] {
    return resourceTools(this);
  }

  /** Calls `watch` when the list of tools has changed. Returns a function that unsubscribes. */
  onToolsChanged(watch: () => void): () => void {
    this.#watchers.add(watch);
    return () => this.#watchers.delete(watch);
  }

  /** Returns the resources of one server, or of all servers that have resources. */
  resources(server?: string): Promise<readonly FromServer<Resource>[]> {
    return this.#gather(server, "resources", async (connection) => {
      const { resources } = await connection.call("its resources", (client, options) =>
        client.listResources({}, options),
      );
      return resources;
    });
  }

  /** Returns the resource templates of one server, or of all servers that have resources. */
  resourceTemplates(server?: string): Promise<readonly FromServer<ResourceTemplateType>[]> {
    return this.#gather(server, "resources", async (connection) => {
      const { resourceTemplates } = await connection.call("its resource templates", (client, options) =>
        client.listResourceTemplates({}, options),
      );
      return resourceTemplates;
    });
  }

  /** Reads a resource and returns its content as message parts. */
  async readResource(
    server: string,
    uri: string,
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<readonly UserPart[]> {
    const { signal } = readTable.read("readResource()", options);
    const { contents } = await this.#find(server).call(
      `resource ${uri}`,
      (client, limits) => client.readResource({ uri }, limits),
      { ...(signal && { signal }) },
    );
    return contents.map(resourcePart);
  }

  /** Returns the prompts of one server, or of all servers that have prompts. */
  prompts(server?: string): Promise<readonly FromServer<Prompt>[]> {
    return this.#gather(server, "prompts", async (connection) => {
      const { prompts } = await connection.call("its prompts", (client, options) =>
        client.listPrompts({}, options),
      );
      return prompts;
    });
  }

  /** Returns a prompt with its values filled in, as messages to start a conversation with. */
  async prompt(
    server: string,
    name: string,
    values: Readonly<Record<string, string>> = {},
  ): Promise<readonly ChatMessage[]> {
    const { messages } = await this.#find(server).call(`prompt ${name}`, (client, options) =>
      client.getPrompt({ name, arguments: { ...values } }, options),
    );
    return messages.map(({ role, content }) => {
      const parts = remoteParts(content);
      if (role === "user") return userMessage(parts);
      return assistantMessage(parts.filter((part) => part.type !== "image"));
    });
  }

  /**
   * Ends every program and session. If a server no longer exists, this is not an error. Rejects with the first
   * error after all have ended.
   */
  async close(): Promise<void> {
    const ends = await Promise.allSettled(
      [...this.#connections.values()].map((connection) => connection.close()),
    );
    const [failed] = ends.filter((end) => end.status === "rejected");
    if (failed !== undefined) throw Fault.from(failed.reason);
  }

  /** Calls `close` at the end of the block that declares the servers with `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #find(server: string): Connection {
    const connection = this.#connections.get(server);
    if (connection !== undefined) return connection;
    throw new Fault(
      "not_found",
      `there is no MCP server named ${server}; configured: ${this.names.join(", ") || "none"}`,
    );
  }

  async #gather<Item>(
    server: string | undefined,
    capability: "resources" | "prompts",
    list: (connection: Connection) => Promise<readonly Item[]>,
  ): Promise<readonly FromServer<Item>[]> {
    const asked = server === undefined ? [...this.#connections.values()] : [this.#find(server)];
    const found = await Promise.all(
      asked.map(async (connection) => {
        const client = await this.#tolerating(connection, () => connection.client());
        if (client?.getServerCapabilities()?.[capability] === undefined) return [];
        const items = await list(connection);
        return items.map((item) => ({ ...item, server: connection.name }));
      }),
    );
    return found.flat();
  }

  /** Runs `work`. If the server is optional, an error becomes a warning. */
  async #tolerating<Value>(connection: Connection, work: () => Promise<Value>): Promise<Value | undefined> {
    try {
      return await work();
    } catch (error) {
      if (connection.config.optional !== true) throw error;
      this.#options.onWarning?.(Fault.from(error));
      return undefined;
    }
  }

  async #read(name: string, mustWork: boolean): Promise<void> {
    const connection = this.#find(name);
    try {
      const { tools } = await connection.call("its tools", (client, options) =>
        client.listTools({}, { ...options, cacheMode: "refresh" }),
      );
      const { tools: wanted } = connection.config;
      const offered = wanted === undefined ? tools : tools.filter((tool) => wanted.includes(tool.name));
      const listed = this.#distinct(name, offered);
      this.#offers.set(name, { connection, listed: listed.toSorted((a, b) => (a.name < b.name ? -1 : 1)) });
    } catch (error) {
      if (mustWork && connection.config.optional !== true) throw error;
      this.#options.onWarning?.(Fault.from(error));
    }
  }

  /** Returns the tools whose names do not collide. Emits a warning for each tool that is left out. */
  #distinct(server: string, tools: readonly ListedTool[]): readonly ListedTool[] {
    const seen = new Set<string>();
    return tools.filter(({ name }) => {
      const problem = name === "" ? "without a name" : seen.has(name) ? `${name} more than once` : undefined;
      seen.add(name);
      if (problem !== undefined)
        this.#options.onWarning?.(
          new Fault("tool_failed", `MCP server ${server} lists a tool ${problem}: it is left out`),
        );
      return problem === undefined;
    });
  }

  /** Reads the tools of a server again after it reported a change. */
  #changed(name: string): void {
    if (!this.#listed) return;
    void this.#inTurn(async () => {
      await this.#read(name, false);
      this.#publish();
    });
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#reading.then(work);
    this.#reading = done.catch(() => undefined);
    return done;
  }

  #publish(): void {
    const offers = [...this.#connections.keys()].flatMap((name) => this.#offers.get(name) ?? []);
    const all = offers.flatMap(({ connection, listed }) => listed.map((tool) => ({ connection, tool })));
    const names = toolNames(
      all.map(({ connection, tool }) => ({ server: connection.name, tool: tool.name })),
    );
    const tools = all.map(({ connection, tool }, at) => remoteTool(names[at] ?? tool.name, connection, tool));
    this.#tools.splice(0, this.#tools.length, ...tools);
    for (const watch of this.#watchers) watch();
  }
}

function isWrapped(
  configs: ServerConfigs | { readonly mcpServers: ServerConfigs },
): configs is { readonly mcpServers: ServerConfigs } {
  const { mcpServers } = configs as { readonly mcpServers?: unknown };
  return (
    typeof mcpServers === "object" &&
    mcpServers !== null &&
    !("command" in mcpServers) &&
    !("url" in mcpServers)
  );
}
