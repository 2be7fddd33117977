import type * as Sdk from "@agentclientprotocol/sdk";
import type {
  AgentConnection,
  AgentContext,
  McpServer,
  RequestError,
  Stream,
} from "@agentclientprotocol/sdk";
import { isAbsolute } from "node:path";
import type { ServerConfig, ServerConfigs } from "../../../assembly/mcp.ts";
import { randomUUID } from "node:crypto";
import {
  Fault,
  formatSessionId,
  parseSessionId,
  type FaultCode,
  type Runtime,
} from "../../../kernel/index.ts";
import type { EditorHost } from "./acp-host.ts";
import { AcpSession } from "./acp-session.ts";

/** The functions of the optional package. */
export type AcpSdk = typeof Sdk;

/** Number of sessions on one page of a list. */
const pageSize = 50;

/**
 * Serves an editor with the Agent Client Protocol over a stream. Every session of the editor is stored in the store
 * of its folder, so that it survives this process.
 */
export function connectEditor(sdk: AcpSdk, stream: Stream, host: EditorHost): AgentConnection {
  const editor = new Editor(sdk, host);
  const connection = editor.app().connect(stream);
  editor.closed = connection.signal;
  return connection;
}

class Editor {
  readonly #sdk: AcpSdk;
  readonly #host: EditorHost;
  readonly #sessions = new Map<string, AcpSession>();
  /**
   * Folders whose sessions the editor knows. They are remembered because a request to delete a session does not
   * name its folder.
   */
  readonly #folders = new Set<string>();
  /** Aborts when the editor has left. */
  closed: AbortSignal = new AbortController().signal;

  constructor(sdk: AcpSdk, host: EditorHost) {
    this.#sdk = sdk;
    this.#host = host;
    this.#folders.add(host.cwd);
  }

  app(): Sdk.AgentApp {
    const { agent, methods, PROTOCOL_VERSION } = this.#sdk;
    const { session } = methods.agent;
    return agent({ name: "reeve" })
      .onRequest(methods.agent.initialize, () => ({
        protocolVersion: PROTOCOL_VERSION,
        agentInfo: { name: "reeve", title: "Reeve", version: this.#host.version },
        agentCapabilities: {
          loadSession: true,
          promptCapabilities: { image: true, embeddedContext: true, audio: false },
          mcpCapabilities: { http: true, sse: false },
          sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {} },
        },
        authMethods: [],
      }))
      .onRequest(session.new, ({ params, client }) =>
        this.#answer(async () => {
          const opened = await this.#open(formatSessionId(randomUUID()), params, client);
          this.#sessions.set(opened.sessionId, opened);
          opened.announce();
          return { sessionId: opened.sessionId, modes: opened.modes };
        }),
      )
      .onRequest(session.load, ({ params, client }) => this.#answer(() => this.#load(params, client, true)))
      .onRequest(session.resume, ({ params, client }) =>
        this.#answer(() => this.#load({ mcpServers: [], ...params }, client, false)),
      )
      .onRequest(session.list, ({ params }) => this.#answer(() => this.#list(params)))
      .onRequest(session.prompt, ({ params: { sessionId, prompt }, signal }) =>
        this.#answer(() => this.#find(sessionId).prompt(prompt, signal)),
      )
      .onNotification(session.cancel, async ({ params: { sessionId } }) => {
        await this.#sessions.get(sessionId)?.cancel();
      })
      .onRequest(session.setMode, ({ params: { sessionId, modeId } }) =>
        this.#answer(async () => {
          this.#find(sessionId).agentName = modeId;
          return {};
        }),
      )
      .onRequest(session.close, ({ params: { sessionId } }) =>
        this.#answer(async () => {
          await this.#find(sessionId).cancel();
          this.#sessions.delete(sessionId);
          return {};
        }),
      )
      .onRequest(session.delete, ({ params: { sessionId } }) =>
        this.#answer(async () => {
          await (await this.#runtimeOf(sessionId))?.sessions.delete(sessionId);
          this.#sessions.delete(sessionId);
          return {};
        }),
      );
  }

  async #load(
    params: Sdk.LoadSessionRequest,
    client: AgentContext,
    shows: boolean,
  ): Promise<Sdk.LoadSessionResponse> {
    const opened = await this.#open(parseSessionId(params.sessionId), params, client);
    // A session that does not exist leaves the open one, and the prompt that it answers, as they are.
    await opened.requireStored();
    const before = this.#sessions.get(opened.sessionId);
    await before?.cancel();
    this.#sessions.set(opened.sessionId, opened);
    try {
      await opened.load({ shows });
    } catch (error) {
      if (before === undefined) this.#sessions.delete(opened.sessionId);
      else this.#sessions.set(opened.sessionId, before);
      throw error;
    }
    opened.announce();
    return { modes: opened.modes };
  }

  async #open(
    sessionId: ReturnType<typeof parseSessionId>,
    { cwd, mcpServers, additionalDirectories = [] }: Sdk.NewSessionRequest,
    client: AgentContext,
  ): Promise<AcpSession> {
    checkFolder(cwd);
    if (additionalDirectories.length > 0)
      throw new Fault(
        "unsupported",
        "additionalDirectories are not supported: the tools of a session work in one folder; open it as the cwd",
      );
    const folder = await this.#host.open(cwd, serverConfigs(mcpServers));
    this.#folders.add(cwd);
    const log = (line: string): void => this.#host.log(line);
    return new AcpSession({ sessionId, cwd, folder, client, closed: this.closed, log });
  }

  async #list({ cwd, cursor }: Sdk.ListSessionsRequest): Promise<Sdk.ListSessionsResponse> {
    const folder = cwd ?? this.#host.cwd;
    checkFolder(folder);
    const runtime = await this.#host.find(folder);
    if (runtime === undefined) return { sessions: [] };
    this.#folders.add(folder);
    const page = await runtime.sessions.list({ limit: pageSize, ...(cursor != null && { after: cursor }) });
    return {
      sessions: page.sessions.map(({ sessionId, name, title, updatedAt }) => ({
        sessionId,
        cwd: folder,
        title: name ?? title,
        updatedAt: new Date(updatedAt).toISOString(),
      })),
      nextCursor: page.next,
    };
  }

  /**
   * Returns the runtime whose store contains a session. `undefined` if the session is in no folder that the editor
   * knows.
   */
  async #runtimeOf(sessionId: string): Promise<Runtime | undefined> {
    const open = this.#sessions.get(sessionId);
    if (open !== undefined) return this.#host.find(open.cwd);
    for (const folder of this.#folders) {
      const runtime = await this.#host.find(folder);
      if ((await runtime?.sessions.get(sessionId)) !== undefined) return runtime;
    }
    return undefined;
  }

  #find(sessionId: string): AcpSession {
    const session = this.#sessions.get(sessionId);
    if (session !== undefined) return session;
    throw new Fault("not_found", `session ${sessionId} is not open; use session/new or session/load first`);
  }

  /** Converts faults to errors of the protocol. The fault code is in `data`. */
  async #answer<Response>(handle: () => Promise<Response>): Promise<Response> {
    try {
      return await handle();
    } catch (error) {
      const fault = Fault.from(error);
      this.#host.log(fault.message);
      throw this.#errorOf(fault);
    }
  }

  #errorOf({ code, message, details }: Fault): RequestError {
    const data = { code, ...details };
    return new this.#sdk.RequestError(errorCodes[code] ?? internalError, message, data);
  }
}

function checkFolder(cwd: string): void {
  // File systems allow no NUL characters in paths.
  if (!isAbsolute(cwd) || cwd.includes("\0"))
    throw new Fault(
      "invalid_argument",
      `invalid cwd ${JSON.stringify(cwd)}: expected an absolute path without NUL characters`,
    );
}

const internalError = -32_603;

/** The JSON-RPC code of each fault that a client can avoid. All other faults are internal errors. */
const errorCodes: { readonly [Code in FaultCode]?: number } = {
  invalid_argument: -32_602,
  unsupported: -32_602,
  not_found: -32_002,
  agent_busy: -32_600,
};

/** Converts the MCP servers of an editor to Reeve's configuration format. Throws for an unsupported transport. */
function serverConfigs(servers: readonly McpServer[]): ServerConfigs {
  const configs: Record<string, ServerConfig> = {};
  for (const server of servers) {
    if ("type" in server && server.type === "sse")
      throw new Fault(
        "unsupported",
        `MCP server ${JSON.stringify(server.name)} uses the transport sse, which is not supported; use http or a command`,
      );
    if (Object.hasOwn(configs, server.name) || server.name === "__proto__")
      throw new Fault(
        "invalid_argument",
        `invalid name ${JSON.stringify(server.name)} of an MCP server: each server needs a name that no other has`,
      );
    configs[server.name] =
      "url" in server
        ? { type: "http", url: server.url, headers: valuesOf(server.headers) }
        : { command: server.command, args: server.args, env: valuesOf(server.env) };
  }
  return configs;
}

function valuesOf(
  list: readonly { readonly name: string; readonly value: string }[],
): Record<string, string> {
  return Object.fromEntries(list.map(({ name, value }) => [name, value]));
}
