import { randomUUID } from "node:crypto";
import {
  loadMcpExport,
  toolAgent,
  type HostCaller,
  type HttpOptions,
  type McpExport,
  type McpServerOptions,
  type RequestSource,
} from "../../../capabilities/mcp/index.ts";
import { formatRunId, type HostedAgent, type Runtime } from "../../../kernel/index.ts";
import { systemClock } from "../../../runtime/index.ts";
import { packageVersion } from "../../../assembly/package-root.ts";
import type { RouteRequest } from "../../http/route.ts";
import { startRun } from "../../http/start-run.ts";
import type { ServerParts } from "../../http/server-parts.ts";
import type { SseStream } from "../../http/streams/sse-stream.ts";

/** Options of the MCP server at `/mcp`. It offers the agents of the server and the tools in these options. */
export interface McpMountOptions extends Pick<
  McpServerOptions,
  "instructions" | "tools" | "callPath" | "callTimeoutMs" | "withoutPerson" | "stateKey" | "extend"
> {
  /** Name of the MCP server for its hosts. Default: `reeve`. */
  readonly name?: string;
  /** Limits of MCP sessions. Each session belongs to the token that opened it. */
  readonly http?: Pick<HttpOptions, "sessionIdleMs" | "maxSessions" | "maxSessionsPerCaller" | "retryMs">;
}

type AuthInfo = NonNullable<RequestSource["authInfo"]>;

/**
 * The MCP server of a server's agents. The HTTP server checks tokens, host and origin; every call is a run of the
 * token's tenant and user.
 */
export class McpMount {
  readonly #runtime: Runtime;
  readonly #options: McpMountOptions;
  readonly #toolAgent: HostedAgent;
  #loading: Promise<McpExport> | undefined;

  constructor(runtime: Runtime, options: McpMountOptions) {
    this.#runtime = runtime;
    this.#options = options;
    const { name = defaultName, tools = [], callPath } = options;
    this.#toolAgent = toolAgent(name, tools, callPath);
    // Runs of tools continue after a restart, also before the first request.
    if (tools.length > 0) runtime.register(this.#toolAgent);
  }

  /** Answers a request. The MCP package is loaded at the first request. */
  readonly answer = async (request: RouteRequest): Promise<Response> => {
    const { access, server } = request;
    if (request.request.method === "POST") server.refuseIfDraining();
    // After a call has started, a refusal would make the client call again.
    if (request.request.method !== "DELETE") server.streams.requireRoom(access);
    this.#loading ??= this.#load(server);
    const mcp = await this.#loading;
    return streamed(request, await mcp.fetch(request.request, { authInfo: authInfoOf(request) }));
  };

  async #load(server: ServerParts): Promise<McpExport> {
    const Export = await loadMcpExport();
    const { name = defaultName, ...options } = this.#options;
    const mcp = new Export({
      ...options,
      name,
      version: packageVersion(),
      runtime: this.#runtime,
      toolAgent: this.#toolAgent,
      clock: systemClock,
      agents: server.agents.list.map(({ name: agent, description }) => ({
        agent,
        // Hosts refuse a tool without a description.
        description: (description ?? "") === "" ? `Runs the agent ${agent}` : (description ?? ""),
      })),
      callerOf: ({ extra }) => extra?.["caller"] as HostCaller,
      onWarning: server.report,
    });
    server.draining.addEventListener("abort", () => void mcp.close().catch(server.report), { once: true });
    return mcp;
  }
}

const defaultName = "reeve";

/**
 * Returns the caller in the form of the MCP package. The id of the client is the id of the token, because the token
 * owns the session.
 */
function authInfoOf(request: RouteRequest): AuthInfo {
  const { access, runtime } = request;
  const { tokenId, userId, tenantId, scope } = access;
  const caller: HostCaller = {
    userId,
    tenantId,
    runtime,
    submit: async (agent, input, { userId: _user, tenantId: _tenant, context: _context, ...options }) => {
      const runId = options.runId ?? formatRunId(randomUUID());
      return (await startRun(request, { ...options, agent, input, runId })).run;
    },
  };
  const clientId = tokenId ?? "local";
  // The text of the token stays with the server.
  return { token: clientId, clientId, scopes: [scope], extra: { caller } };
}

/**
 * Converts a streaming response to a stream of the server, with its limits and heartbeats. Other responses are
 * returned unchanged.
 */
function streamed({ access, server, disconnect }: RouteRequest, response: Response): Response {
  const { body, headers } = response;
  if (body === null || headers.get("content-type")?.startsWith("text/event-stream") !== true) return response;
  try {
    return server.streams.open(access, disconnect, (stream) => pass(body, stream), {
      headers: Object.fromEntries(headers),
      opening: nothing,
    });
  } catch (error) {
    body.cancel(error).catch(server.report);
    throw error;
  }
}

const nothing = new Uint8Array();

/**
 * Copies a stream. If the client disconnects, the stream of the MCP server is cancelled, but the run continues
 * (rule C3).
 */
async function pass(body: ReadableStream<Uint8Array>, stream: SseStream): Promise<void> {
  const reader = body.getReader();
  const left = new Promise<undefined>((resolve) =>
    stream.signal.addEventListener("abort", () => resolve(undefined), { once: true }),
  );
  try {
    while (!stream.isOver) {
      const read = await Promise.race([reader.read(), left]);
      if (read === undefined || read.done) return;
      await stream.send(read.value);
    }
  } finally {
    await reader.cancel();
  }
}
