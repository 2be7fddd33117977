import { randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Readable, Writable } from "node:stream";
import {
  createRequestStateCodec,
  McpServer,
  type AuthInfo,
  type ServerContext,
  type StandardSchemaWithJSON,
} from "@modelcontextprotocol/server";
import { serveStdio, StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import {
  Fault,
  type CallPath,
  type Clock,
  type JsonObject,
  type JsonSchema,
  type Runtime,
  type Tool,
} from "../../kernel/index.ts";
import { HttpEndpoint, type HttpOptions } from "./http-endpoint.ts";
import { answerNode } from "./node-http.ts";
import { serveCall, type CallState, type ServingOptions } from "./served-call.ts";
import { agentOffer, toolOffers, type HostUser, type Offer, type OfferedAgent } from "./served-offer.ts";

export interface McpServerOptions {
  readonly name: string;
  readonly version?: string;
  /** How the whole is to be used, for the host's model. */
  readonly instructions?: string;
  readonly tools?: readonly Tool[];
  readonly agents?: readonly OfferedAgent[];
  /** Every call is a run of it. */
  readonly runtime: Runtime;
  readonly clock: Clock;
  /** What calls of the tools go through: middleware and the gate. */
  readonly callPath?: CallPath;
  /** What becomes of a question when the host cannot ask anybody. `deny` unless told. */
  readonly withoutPerson?: "deny" | "wait";
  /** Who a caller is, from what `http.authenticate` found out. Unless told, the token's client. */
  readonly userOf?: (authInfo: AuthInfo) => string;
  /** At least 32 bytes, for several processes behind one address: what hosts carry between rounds of a call is sealed with it. */
  readonly stateKey?: string;
  readonly http?: HttpOptions;
  /** What else the server is to have (resources, prompts), with the MCP package's own means; called for each connection. */
  readonly extend?: (server: McpServer) => void;
  readonly onWarning?: (warning: Fault) => void;
  /** Called at the end of `close`. */
  readonly release?: () => Promise<void>;
}

export interface StdioServing {
  /** Settles when the host has closed its end, or `close` was called. */
  readonly closed: Promise<void>;
  close(): Promise<void>;
}

/** A month: a person may take that long. In milliseconds what a timer of the platform holds. */
const patienceSeconds = 30 * 24 * 3600;
const patienceMs = 2 ** 31 - 1;

/** Tools and agents, offered to other MCP hosts. */
export class McpExport {
  readonly #options: McpServerOptions;
  readonly #offers: readonly Offer[];
  readonly #serving: ServingOptions;
  readonly #endpoint: HttpEndpoint;
  readonly #open = new Set<StdioServing>();

  constructor(options: McpServerOptions) {
    const { name, runtime, tools = [], agents = [], callPath, withoutPerson = "deny" } = options;
    this.#options = options;
    this.#offers = [...toolOffers(name, tools, callPath), ...agents.map(agentOffer)];
    for (const { agent } of this.#offers) runtime.register(agent);
    const key = options.stateKey ?? randomBytes(32).toString("hex");
    const codec = createRequestStateCodec<CallState>({
      key,
      ttlSeconds: patienceSeconds,
      bind: (context) => `${context.mcpReq.method}\n${this.#userOf(context).userId ?? ""}`,
    });
    const onWarning = (warning: Fault): void => options.onWarning?.(warning);
    this.#serving = { server: name, runtime, codec, withoutPerson, onWarning };
    this.#endpoint = new HttpEndpoint(() => this.#newServer(), {
      ...options.http,
      clock: options.clock,
      onWarning,
      userOf: this.#nameOf,
    });
  }

  /** Over this process's standard input and output, which nothing else may write to. */
  serveStdio({
    input,
    output,
  }: { readonly input?: Readable; readonly output?: Writable } = {}): StdioServing {
    const from = input ?? process.stdin;
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    const transport = new StdioServerTransport(from, output ?? process.stdout);
    const handle = serveStdio(() => this.#newServer(), {
      transport,
      onerror: (error) => this.#serving.onWarning(Fault.from(error)),
    });
    const serving: StdioServing = {
      closed,
      close: async () => {
        this.#open.delete(serving);
        await handle.close();
        resolve();
      },
    };
    this.#open.add(serving);
    from.once("close", resolve).once("end", resolve);
    return serving;
  }

  /** Answers a web request: `export default { fetch }`, or a route of any framework that has them. */
  readonly fetch = (request: Request): Promise<Response> => this.#endpoint.answer(request);

  /** Answers a request of `node:http`: `createServer(server.handle)`. */
  readonly handle = (request: IncomingMessage, response: ServerResponse): void => {
    answerNode(request, response, this.fetch).catch((error: unknown) =>
      this.#serving.onWarning(Fault.from(error)),
    );
  };

  /** Ends the connections. A runtime that was handed in is left open. */
  async close(): Promise<void> {
    await Promise.all([...this.#open].map((serving) => serving.close()));
    await this.#endpoint.close();
    await this.#options.release?.();
  }

  #newServer(): McpServer {
    const { name, version = "0.0.0", instructions, extend } = this.#options;
    const server = new McpServer(
      { name, version },
      {
        capabilities: { tools: { listChanged: true }, logging: {} },
        ...(instructions !== undefined && { instructions }),
        inputRequired: { maxRounds: 10_000, roundTimeoutMs: patienceMs },
        requestState: { verify: (state, context) => this.#serving.codec.verify(state, context) },
      },
    );
    for (const offer of this.#offers) {
      const { description, annotations, inputSchema } = offer;
      server.registerTool(
        offer.name,
        { description, annotations, inputSchema: unchecked(inputSchema) },
        (given, context) =>
          serveCall(this.#serving, {
            offer,
            given,
            context,
            user: this.#userOf(context),
            canAsk: server.server.getClientCapabilities()?.elicitation !== undefined,
          }),
      );
    }
    extend?.(server);
    return server;
  }

  readonly #nameOf = (authInfo: AuthInfo): string => this.#options.userOf?.(authInfo) ?? authInfo.clientId;

  #userOf({ http }: ServerContext): HostUser {
    const authInfo = http?.authInfo;
    return { authInfo, userId: authInfo === undefined ? null : this.#nameOf(authInfo) };
  }
}

/** T1: the tool itself says what is wrong with its input, in words for a model. */
function unchecked(schema: JsonSchema): StandardSchemaWithJSON<JsonObject, JsonObject> {
  return {
    "~standard": {
      version: 1,
      vendor: "reeve",
      validate: (value) => ({ value: value as JsonObject }),
      jsonSchema: { input: () => ({ ...schema }), output: () => ({ ...schema }) },
    },
  };
}
