import type { AuthProvider, FetchLike, OAuthClientProvider } from "@modelcontextprotocol/client";
import {
  describeValue,
  Fault,
  is,
  optionTable,
  type OptionKinds,
  requireNamed,
  type ToolRisk,
} from "../../kernel/index.ts";
import { VariableText, type Variables } from "./variable-text.ts";

/** Settings of every kind of server. */
interface AnyServer {
  /** Whether to ignore the server. Default: `false`. */
  readonly disabled?: boolean;
  /**
   * Whether the server may be missing. If `true` and the server does not start, `onWarning` is called and its tools
   * are left out. If `false`, a server that does not start throws. Default: `false`.
   */
  readonly optional?: boolean;
  /** Names of the tools to offer. Default: all tools of the server. */
  readonly tools?: readonly string[];
  /** Risk by tool name. It takes precedence over the annotations of the server. */
  readonly risk?: Readonly<Record<string, ToolRisk>>;
  /**
   * Whether to believe the server's annotations of its tools, such as `readOnlyHint`. If `false`, all its tools count as
   * risky and destructive. Default: `false`.
   */
  readonly trustAnnotations?: boolean;
  /**
   * Maximum time without a result or progress of a call, in milliseconds. The time in which a person is asked does
   * not count. Default: 60_000.
   */
  readonly timeoutMs?: number;
  /**
   * Maximum duration of a call, in milliseconds. Progress does not extend it. The time in which a person is asked
   * does not count. Default: 600_000.
   */
  readonly totalTimeoutMs?: number;
  /** Maximum duration of a start, in milliseconds. Default: 30_000. */
  readonly startTimeoutMs?: number;
  /**
   * Maximum size of one message of the server, in bytes. A longer one ends the call with an error. Default: 16 MiB.
   */
  readonly maxMessageBytes?: number;
  /**
   * Protocol revision. `initialize` uses the handshake of the revisions up to 2025-11-25. `auto` tries 2026-07-28
   * first, which costs a stdio server a second start. With a revision, only that one is used. Default:
   * `initialize`.
   */
  readonly protocol?: "initialize" | "auto" | "2026-07-28";
}

/** A server that is a program, connected through its standard input and output. */
export interface StdioServerConfig extends AnyServer {
  /** Kind of the server. Default: `stdio` if `command` is set. */
  readonly type?: "stdio";
  /** Program to start. */
  readonly command: string;
  /** Arguments of the program. */
  readonly args?: readonly string[];
  /**
   * Environment variables of the program, in addition to the few that any program needs (PATH, HOME). Other variables
   * of this process are not passed.
   */
  readonly env?: Readonly<Record<string, string>>;
  /** Working directory of the program. */
  readonly cwd?: string;
}

/** Authentication of the client, with a provider of the MCP package. */
export interface HttpAuth {
  /** Provider that holds or obtains the client's tokens. */
  readonly provider: OAuthClientProvider | AuthProvider;
  /**
   * Resolves with the parameters of the callback URL after `redirectToAuthorization`. If absent, a server that
   * requires a sign-in throws.
   */
  readonly callback?: () => Promise<URLSearchParams>;
  /**
   * Whether to accept servers whose metadata name another issuer than their own address (RFC 8414, 3.3). This is
   * weaker: a false sign-in page may be shown. Default: `false`.
   */
  readonly skipIssuerCheck?: boolean;
}

/** A server that is reached by streamable HTTP. */
export interface HttpServerConfig extends AnyServer {
  /** Kind of the server, in any spelling that other hosts use. Default: `http` if `url` is set. */
  readonly type?: "http" | "streamable-http" | "streamableHttp";
  /** Address of the server. */
  readonly url: string;
  /** HTTP headers of every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Authentication of the client. */
  readonly auth?: HttpAuth;
  /** Function that sends the requests. Default: the global `fetch`. */
  readonly fetch?: FetchLike;
}

/** Configuration of one server. */
export type ServerConfig = StdioServerConfig | HttpServerConfig;
/** Configurations by server name. */
export type ServerConfigs = Readonly<Record<string, ServerConfig>>;

const limit = is.number({ above: 0, finite: true });
const commonKinds = {
  disabled: is.boolean(),
  optional: is.boolean(),
  tools: is.any,
  risk: is.any,
  trustAnnotations: is.any,
  timeoutMs: limit,
  totalTimeoutMs: limit,
  startTimeoutMs: limit,
  maxMessageBytes: limit,
  protocol: is.choice(["initialize", "auto", "2026-07-28"]),
} as const;

const stdioTable = optionTable({
  ...commonKinds,
  type: is.any,
  command: is.any,
  args: is.any,
  env: is.any,
  cwd: is.any,
} satisfies OptionKinds<StdioServerConfig>);

const httpTable = optionTable({
  ...commonKinds,
  type: is.any,
  url: is.any,
  headers: is.any,
  auth: is.any,
  fetch: is.any,
} satisfies OptionKinds<HttpServerConfig>);

/**
 * Keys of other hosts that Reeve ignores, so that several hosts can use the same file. They describe a server, or
 * approve calls in advance, which in Reeve only `permissions` can do. A key that limits a server, such as
 * `disabledTools`, throws, because it would have no effect.
 */
const ignoredKeys: ReadonlySet<string> = new Set([
  "$comment",
  "alwaysAllow",
  "alwaysLoad",
  "autoApprove",
  "description",
  "dev",
  "displayName",
  "gallery",
  "icon",
  "name",
  "trust",
  "version",
  "watchPaths",
]);

/**
 * Names that every provider accepts as a part of a tool name. They contain no `__` and do not end with `_`. So the
 * prefix `mcp__<server>__` belongs to exactly one server, so that a rule for one server matches no tool of another.
 */
const serverName = /^(?!.*__)[A-Za-z_](?:[A-Za-z0-9_-]{0,30}[A-Za-z0-9-])?$/;

/**
 * Returns the enabled servers with their variables filled in. Throws a fault that names the server if its configuration
 * is invalid.
 */
export function readConfig(configs: ServerConfigs, variables: Variables): ReadonlyMap<string, ServerConfig> {
  requireNamed(
    "configuration of mcpServers()",
    configs,
    "servers",
    "mcpServers({ files: { command, args } })",
  );
  const read = new Map<string, ServerConfig>();
  for (const [name, config] of Object.entries(configs)) {
    if (!serverName.test(name)) {
      throw new Fault(
        "invalid_argument",
        `invalid name of an MCP server ${JSON.stringify(name)}: expected 1 to 32 letters, digits, _ or -, starting with a letter or _, without __ and without _ at the end`,
      );
    }
    if (typeof config !== "object" || config === null)
      throw new Fault(
        "invalid_argument",
        `invalid configuration of MCP server ${name}: expected an object with a command or a url, not ${describeValue(config)}; servers are listed by name: mcpServers({ files: { command, args } })`,
      );
    if (config.disabled !== true) read.set(name, readServer(name, config, variables));
  }
  return read;
}

function readServer(name: string, written: ServerConfig, variables: Variables): ServerConfig {
  const config = ownKeys(written);
  const text = new VariableText(name, variables);
  const expanded = isStdio(config) ? readStdio(name, config, text) : readHttp(name, config, text);
  text.assertComplete();
  (isStdio(config) ? stdioTable : httpTable).read(`MCP server ${name}`, config);
  if (!isStdio(expanded)) requireAddress(name, expanded.url);
  return expanded;
}

/** Returns a configuration without ignored keys and without keys whose value is `undefined`. */
function ownKeys(config: ServerConfig): ServerConfig {
  const entries = Object.entries(config).filter(
    ([key, value]) => value !== undefined && !ignoredKeys.has(key),
  );
  return Object.fromEntries(entries) as unknown as ServerConfig;
}

/** Whether the server is a program. */
export function isStdio(config: ServerConfig): config is StdioServerConfig {
  return "command" in config;
}

function readStdio(name: string, config: StdioServerConfig, text: VariableText): StdioServerConfig {
  if ("url" in config) throw refused(name, "it has both a command and a url; remove one of them");
  if ((config.type ?? "stdio") !== "stdio")
    throw refused(name, `a server with a command has the type stdio, not ${config.type}`);
  const { command, args = [], env = {}, cwd } = config;
  return {
    ...config,
    command: text.expand(command),
    args: text.expandAll(args),
    env: text.expandValues(env),
    ...(cwd !== undefined && { cwd: text.expand(cwd) }),
  };
}

function readHttp(name: string, config: HttpServerConfig, text: VariableText): HttpServerConfig {
  if (typeof config.url !== "string")
    throw refused(name, `it has neither a command nor a url; add one of them${insteadOf(config)}`);
  if ((config.type as string | undefined) === "sse")
    throw refused(name, "the old SSE transport is not supported; use the server's streamable HTTP address");
  return { ...config, url: text.expand(config.url), headers: text.expandValues(config.headers ?? {}) };
}

/** Returns which key to use in place of a wrong key for the command or the address. Empty if there is no such key. */
function insteadOf(config: ServerConfig): string {
  const key = Object.keys(config).find((each) => Object.hasOwn(foreignKeys, each));
  return key === undefined ? "" : `: use ${foreignKeys[key]} in place of ${key}`;
}

const foreignKeys: Readonly<Record<string, string>> = {
  cmd: "command",
  program: "command",
  executable: "command",
  uri: "url",
  serverUrl: "url",
  endpoint: "url",
  baseUrl: "url",
};

function requireAddress(name: string, url: string): void {
  const { protocol } = URL.parse(url) ?? {};
  if (protocol === "http:" || protocol === "https:") return;
  throw refused(name, `${JSON.stringify(url)} is not a URL that starts with http:// or https://`);
}

function refused(name: string, problem: string): Fault {
  return new Fault("invalid_argument", `invalid configuration of MCP server ${name}: ${problem}`);
}
