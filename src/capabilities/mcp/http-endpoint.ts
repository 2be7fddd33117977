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

export interface HttpOptions {
  /** The names under which it may be addressed; those of this machine unless told. A page elsewhere cannot reach it by another name. */
  readonly allowedHosts?: readonly string[];
  /** The pages that may call it, by host name; those of this machine unless told. */
  readonly allowedOrigins?: readonly string[];
  /** Who calls, or the answer that sends them away: `requireBearerAuth` of the MCP package. Absent: anybody who can reach it. */
  readonly authenticate?: (request: Request) => Promise<AuthInfo | Response>;
  /** How long a host may be silent before its session is forgotten; an hour unless told. */
  readonly sessionIdleMs?: number;
  /** More sessions than this at once are refused; 1,000 unless told. */
  readonly maxSessions?: number;
  /** When a host whose stream ended is to come back; 1,000 unless told. */
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
  /** Whose it is: another who has its id has nothing. */
  readonly owner: string | undefined;
  usedAt: number;
}

/** One address for hosts of all revisions: sessions for those up to 2025-11-25, single exchanges for 2026-07-28. */
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

  /** What is not the beginning of a session the transport refuses itself; it is not kept then. */
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
