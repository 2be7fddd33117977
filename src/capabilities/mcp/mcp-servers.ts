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
} from "../../kernel/index.ts";
import { Connection, type Backoff, type OnQuestion } from "./connection.ts";
import { remoteParts, resourcePart } from "./remote-result.ts";
import { remoteTool } from "./remote-tool.ts";
import { resourceTools } from "./resource-tools.ts";
import { readConfig, type ServerConfigs } from "./server-config.ts";
import { toolNames } from "./tool-name.ts";
import type { Variables } from "./variable-text.ts";

export interface McpServersOptions {
  readonly clock: Clock;
  /** Where `${NAME}` in the configuration is looked up. */
  readonly env: Variables;
  readonly backoff?: Backoff;
  /** Who we are to servers. */
  readonly name?: string;
  readonly version?: string;
  /** Answers what a server asks a person outside a run. Absent: nobody does, and it is told so. */
  readonly onQuestion?: OnQuestion;
  /** What went wrong and stops nothing: a server that may be missing, a list that could not be read again. */
  readonly onWarning?: (warning: Fault) => void;
}

/** Of one server. */
type Of<Item> = Item & { readonly server: string };

interface Offer {
  readonly connection: Connection;
  readonly listed: readonly ListedTool[];
}

/**
 * The MCP servers of a configuration. None is started before something of it is wanted. `close` ends the programs; until then they run,
 * whatever becomes of the runs that called them.
 */
export class McpServers {
  readonly #connections: ReadonlyMap<string, Connection>;
  readonly #options: McpServersOptions;
  readonly #offers = new Map<string, Offer>();
  readonly #tools: Tool<JsonObject>[] = [];
  readonly #watchers = new Set<() => void>();
  /** Lists are read one after the other, so that the last word is the server's last. */
  #reading: Promise<void> = Promise.resolve();
  #listed = false;

  constructor(configs: ServerConfigs | { readonly mcpServers: ServerConfigs }, options: McpServersOptions) {
    this.#options = options;
    const servers = isWrapped(configs) ? configs.mcpServers : configs;
    const { clock, env, backoff = {}, name: client = "reeve", version = "0.0.0", onQuestion } = options;
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
          ...(onQuestion && { onQuestion }),
        }),
      ]),
    );
  }

  /** The servers' names, as configured. */
  get names(): readonly string[] {
    return [...this.#connections.keys()];
  }

  /** Of a server's program, while it runs. */
  pid(server: string): number | null {
    return this.#find(server).pid;
  }

  /**
   * The tools of all servers, which are started for it: in the order of the configuration, each server's by name. It is one list, always the
   * same: when a server says that its tools have changed, so does the list, and an agent that has it goes by it from its next turn.
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

  /** Tools with which a model can look at what servers have to read. */
  resourceTools(): readonly Tool[] {
    return resourceTools(this);
  }

  /** Called when the list of tools is another. Returns how to stop it. */
  onToolsChanged(watch: () => void): () => void {
    this.#watchers.add(watch);
    return () => this.#watchers.delete(watch);
  }

  /** What servers have to read; of all that have anything, unless one is named. */
  resources(server?: string): Promise<readonly Of<Resource>[]> {
    return this.#gather(server, "resources", async (connection) => {
      const { resources } = await connection.call("its resources", (client, options) =>
        client.listResources({}, options),
      );
      return resources;
    });
  }

  resourceTemplates(server?: string): Promise<readonly Of<ResourceTemplateType>[]> {
    return this.#gather(server, "resources", async (connection) => {
      const { resourceTemplates } = await connection.call("its resource templates", (client, options) =>
        client.listResourceTemplates({}, options),
      );
      return resourceTemplates;
    });
  }

  async readResource(
    server: string,
    uri: string,
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<readonly UserPart[]> {
    const { contents } = await this.#find(server).call(
      `resource ${uri}`,
      (client, options) => client.readResource({ uri }, options),
      { ...(signal && { signal }) },
    );
    return contents.map(resourcePart);
  }

  /** Texts that servers have ready; of all that have any, unless one is named. */
  prompts(server?: string): Promise<readonly Of<Prompt>[]> {
    return this.#gather(server, "prompts", async (connection) => {
      const { prompts } = await connection.call("its prompts", (client, options) =>
        client.listPrompts({}, options),
      );
      return prompts;
    });
  }

  /** A prompt, filled in, as messages to begin a conversation with. */
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

  /** Ends every program and session. What goes wrong there is thrown once all are ended. */
  async close(): Promise<void> {
    const ends = await Promise.allSettled(
      [...this.#connections.values()].map((connection) => connection.close()),
    );
    const [failed] = ends.filter((end) => end.status === "rejected");
    if (failed !== undefined) throw Fault.from(failed.reason);
  }

  #find(server: string): Connection {
    const connection = this.#connections.get(server);
    if (connection !== undefined) return connection;
    throw new Fault(
      "not_found",
      `there is no MCP server ${server}; there are: ${this.names.join(", ") || "none"}`,
    );
  }

  async #gather<Item>(
    server: string | undefined,
    capability: "resources" | "prompts",
    list: (connection: Connection) => Promise<readonly Item[]>,
  ): Promise<readonly Of<Item>[]> {
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

  /** Of a server that may be missing, what does not work is a warning. */
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
      this.#offers.set(name, { connection, listed: offered.toSorted((a, b) => (a.name < b.name ? -1 : 1)) });
    } catch (error) {
      if (mustWork && connection.config.optional !== true) throw error;
      this.#options.onWarning?.(Fault.from(error));
    }
  }

  /** A server said that its tools are others now. */
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
