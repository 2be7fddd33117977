import type { AuthProvider, FetchLike, OAuthClientProvider } from "@modelcontextprotocol/client";
import { Fault, type ToolRisk } from "../../kernel/index.ts";
import { VariableText, type Variables } from "./variable-text.ts";

interface AnyServer {
  /** Left out, as if it were not written. */
  readonly disabled?: boolean;
  /** One that does not start is told to `onWarning` and its tools are missing; otherwise it is a fault. */
  readonly optional?: boolean;
  /** The only tools of it that are offered, by the server's own names. */
  readonly tools?: readonly string[];
  /** What a tool's risk is, whatever its server says of it, by the server's own names. */
  readonly risk?: Readonly<Record<string, ToolRisk>>;
  /** `false`: what the server says of its tools is not believed, so all of them count as risky and destructive. */
  readonly trustAnnotations?: boolean;
  /** Without an answer and without progress for this long, a call is given up; 60,000 unless told. Not while a person is asked. */
  readonly timeoutMs?: number;
  /** 30,000 unless told. */
  readonly startTimeoutMs?: number;
  /**
   * `initialize`, unless told: the handshake of the revisions up to 2025-11-25, which servers answer to. `auto` asks for 2026-07-28
   * first, which costs a stdio server a second start. A revision: that one or none.
   */
  readonly protocol?: "initialize" | "auto" | "2026-07-28";
}

/** A program that is started and spoken to through its standard input and output. */
export interface StdioServerConfig extends AnyServer {
  readonly type?: "stdio";
  readonly command: string;
  readonly args?: readonly string[];
  /** Beside the few variables that any program needs (PATH, HOME). Nothing else of this process's environment is passed on. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** Who the client is to a server that wants to know: a provider of the MCP package. */
export interface HttpAuth {
  readonly provider: OAuthClientProvider | AuthProvider;
  /** What came back after `redirectToAuthorization`: the parameters of the callback. Absent: such a server is a fault. */
  readonly callback?: () => Promise<URLSearchParams>;
  /** For old servers whose metadata name another issuer than they are found at (RFC 8414, 3.3). Weaker: a wrong page may be shown. */
  readonly skipIssuerCheck?: boolean;
}

/** A server at an address, spoken to by streamable HTTP. */
export interface HttpServerConfig extends AnyServer {
  readonly type?: "http" | "streamable-http" | "streamableHttp";
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly auth?: HttpAuth;
  readonly fetch?: FetchLike;
}

export type ServerConfig = StdioServerConfig | HttpServerConfig;
export type ServerConfigs = Readonly<Record<string, ServerConfig>>;

/** What every provider takes in the name of a tool, since the server's may become part of it. */
const serverName = /^[A-Za-z_][A-Za-z0-9_-]{0,31}$/;

/** The servers that are to be had, with variables put in. What is wrong is told with the server's name. */
export function readConfig(configs: ServerConfigs, variables: Variables): ReadonlyMap<string, ServerConfig> {
  const read = new Map<string, ServerConfig>();
  for (const [name, config] of Object.entries(configs)) {
    if (!serverName.test(name)) {
      throw new Fault(
        "invalid_argument",
        `${JSON.stringify(name)} is not a name for an MCP server: it must be 1 to 32 letters, digits, and _ -, starting with a letter or _`,
      );
    }
    if (config.disabled !== true) read.set(name, readServer(name, config, variables));
  }
  return read;
}

function readServer(name: string, config: ServerConfig, variables: Variables): ServerConfig {
  const text = new VariableText(name, variables);
  const expanded = isStdio(config) ? readStdio(name, config, text) : readHttp(name, config, text);
  text.assertComplete();
  for (const key of ["timeoutMs", "startTimeoutMs"] as const) {
    const value = config[key];
    if (value !== undefined && !(Number.isFinite(value) && value > 0))
      throw refused(name, `${key} is ${value}: it must be above 0`);
  }
  if (!isStdio(expanded)) requireAddress(name, expanded.url);
  return expanded;
}

export function isStdio(config: ServerConfig): config is StdioServerConfig {
  return "command" in config;
}

function readStdio(name: string, config: StdioServerConfig, text: VariableText): StdioServerConfig {
  if ("url" in config) throw refused(name, "it has both a command and a url");
  if ((config.type ?? "stdio") !== "stdio")
    throw refused(name, `a command is of type stdio, not ${config.type}`);
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
  if (typeof config.url !== "string") throw refused(name, "it has neither a command nor a url");
  if ((config.type as string | undefined) === "sse")
    throw refused(name, "the old SSE transport is not spoken: give the server's streamable HTTP address");
  return { ...config, url: text.expand(config.url), headers: text.expandValues(config.headers ?? {}) };
}

function requireAddress(name: string, url: string): void {
  const { protocol } = URL.parse(url) ?? {};
  if (protocol === "http:" || protocol === "https:") return;
  throw refused(name, `${JSON.stringify(url)} is not an address: it must begin with http:// or https://`);
}

function refused(name: string, problem: string): Fault {
  return new Fault("invalid_argument", `the configuration of MCP server ${name} is wrong: ${problem}`);
}
