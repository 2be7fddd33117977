import { randomUUID } from "node:crypto";
import {
  createMcpHandler,
  hostHeaderValidationResponse,
  isLegacyRequest,
  localhostAllowedHostnames,
  localhostAllowedOrigins,
  originValidationResponse,
  WebStandardStreamableHTTPServerTransport,
  type AuthInfo,
  type McpHttpHandler,
  type McpServer,
} from "@modelcontextprotocol/server";
import { Fault, type Clock } from "../../kernel/index.ts";
import { StreamEvents } from "./stream-events.ts";

/** Options of the HTTP endpoint. */
export interface HttpOptions {
  /**
   * Host names under which the endpoint may be addressed. This protects against DNS rebinding by web pages. Default:
   * the names of this machine.
   */
  readonly allowedHosts?: readonly string[];
  /** Host names of web pages that may call the endpoint. Default: those of this machine. */
  readonly allowedOrigins?: readonly string[];
  /**
   * Returns the identity of the caller, or a response that refuses the request; `requireBearerAuth` of the MCP package
   * is such a function. If absent, every caller that can reach the endpoint is accepted.
   */
  readonly authenticate?: (request: Request) => Promise<AuthInfo | Response>;
  /** Milliseconds without a request after which a session is dropped. Default: 3_600_000. */
  readonly sessionIdleMs?: number;
  /** Maximum number of sessions at the same time. Further ones are refused. Default: 1_000. */
  readonly maxSessions?: number;
  /** Milliseconds after which a host whose stream ended should reconnect. Default: 1_000. */
  readonly retryMs?: number;
}

interface EndpointOptions extends HttpOptions {
  readonly clock: Clock;
  readonly onWarning: (warning: Fault) => void;
  readonly userOf: (authInfo: AuthInfo) => string;
}

interface Session {
  readonly server: McpServer;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  /** User who opened the session. A request of another user with the same session id is refused. */
  readonly owner: string | undefined;
  usedAt: number;
}

/**
 * HTTP endpoint for hosts of all protocol revisions: sessions for revisions up to 2025-11-25, single exchanges for
 * 2026-07-28.
 */
export class HttpEndpoint {
  readonly #newServer: () => McpServer;
  readonly #options: EndpointOptions;
  readonly #exchanges: McpHttpHandler;
  readonly #sessions = new Map<string, Session>();

  constructor(newServer: () => McpServer, options: EndpointOptions) {
    this.#newServer = newServer;
    this.#options = options;
    this.#exchanges = createMcpHandler(newServer, {
      legacy: "reject",
      onerror: (error) => this.#warn(error),
    });
  }

  /** Answers one request. */
  async answer(request: Request): Promise<Response> {
    const { allowedHosts = localhostAllowedHostnames(), allowedOrigins = localhostAllowedOrigins() } =
      this.#options;
    const stranger =
      hostHeaderValidationResponse(request, [...allowedHosts]) ??
      originValidationResponse(request, [...allowedOrigins]);
    if (stranger !== undefined) return stranger;
    const found = await this.#options.authenticate?.(request);
    if (found instanceof Response) return found;
    if (!(await isLegacyRequest(request)))
      return this.#exchanges.fetch(request, { ...(found && { authInfo: found }) });
    return this.#inSession(request, found);
  }

  /** Closes all sessions. */
  async close(): Promise<void> {
    await this.#exchanges.close();
    const sessions = [...this.#sessions.values()];
    this.#sessions.clear();
    await Promise.all(sessions.map(({ server }) => server.close()));
  }

  async #inSession(request: Request, authInfo: AuthInfo | undefined): Promise<Response> {
    const { clock, maxSessions = 1_000, userOf } = this.#options;
    const user = authInfo && userOf(authInfo);
    const id = request.headers.get("mcp-session-id");
    const known = id === null ? undefined : this.#sessions.get(id);
    if (id !== null && (known === undefined || known.owner !== user))
      return problem(404, "Session not found");
    if (known !== undefined) {
      known.usedAt = clock.now();
      return known.transport.handleRequest(request, { ...(authInfo && { authInfo }) });
    }
    await this.#forgetIdle();
    if (this.#sessions.size >= maxSessions) return problem(503, "Too many sessions");
    return this.#begin(request, authInfo);
  }

  /** Starts a session. The transport itself refuses a request that does not start one; then no session is kept. */
  async #begin(request: Request, authInfo: AuthInfo | undefined): Promise<Response> {
    const { clock, retryMs = 1_000, userOf } = this.#options;
    const owner = authInfo && userOf(authInfo);
    const server = this.#newServer();
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      eventStore: new StreamEvents(),
      retryInterval: retryMs,
      onsessioninitialized: (id) => {
        this.#sessions.set(id, { server, transport, owner, usedAt: clock.now() });
      },
      onsessionclosed: (id) => {
        this.#sessions.delete(id);
      },
    });
    await server.connect(transport);
    const response = await transport.handleRequest(request, { ...(authInfo && { authInfo }) });
    if (transport.sessionId === undefined) await server.close();
    return response;
  }

  async #forgetIdle(): Promise<void> {
    const { clock, sessionIdleMs = 3_600_000 } = this.#options;
    for (const [id, { usedAt, server }] of this.#sessions) {
      if (clock.now() - usedAt < sessionIdleMs) continue;
      this.#sessions.delete(id);
      await server.close();
    }
  }

  #warn(error: unknown): void {
    this.#options.onWarning(Fault.from(error));
  }
}

function problem(status: number, message: string): Response {
  return Response.json({ jsonrpc: "2.0", error: { code: -32_001, message }, id: null }, { status });
}
