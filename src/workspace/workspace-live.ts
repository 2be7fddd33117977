import type { GatewayOptions } from "../capabilities/gateway/gateway-options.ts";
import type { Gateway } from "../capabilities/gateway/gateway.ts";
import type { McpServers, ServerConfigs } from "../capabilities/mcp/index.ts";
import type { EphemeralSource, Tool } from "../kernel/index.ts";
import type { LiveTools } from "./workspace-tools.ts";
import { VariableText } from "../capabilities/mcp/variable-text.ts";
import { readMcpFiles, type Settings, type SourceFile } from "./files/index.ts";

/**
 * Returns a function that replaces the variables in a text of a file with MCP servers. A variable without a value
 * is reported when the server starts.
 */
export function expander(env: Readonly<Record<string, string | undefined>>): (text: string) => string {
  const variables = new VariableText("of a project", env);
  return (text) => variables.expand(text);
}

/** Tools of a session that must be closed. */
type OpenTools = LiveTools & { close(): Promise<void> };

function liveTools(
  tools: readonly Tool[],
  session: EphemeralSource & Pick<OpenTools, "problem" | "close">,
): OpenTools {
  return {
    tools,
    ephemeral: session,
    problem: () => session.problem(),
    close: () => session.close(),
  };
}

/**
 * The MCP servers, the browser, the desktop and the gateway of a workspace. They continue over a reload, because
 * running invocations use them. Each is started when it is first used.
 */
export class LiveParts {
  readonly #beforeStart: () => Promise<void>;
  readonly #servers = new Map<string, Promise<McpServers>>();
  readonly #live = new Map<string, Promise<OpenTools>>();
  /** The open gateways of hired agents, by their options. */
  readonly #gateways = new Map<string, Promise<Gateway>>();

  /** `beforeStart` is called before each start of a server of the project. If it throws, the server is not started. */
  constructor(beforeStart: () => Promise<void>) {
    this.#beforeStart = beforeStart;
  }

  /** Returns the tools of the MCP servers of the files and of `more`. Equal configurations share their servers. */
  async remoteTools(
    files: readonly SourceFile[],
    env: Readonly<Record<string, string | undefined>>,
    more: ServerConfigs = {},
  ): Promise<readonly Tool[]> {
    const expand = expander(env);
    const ofProject = await readMcpFiles(
      files.filter(({ origin }) => origin === "project"),
      expand,
    );
    const configs = { ...(await readMcpFiles(files, expand)), ...more };
    const isOfProject = (name: string): boolean =>
      Object.hasOwn(ofProject, name) && !Object.hasOwn(more, name);
    if (Object.keys(configs).length === 0) return [];
    const servers = await this.#kept(this.#servers, JSON.stringify(configs), async () => {
      const { mcpServers } = await import("../assembly/mcp.ts");
      return mcpServers(configs as unknown as ServerConfigs, {
        env,
        beforeStart: async (name) => (isOfProject(name) ? this.#beforeStart() : undefined),
      });
    });
    return servers.tools();
  }

  browser({ browser = {} }: Settings): Promise<LiveTools> {
    return this.#kept(this.#live, `browser ${JSON.stringify(browser)}`, async () => {
      const { BrowserSession, browserTools } = await import("../capabilities/browser/index.ts");
      const session = new BrowserSession(browser);
      return liveTools(browserTools(session), session);
    });
  }

  desktop({ desktop = {} }: Settings): Promise<LiveTools> {
    return this.#kept(this.#live, `desktop ${JSON.stringify(desktop)}`, async () => {
      const { DesktopSession, desktopTools } = await import("../capabilities/desktop/index.ts");
      const session = new DesktopSession(desktop);
      return liveTools(desktopTools(session), session);
    });
  }

  /**
   * Returns the gateway of the hired agents. If a reload changed its options, agents from before the reload keep
   * the old gateway.
   */
  gateway(options: GatewayOptions): Promise<Gateway> {
    const key = JSON.stringify(options, (_name, value: unknown) =>
      typeof value === "function" ? String(value) : value,
    );
    return this.#kept(this.#gateways, key, async () => {
      const { openGateway } = await import("../capabilities/gateway/gateway.ts");
      return openGateway(options);
    });
  }

  /** Returns the value that is open under a key, or opens it. If opening fails, the next call tries again. */
  #kept<Value>(open: Map<string, Promise<Value>>, key: string, create: () => Promise<Value>): Promise<Value> {
    const known = open.get(key);
    if (known !== undefined) return known;
    const opening = create();
    open.set(key, opening);
    opening.catch(() => open.delete(key));
    return opening;
  }

  /** Stops everything that was started. */
  async close(): Promise<void> {
    const kept = [this.#servers, this.#live, this.#gateways];
    const open = kept.flatMap((each) => [...each.values()]);
    for (const each of kept) each.clear();
    await Promise.all(open.map(async (each) => (await each).close()));
  }
}
