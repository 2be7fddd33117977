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
  type HostedAgent,
  type JsonObject,
  type JsonSchema,
  type Runtime,
  type Tool,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";
import { HttpEndpoint, httpOptionTable, type HttpOptions, type RequestSource } from "./http-endpoint.ts";
import { answerNode } from "./node-http.ts";
import { callerKey, serveCall, type CallState, type ServingOptions } from "./served-call.ts";
import {
  agentOffer,
  toolAgent,
  toolOffers,
  type HostCaller,
  type Offer,
  type OfferedAgent,
} from "./served-offer.ts";
import { trustingValidator } from "./trusting-validator.ts";

/** Options of `McpExport`. */
export interface McpServerOptions {
  /** Name of the server, as hosts see it. */
  readonly name: string;
  /** Version of the server, as hosts see it. Default: `0.0.0`. */
  readonly version?: string;
  /** Text that tells the host's model how to use the server. */
  readonly instructions?: string;
  /** Tools that hosts can call. */
  readonly tools?: readonly Tool[];
  /** The agent of `toolAgent` that executes the calls of `tools`, if the caller has registered it. Default: a new one. */
  readonly toolAgent?: HostedAgent;
  /** Agents that hosts can call. */
  readonly agents?: readonly OfferedAgent[];
  /** Runtime that executes the calls. Each call is a run. */
  readonly runtime: Runtime;
  /** Clock of the session timeouts. */
  readonly clock: Clock;
  /**
   * Maximum duration of a call, in milliseconds: the deadline of its run. Progress does not extend it, and the run ends
   * at it even if the host has disconnected. The time stops while a person is asked. `null` means unlimited. Default:
   * 3_600_000.
   */
  readonly callTimeoutMs?: number | null;
  /** Middleware and checks around the calls of the tools. */
  readonly callPath?: CallPath;
  /**
   * How a question is answered if the host cannot ask a person: `deny` refuses it, `wait` leaves it to another
   * approver. Default: `deny`.
   */
  readonly withoutPerson?: "deny" | "wait";
  /** Returns the user id of a caller from the result of `http.authenticate`. Default: the client id of the token. */
  readonly userOf?: (authInfo: AuthInfo) => string;
  /**
   * Returns on whose behalf an authenticated caller calls, and the runtime in the view of this caller. Default: the
   * user of `userOf`, without a tenant.
   */
  readonly callerOf?: (authInfo: AuthInfo) => HostCaller;
  /**
   * Key of at least 32 bytes that signs the state which hosts carry between the rounds of a call. Set it if several
   * processes serve one address. Default: a random key.
   */
  readonly stateKey?: string;
  /** Options of the HTTP endpoint. */
  readonly http?: HttpOptions;
  /** Adds resources, prompts or other features with the API of the MCP package. Called for each connection. */
  readonly extend?: (server: McpServer) => void;
  /** Receives problems that do not stop the server. */
  readonly onWarning?: (warning: Fault) => void;
  /** Called at the end of `close()`, to release resources of the caller. */
  readonly release?: () => Promise<void>;
}

/** A server on standard input and output. */
export interface StdioServing {
  /** Resolves when the host has closed its end, or `close` was called. */
  readonly closed: Promise<void>;
  /** Closes the connection. */
  close(): Promise<void>;
}

/** How long a call may wait for a person: 30 days in seconds, and the maximum of a platform timer in milliseconds. */
const patienceSeconds = 30 * 24 * 3600;
const patienceMs = 2 ** 31 - 1;

interface StdioStreams {
  readonly input?: Readable;
  readonly output?: Writable;
}

const streamTable = optionTable({ input: is.any, output: is.any } satisfies OptionKinds<StdioStreams>);

const knownOptions = optionTable({
  name: is.text(),
  version: is.text(),
  instructions: is.text(),
  tools: is.list(),
  toolAgent: is.any,
  agents: is.list(),
  runtime: is.any,
  clock: is.any,
  callPath: is.any,
  withoutPerson: is.choice(["deny", "wait"], { default: "deny" }),
  callTimeoutMs: is.number({ above: 0, finite: true, or: [null, "no limit"], default: 3_600_000 }),
  userOf: is.callback(),
  callerOf: is.callback(),
  stateKey: is.text(),
  http: is.options(httpOptionTable),
  extend: is.callback(),
  onWarning: is.callback(),
  release: is.callback(),
} satisfies OptionKinds<McpServerOptions>);

/** Serves tools and agents to other MCP hosts, over standard input and output or HTTP. */
export class McpExport {
  readonly #options: McpServerOptions;
  readonly #offers: readonly Offer[];
  readonly #serving: ServingOptions;
  readonly #endpoint: HttpEndpoint;
  readonly #open = new Set<StdioServing>();

  constructor(options: McpServerOptions) {
    const {
      name,
      runtime,
      tools = [],
      agents = [],
      callPath,
      withoutPerson,
      callTimeoutMs,
    } = knownOptions.read("mcpServer()", options);
    this.#options = options;
    const executor = options.toolAgent ?? toolAgent(name, tools, callPath);
    this.#offers = [...toolOffers(tools, executor), ...agents.map(agentOffer)];
    requireOneOfEachName(name, this.#offers);
    for (const { agent } of this.#offers) if (typeof agent !== "string") runtime.register(agent);
    const key = options.stateKey ?? randomBytes(32).toString("hex");
    const codec = createRequestStateCodec<CallState>({
      key,
      ttlSeconds: patienceSeconds,
      bind: (context) => JSON.stringify([context.mcpReq.method, callerKey(name, this.#callerOf(context))]),
    });
    const onWarning = (warning: Fault): void => options.onWarning?.(warning);
    this.#serving = { server: name, runtime, codec, callTimeoutMs, withoutPerson, onWarning };
    this.#endpoint = new HttpEndpoint(() => this.#newServer(), {
      http: options.http ?? {},
      clock: options.clock,
      onWarning,
      userOf: this.#nameOf,
    });
  }

  /** Serves over standard input and output of this process. Nothing else may write to standard output. */
  serveStdio(streams: StdioStreams = {}): StdioServing {
    const { input, output } = streamTable.read("serveStdio()", streams);
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

  /** Answers a web `Request`: use it as `export default { fetch }`, or as a route of a framework. */
  readonly fetch = (request: Request, source?: RequestSource): Promise<Response> =>
    this.#endpoint.answer(request, source);

  /** Answers a request of `node:http`: use it as `createServer(server.handle)`. */
  readonly handle = (request: IncomingMessage, response: ServerResponse): void => {
    answerNode(request, response, this.fetch).catch((error: unknown) =>
      this.#serving.onWarning(Fault.from(error)),
    );
  };

  /** Closes all connections. A runtime that the caller passed stays open. */
  async close(): Promise<void> {
    await Promise.all([...this.#open].map((serving) => serving.close()));
    await this.#endpoint.close();
    await this.#options.release?.();
  }

  /** Calls `close` at the end of the block that declares the server with `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #newServer(): McpServer {
    const { name, version = "0.0.0", instructions, extend } = this.#options;
    const server = new McpServer(
      { name, version },
      {
        jsonSchemaValidator: trustingValidator,
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
            caller: this.#callerOf(context),
            canAsk: server.server.getClientCapabilities()?.elicitation !== undefined,
          }),
      );
    }
    extend?.(server);
    return server;
  }

  readonly #nameOf = (authInfo: AuthInfo): string => this.#options.userOf?.(authInfo) ?? authInfo.clientId;

  #callerOf({ http }: ServerContext): HostCaller {
    const authInfo = http?.authInfo;
    if (authInfo === undefined) return anonymous;
    return this.#options.callerOf?.(authInfo) ?? { userId: this.#nameOf(authInfo) };
  }
}

const anonymous: HostCaller = Object.freeze({ userId: null });

/**
 * Throws if two offers have the same name. Names of tools may contain fewer characters than names of agents, so
 * that two agents may get the same tool name.
 */
function requireOneOfEachName(server: string, offers: readonly Offer[]): void {
  const names = offers.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice === undefined) return;
  throw new Fault(
    "already_exists",
    `two tools or agents of MCP server ${server} have the name ${twice}; rename one of them`,
  );
}

/** T1: accepts every input here, because the tool itself validates it and tells the model what is wrong. */
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
