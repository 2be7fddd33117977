export { scopes, type Access, type Scope } from "./access/access.ts";
export { storedTokens, type TokenInfo, type TokenOptions, type Tokens } from "./access/tokens.ts";
export * from "../channels/index.ts";
export { hostsOf, isLoopback, listen, type Listening, type ListenOptions } from "./listen.ts";
export type { ErrorFormat, Problem } from "./problem.ts";
export {
  reply,
  route,
  type Reply,
  type Route,
  type RouteRequest,
  type RouteResponse,
  type RouteResult,
} from "./route.ts";
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
} from "./schema/schema.ts";
export type { McpMountOptions } from "../protocols/mcp/mcp-mount.ts";
export type { AgentInfo, ServedAgent, StartedAgent, StartRequest } from "./served-agents.ts";
export { createServer, type Server, type ServerLimits, type ServerOptions } from "./server.ts";
