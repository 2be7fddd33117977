import {
  loadMcpExport,
  McpServers,
  type McpExport,
  type McpServerOptions as GivenServerOptions,
  type McpServersOptions as GivenOptions,
  type ServerConfigs,
} from "../capabilities/mcp/index.ts";
import { openRuntime } from "./open-runtime.ts";
import type { Runtime } from "../kernel/index.ts";
import { systemClock } from "../runtime/index.ts";

export { McpServers } from "../capabilities/mcp/index.ts";
export type {
  Backoff,
  HostCaller,
  HttpAuth,
  HttpOptions,
  HttpServerConfig,
  McpExport,
  OfferedAgent,
  OnQuestion,
  RequestSource,
  ServerConfig,
  ServerConfigs,
  StdioServerConfig,
  StdioServing,
  Variables,
} from "../capabilities/mcp/index.ts";

/** Options of `mcpServers`. Default: the system's clock and environment. */
export type McpServersOptions = Partial<GivenOptions>;

/**
 * Connects to the MCP servers of a configuration in the usual form: `{ name: { command, args, env } }` or `{ name: {
 * url, headers } }`.
 *
 * @example
 *
 * ```ts
 * import { Agent } from "reeve";
 * import { mcpServers } from "reeve/mcp";
 *
 * const servers = mcpServers({ files: { command: "mcp-files", args: ["--root", "."] } });
 * const agent = new Agent({
 *   name: "librarian",
 *   model: "anthropic/claude-sonnet-5",
 *   tools: await servers.tools(),
 * });
 * // ...
 * await servers.close();
 * ```
 */
export function mcpServers(
  configs: ServerConfigs | { readonly mcpServers: ServerConfigs },
  options: McpServersOptions = {},
): McpServers {
  return new McpServers(configs, { clock: systemClock, env: process.env, ...options });
}

/** Options of `mcpServer`. */
export interface McpServerOptions extends Omit<
  GivenServerOptions,
  "clock" | "release" | "runtime" | "toolAgent"
> {
  /** The runtime in which each call is executed as a run. Default: a runtime in memory that deletes ended runs. */
  readonly runtime?: Runtime;
}

/**
 * Time for which the default runtime keeps ended runs. They are in memory, so memory would otherwise grow with
 * every call. Milliseconds.
 */
const keptMs = 60_000;

/**
 * Offers tools and agents to MCP hosts over stdio or HTTP. Throws `dependency_missing` if the optional package
 * `@modelcontextprotocol/server` is not installed.
 */
export async function mcpServer({ runtime, ...options }: McpServerOptions): Promise<McpExport> {
  const Export = await loadMcpExport();
  const clock = systemClock;
  if (runtime !== undefined) return new Export({ ...options, runtime, clock });
  const own = await openRuntime({ keepEndedRunsMs: keptMs });
  try {
    return new Export({ ...options, runtime: own, clock, release: () => own.close() });
  } catch (error) {
    await own.close();
    throw error;
  }
}
