import {
  McpServers,
  type McpServersOptions as GivenOptions,
  type ServerConfigs,
} from "./capabilities/mcp/index.ts";
import { systemClock } from "./runtime/index.ts";

export { McpServers } from "./capabilities/mcp/index.ts";
export type {
  Backoff,
  HttpAuth,
  HttpServerConfig,
  OnQuestion,
  ServerConfig,
  ServerConfigs,
  StdioServerConfig,
  Variables,
} from "./capabilities/mcp/index.ts";

/** The machine's clock and environment unless told. */
export type McpServersOptions = Partial<GivenOptions>;

/** The MCP servers of a configuration, as other hosts write it: `{ name: { command, args, env } }` or `{ name: { url, headers } }`. */
export function mcpServers(
  configs: ServerConfigs | { readonly mcpServers: ServerConfigs },
  options: McpServersOptions = {},
): McpServers {
  return new McpServers(configs, { clock: systemClock, env: process.env, ...options });
}
