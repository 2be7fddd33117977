export type { Backoff, OnQuestion } from "./connection.ts";
export { McpServers, type McpServersOptions } from "./mcp-servers.ts";
export type {
  HttpAuth,
  HttpServerConfig,
  ServerConfig,
  ServerConfigs,
  StdioServerConfig,
} from "./server-config.ts";
export type { Variables } from "./variable-text.ts";
export type { HttpOptions, RequestSource } from "./http-endpoint.ts";
export type { McpExport, McpServerOptions, StdioServing } from "./mcp-server.ts";
export { loadMcpExport } from "./load-mcp-export.ts";
export { toolAgent, type HostCaller, type OfferedAgent } from "./served-offer.ts";
