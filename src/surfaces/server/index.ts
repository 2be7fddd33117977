export { scopes, type Access, type Scope } from "../http/access/access.ts";
export { storedTokens, type TokenInfo, type TokenOptions, type Tokens } from "../http/access/tokens.ts";
export * from "../channels/index.ts";
export { listen, type Listening, type ListenOptions } from "./listen.ts";
export { pageFolder } from "./page-files.ts";
export type { ErrorFormat, Problem } from "../http/problem.ts";
export {
  reply,
  route,
  type Reply,
  type Route,
  type RouteRequest,
  type RouteResponse,
  type RouteResult,
} from "../http/route.ts";
export {
  anyJson,
  anyObject,
  choice,
  flag,
  integer,
  list,
  named,
  nullable,
  number,
  object,
  optional,
  schemaOf,
  text,
  type Schema,
} from "../http/schema/schema.ts";
export type { McpMountOptions } from "../protocols/mcp/mcp-mount.ts";
export type {
  AgentInfo,
  PromptFile,
  PromptText,
  ServedAgent,
  StartedAgent,
  StartRequest,
} from "../http/served-agents.ts";
export { createServer, type Server, type ServerLimits, type ServerOptions } from "./server.ts";
