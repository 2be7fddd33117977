import { isIPv4, isIPv6 } from "node:net";
import { randomUUID } from "node:crypto";
import {
  type AuthInfo,
  type EventStore,
  type JSONRPCMessage,
  type McpHttpHandler,
  type McpServer,
  WebStandardStreamableHTTPServerTransport,
  createMcpHandler,
  hostHeaderValidationResponse,
  isLegacyRequest,
  localhostAllowedHostnames,
  localhostAllowedOrigins,
  originValidationResponse,
} from "@modelcontextprotocol/server";
import { Fault, type Clock, is, optionTable, type Filled, type OptionKinds } from "../../kernel/index.ts";
import { boundedRequest } from "./message-limit.ts";
import { HttpSessions, type Session } from "./http-sessions.ts";

interface StoredMessage {
  readonly stream: string;
  readonly message: JSONRPCMessage;
  /** Length of the message as JSON. */
  readonly size: number;
}

/**
 * Keeps the latest messages of one session's streams, for a host that reconnects after its connection broke. Number
 * and size of the messages are limited, so that large results cannot fill the memory.
 */
export class StreamEvents implements EventStore {
  readonly #limit: number;
  readonly #maxSize: number;
  readonly #kept = new Map<string, StoredMessage>();
  #next = 0;
  #size = 0;

  constructor(limit = 1_000, maxSize = 4 * 1024 * 1024) {
    this.#limit = limit;
    this.#maxSize = maxSize;
  }

  /** Stores a message and returns its event id. */
  async storeEvent(stream: string, message: JSONRPCMessage): Promise<string> {
    const id = `${this.#next++}`;
    const size = JSON.stringify(message).length;
    this.#kept.set(id, { stream, message, size });
    this.#size += size;
    for (const [oldest, { size: freed }] of this.#kept) {
      if (this.#kept.size <= this.#limit && this.#size <= this.#maxSize) break;
      this.#kept.delete(oldest);
      this.#size -= freed;
    }
    return id;
  }

  /** Returns the stream of an event, if the event is still kept. */
  async getStreamIdForEventId(id: string): Promise<string | undefined> {
    return this.#kept.get(id)?.stream;
  }

  /** Sends the kept messages of the same stream that follow an event, and returns the stream. */
  async replayEventsAfter(
    last: string,
    { send }: { readonly send: (id: string, message: JSONRPCMessage) => Promise<void> },
  ): Promise<string> {
    const stream = this.#kept.get(last)?.stream ?? "";
    for (const [id, kept] of this.#kept) {
      const isMessage = Object.keys(kept.message).length > 0;
      if (kept.stream === stream && Number(id) > Number(last) && isMessage) await send(id, kept.message);
    }
    return stream;
  }
}

/**
 * Returns the network that one caller controls: the address itself for IPv4, and the first 64 bits for IPv6, because a
 * caller may use every address of such a network. Returns `undefined` for a text that is not an IP address.
 */
export function callerNetwork(address: unknown): string | undefined {
  if (typeof address !== "string") return undefined;
  const [plain = ""] = address.split("%", 1);
  const [, mapped] = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/iu.exec(plain) ?? [];
  if (isIPv4(mapped ?? plain)) return mapped ?? plain;
  return isIPv6(plain) ? `${groups(plain).slice(0, 4).join(":")}::/64` : undefined;
}

/** Returns the eight groups of an IPv6 address in their shortest form. */
function groups(address: string): readonly string[] {
  // The URL parser writes every IPv6 address in the canonical form.
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [head = "", tail] = canonical.split("::");
  const [before, after] = [head, tail ?? ""].map((part) => (part === "" ? [] : part.split(":")));
  const zeros = tail === undefined ? 0 : 8 - (before?.length ?? 0) - (after?.length ?? 0);
  return [...(before ?? []), ...Array.from({ length: zeros }, () => "0"), ...(after ?? [])];
}

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
   * Returns the identity of the caller, or a response that refuses the request. `requireBearerAuth` of the MCP
   * package is such a function. If absent, every caller that can reach the endpoint is accepted.
   */
  readonly authenticate?: (request: Request) => Promise<AuthInfo | Response>;
  /** Milliseconds without a request after which a session is closed. Default: 1_800_000. */
  readonly sessionIdleMs?: number;
  /**
   * Maximum number of sessions at the same time. If it is reached, a new session closes an idle session of the
   * caller that has the most sessions, the one that has been idle longest. If no session is idle, the new one is
   * refused. Default: 1_000.
   */
  readonly maxSessions?: number;
  /**
   * Maximum number of sessions at the same time of one caller: of one authenticated user, or of one remote address (of
   * one /64 network for IPv6). If it is reached, a new session closes the caller's session that has been idle longest.
   * Default: 100.
   */
  readonly maxSessionsPerCaller?: number;
  /**
   * Returns the remote address of a request, for an endpoint behind a proxy that reports it in a header. Default: the
   * address of the connection. `fetch` cannot see the connection, so without this function only `maxSessions` limits
   * its callers.
   */
  readonly remoteAddress?: (request: Request) => string | undefined;
  /** Milliseconds after which a host whose stream ended should reconnect. Default: 1_000. */
  readonly retryMs?: number;
}

export const httpOptionTable = optionTable({
  allowedHosts: is.list({ of: is.text() }),
  allowedOrigins: is.list({ of: is.text() }),
  authenticate: is.callback(),
  sessionIdleMs: is.number({ from: 1, finite: true, default: 1_800_000 }),
  maxSessions: is.number({ from: 1, finite: true, default: 1_000 }),
  maxSessionsPerCaller: is.number({ from: 1, finite: true, default: 100 }),
  remoteAddress: is.callback(),
  retryMs: is.number({ from: 0, default: 1_000 }),
} satisfies OptionKinds<HttpOptions>);

interface EndpointOptions {
  readonly http: HttpOptions;
  readonly clock: Clock;
  readonly onWarning: (warning: Fault) => void;
  readonly userOf: (authInfo: AuthInfo) => string;
}

/** Facts about a request that it does not contain itself. */
export interface RequestSource {
  /** Remote address of the connection. */
  readonly remoteAddress?: string | undefined;
  /**
   * Identity of the caller. Present if the program that passes on the request has checked the caller, the host and
   * the origin. The endpoint then does not check them.
   */
  readonly authInfo?: AuthInfo;
}

/** Methods that the protocol uses. */
const methods = ["GET", "POST", "DELETE"];

/** A host name or an IP address, with an optional port. */
const hostHeader = /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/iu;

/**
 * HTTP endpoint for hosts of all protocol revisions: sessions for revisions up to 2025-11-25, single exchanges for
 * 2026-07-28.
 */
export class HttpEndpoint {
  readonly #newServer: () => McpServer;
  readonly #http: Filled<HttpOptions, typeof httpOptionTable.kinds>;
  readonly #userOf: EndpointOptions["userOf"];
  readonly #onWarning: EndpointOptions["onWarning"];
  readonly #exchanges: McpHttpHandler;
  readonly #sessions: HttpSessions;

  constructor(newServer: () => McpServer, { http, clock, onWarning, userOf }: EndpointOptions) {
    this.#newServer = newServer;
    this.#http = httpOptionTable.read("http of mcpServer()", http);
    this.#userOf = userOf;
    this.#onWarning = onWarning;
    this.#exchanges = createMcpHandler(newServer, {
      legacy: "reject",
      onerror: (error) => this.#warn(error),
    });
    const { sessionIdleMs, maxSessions, maxSessionsPerCaller } = this.#http;
    this.#sessions = new HttpSessions({
      clock,
      idleMs: sessionIdleMs,
      max: maxSessions,
      maxPerCaller: maxSessionsPerCaller,
      onError: (error) => this.#warn(error),
    });
  }

  /** Answers one request. */
  async answer(request: Request, source?: RequestSource): Promise<Response> {
    if (!methods.includes(request.method)) return notAllowed();
    const found = source?.authInfo ?? (await this.#identify(request));
    if (found instanceof Response) return found;
    const bounded = await this.#bounded(request, source);
    if (bounded instanceof Response) return bounded;
    if (!(await isLegacyRequest(bounded)))
      return this.#exchanges.fetch(bounded, { ...(found && { authInfo: found }) });
    return this.#inSession(bounded, found, this.#network(bounded, source));
  }

  /** Returns the request with a body within the limits, or the response that refuses it. */
  async #bounded(request: Request, source: RequestSource | undefined): Promise<Request | Response> {
    try {
      return await boundedRequest(request);
    } catch (error) {
      // A program that passes requests on answers errors itself.
      if (!Fault.is(error) || source?.authInfo !== undefined) throw error;
      return problem(413, error.message);
    }
  }

  /** Returns the identity of the caller, or the response that refuses the request. */
  async #identify(request: Request): Promise<AuthInfo | Response | undefined> {
    if (!hostHeader.test(request.headers.get("host") ?? "localhost"))
      return problem(400, "Malformed Host header");
    const { allowedHosts = localhostAllowedHostnames(), allowedOrigins = localhostAllowedOrigins() } =
      this.#http;
    const stranger =
      hostHeaderValidationResponse(request, [...allowedHosts]) ??
      originValidationResponse(request, [...allowedOrigins]);
    return stranger ?? this.#http.authenticate?.(request);
  }

  #network(request: Request, source: RequestSource | undefined): string | undefined {
    const { remoteAddress = () => source?.remoteAddress } = this.#http;
    return callerNetwork(remoteAddress(request));
  }

  /** Closes all sessions. */
  async close(): Promise<void> {
    await this.#exchanges.close();
    await this.#sessions.close();
  }

  async #inSession(
    request: Request,
    authInfo: AuthInfo | undefined,
    network: string | undefined,
  ): Promise<Response> {
    const user = authInfo && this.#userOf(authInfo);
    const id = request.headers.get("mcp-session-id");
    if (id === null) return this.#begin(request, authInfo, { owner: user, caller: user ?? network });
    const known = this.#sessions.find(id);
    if (known === undefined || known.owner !== user) return problem(404, "Session not found");
    const answer = (): Promise<Response> =>
      known.transport.handleRequest(request, { ...(authInfo && { authInfo }) });
    // The stream of a GET request lasts as long as the host likes, so it does not count as use of the session.
    return request.method === "POST" ? this.#sessions.during(known, answer) : answer();
  }

  /** Starts a session. The transport itself refuses a request that does not start one; then no session is kept. */
  async #begin(
    request: Request,
    authInfo: AuthInfo | undefined,
    from: Pick<Session, "owner" | "caller">,
  ): Promise<Response> {
    const { retryMs } = this.#http;
    const room = this.#sessions.makeRoom(from.caller);
    if (room === "caller_full") return problem(429, "Too many sessions of this caller", retryLater);
    if (room === "full") return problem(503, "Too many sessions", retryLater);
    const server = this.#newServer();
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      eventStore: new StreamEvents(),
      retryInterval: retryMs,
      onsessioninitialized: (id) => this.#sessions.name(session, id),
      onsessionclosed: () => this.#sessions.remove(session),
    });
    const session: Session = { server, transport, ...from };
    this.#sessions.add(session);
    try {
      return await this.#sessions.during(session, async () => {
        await server.connect(transport);
        return transport.handleRequest(request, { ...(authInfo && { authInfo }) });
      });
    } finally {
      if (transport.sessionId === undefined) {
        this.#sessions.remove(session);
        await server.close();
      }
    }
  }

  #warn(error: unknown): void {
    this.#onWarning(Fault.from(error));
  }
}

const retryLater = { "retry-after": "60" };

function problem(status: number, message: string, headers: Readonly<Record<string, string>> = {}): Response {
  const error = { code: -32_001, message };
  return Response.json({ jsonrpc: "2.0", error, id: null }, { status, headers });
}

/** Returns the response to a method that the protocol does not use. */
export function notAllowed(): Response {
  return problem(405, "Method not allowed", { allow: methods.join(", ") });
}
