import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createSocketServer, type AddressInfo, type Socket } from "node:net";
import {
  boundDocuments,
  boundImage,
  executionBudget,
  formatAgentId,
  is,
  optionTable,
  type AttemptContext,
  type CancelSignal,
  type ExecutionBudget,
  type Fault,
  type HostedAgent,
  type JsonValue,
  type OnBudget,
  type OptionKinds,
} from "../../kernel/index.ts";
import { modelLimits } from "../models/model-limits.ts";
import { listedModelNames } from "../prices/price-catalog.ts";
import {
  Access,
  goneRefusal,
  hashOf,
  newToken,
  type AccessLimits,
  type GatewayMeter,
  type OpenRequest,
} from "./access.ts";
import { anthropicWire } from "./anthropic-wire.ts";
import { CallRecord } from "./call-record.ts";
import { chatWire } from "./chat-wire.ts";
import { GatewayCall, type Place } from "./gateway-call.ts";
import { readOptions, type GatewayOptions, type GatewayRules } from "./gateway-options.ts";
import { geminiWire } from "./gemini-wire.ts";
import type { JsonText } from "./json-text.ts";
import type { Json } from "./json-values.ts";
import { refusalOf, refuse, Refusal, send } from "./refusal.ts";
import { ByteLimit, RequestBody } from "./request-body.ts";
import { responsesWire } from "./responses-wire.ts";
import { outputLimitOf, providerOf, Upstreams, type GatewayUpstream } from "./upstream.ts";
import type { Route, Wire, WireRequest } from "./wire.ts";

/** The argument of the function that `Gateway.program` runs. */
export interface GatewayProgram {
  /** Address of the gateway, without `/v1`. */
  readonly url: string;
  /** The key with which the program uses the gateway. It is valid until the function ends. */
  readonly token: string;
  /** The input of the task. */
  readonly input: JsonValue;
  /** Aborted when the task is cancelled. */
  readonly signal: CancelSignal;
  /** The attempt, for questions, events and further paid calls. */
  readonly attempt: AttemptContext;
}

/** Options of `Gateway.program`. */
export interface GatewayProgramOptions {
  /** Budget of each run. If absent, a run has no limit from the agent. */
  readonly budget?: Partial<ExecutionBudget>;
  /**
   * B5: what happens when the budget is exhausted. `end`: the task ends as `budget_exhausted`. `ask`: a person is
   * asked for a top-up; a request waits for it for `topUpWaitMs`, and after a later top-up the program is started
   * again. Default: `end`.
   */
  readonly onBudget?: OnBudget;
}

const programTable = optionTable({
  budget: is.checkedBy(executionBudget),
  onBudget: is.choice(["ask", "end"]),
} satisfies OptionKinds<GatewayProgramOptions>);

/** The access of one program. */
export interface GatewayAccess {
  /** The key that the program sends: as `Authorization: Bearer`, `x-api-key`, `x-goog-api-key` or `x-reeve-token`. */
  readonly token: string;
  /** Address of the gateway, without `/v1`. */
  readonly url: string;
  /**
   * The first refusal because of a budget or cap. A task whose program was refused has not succeeded, whatever the
   * program reports.
   */
  readonly refusal: Fault | undefined;
  /** Ends the access. Open requests are ended, and the token is refused from then on. */
  close(): void;
}

const longestModel = 200;
const longestNonce = 200;
const epoch = new Date(0).toISOString();

/** What `Gateway.admit` lets a program do. */
export type ProgramLimits = Pick<AccessLimits, "runId" | "wire" | "seatWaitMs" | "onRefusal">;

/** Finds the accesses whose tokens are valid over restarts. */
export interface StoredAccesses {
  /**
   * Returns the access of a token, by its hash. `undefined` if there is no such token. Throws a `Refusal` if the
   * token has no access in this process.
   */
  find(tokenHash: string): Promise<Access | undefined>;
}

/** How a server opens its gateway. */
export interface GatewayPlace {
  /** The port. Default: a free one. */
  readonly port?: number;
  /** The tokens of gateway runs. */
  readonly stored?: StoredAccesses;
  /** Answers a nonce in a way that only a server of the store can, so that no token is sent to another process. */
  readonly prove?: (nonce: string) => string;
  /** Returns the time in milliseconds, for limits per second. Default: `Date.now`. */
  readonly now?: () => number;
}

/** Path of the request that asks a gateway to prove that it belongs to a store. */
export const proofPath = "/reeve/proof";

/** Longest time in which the headers and the body of a request arrive, in milliseconds. */
const longestHeadersMs = 10_000;
const longestBodyMs = 60_000;

/** A request while it is answered, for the log. */
interface Served {
  readonly at: Place;
  access?: Access;
  model?: string;
}

/**
 * A server on the loopback interface through which programs call providers. It reserves the cost of each request in
 * the ledger of a task before it sends the request, and refuses a request whose cost does not fit into the budget.
 */
export class Gateway {
  readonly #options: GatewayRules;
  readonly #place: GatewayPlace;
  readonly #upstreams = new Upstreams();
  readonly #server: Server;
  readonly #now: () => number;
  /** Counts the bytes of the bodies of all open requests. */
  readonly #bytes: ByteLimit;
  /** The accesses by the hash of their token. */
  readonly #accesses = new Map<string, Access>();

  private constructor(options: GatewayOptions, server: Server, place: GatewayPlace) {
    this.#options = readOptions(options);
    this.#place = place;
    this.#server = server;
    this.#now = place.now ?? Date.now;
    this.#bytes = new ByteLimit(this.#options.maxOpenBytes);
  }

  static async open(options: GatewayOptions, place: GatewayPlace = {}): Promise<Gateway> {
    const limits = {
      maxHeaderSize: 32 * 1024,
      headersTimeout: longestHeadersMs,
      requestTimeout: longestBodyMs,
    };
    const server = createServer(limits);
    const gateway = new Gateway(options, server, place);
    server.on("request", (request, response) => void gateway.#serve(request, response));
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject).listen(place.port ?? 0, "127.0.0.1", resolve);
    });
    server.unref();
    return gateway;
  }

  /** Address of the gateway, without `/v1`. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /**
   * Opens a socket in a folder for programs without a network, such as those in a sandbox. A connection to the
   * socket is a connection to the gateway. Returns a function that closes the socket.
   */
  async listenAt(path: string): Promise<() => Promise<void>> {
    const open = new Set<Socket>();
    const relay = createSocketServer((socket) => {
      open.add(socket);
      socket.once("close", () => open.delete(socket));
      this.#server.emit("connection", socket);
    });
    await new Promise<void>((resolve, reject) => {
      relay.once("error", reject).listen(path, resolve);
    });
    relay.unref();
    return async () => {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => relay.close(resolve));
    };
  }

  /** Gives one program access to the gateway. `meter` pays for its requests. If the run is given, refusals name it. */
  admit(meter: GatewayMeter, limits: ProgramLimits = {}): GatewayAccess {
    const token = newToken();
    const key = hashOf(token);
    const access = new Access(meter, limits);
    this.#accesses.set(key, access);
    meter.signal.addEventListener("abort", () => this.#accesses.delete(key));

    return {
      token,
      url: this.url,
      get refusal() {
        return access.refusal;
      },
      close: () => {
        this.#accesses.delete(key);
        access.close();
      },
    };
  }

  /**
   * Returns an agent that runs a program behind the gateway. A crash ends the program, and the next owner of the
   * run starts it again as another attempt. If the gateway refused a request because of a budget or cap, the task
   * ends as `budget_exhausted`, whatever the program returns, and continues after a top-up. With `onBudget: "ask"`
   * it waits for the top-up instead.
   */
  program(
    name: string,
    run: (program: GatewayProgram) => Promise<JsonValue>,
    options: GatewayProgramOptions = {},
  ): HostedAgent {
    const { budget, onBudget } = programTable.read(`program ${name}`, options);
    return {
      id: formatAgentId({ name }),
      ...(budget !== undefined && { budget }),
      ...(onBudget !== undefined && { onBudget }),
      run: (ctx) =>
        ctx.attempt(name, async (attempt) => {
          const access = this.admit(attempt, { runId: ctx.facts.runId });
          const { url, token } = access;
          try {
            const output = await run({ url, token, input: ctx.input, signal: attempt.signal, attempt });
            if (access.refusal !== undefined) throw access.refusal;
            return output;
          } catch (error) {
            throw access.refusal ?? error;
          } finally {
            access.close();
          }
        }),
    };
  }

  async close(): Promise<void> {
    for (const access of this.#accesses.values()) access.close();
    this.#accesses.clear();
    this.#upstreams.close();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [path = "", query = ""] = (request.url ?? "").split("?", 2);
    const route = routeOf(path);
    const at: Place = { path, query, route, wire: route?.wire ?? wireOf(path, request) };
    const served: Served = { at };
    try {
      await this.#answer(request, response, served);
    } catch (error) {
      const refusal = refusalOf(error);
      this.#log(served, refusal.status, refusal.message);
      refuse(response, at.wire, refusal);
    }
  }

  /**
   * Logs a request that was not paid. A request that a budget refused or that failed already has an event, and one
   * that was ended early has no reader.
   */
  #log({ access, at, model }: Served, status: number, reason?: string): void {
    const hasEvent = status === 402 || (status === 502 && at.route?.kind === "call");
    if (hasEvent || status === 499) return;
    const endpoint = at.route === undefined ? null : at.path;
    access?.log(this.#now(), {
      endpoint,
      status,
      model: model ?? null,
      ...(reason !== undefined && { reason }),
    });
  }

  async #answer(request: IncomingMessage, response: ServerResponse, served: Served): Promise<void> {
    const { at } = served;
    const { route, path, wire } = at;
    if (!isLocal(request.headers.host, this.#server))
      throw new Refusal(
        403,
        "the host of the request is not that of the gateway; use the address that the gateway gave",
      );
    if (request.method === "GET" && path === proofPath && this.#place.prove !== undefined)
      return send(response, 200, { proof: this.#place.prove(at.query.slice(0, longestNonce)) });
    const token = hashOf(tokenOf(request));
    const access = await this.#accessOf(token);
    served.access = access;
    if (request.method === "GET" && path === "/v1/models")
      return send(response, 200, await this.#models(request, access));
    if (access.wire !== undefined && access.wire !== wire.name)
      throw new Refusal(
        403,
        `the token is for the wire ${access.wire}, and ${path} is of ${wire.name}; use another token`,
      );
    const upstream = this.#options.upstreams[wire.name];
    if (request.method !== "POST" || route === undefined || upstream === undefined)
      throw new Refusal(404, `the gateway has no ${request.method} ${path}`);
    const { maxOpenRequests, maxBodyBytes, maxOpenBytes } = this.#options;
    const open = access.enter(token, maxOpenRequests);
    response.once("close", () => open.cut.abort());
    let body: RequestBody | undefined;
    try {
      const limits = [access.bytes(maxOpenBytes / 2), this.#bytes];
      body = await RequestBody.read(request, maxBodyBytes, limits);
      const { signal } = open.cut;
      const call = new GatewayCall(this.#upstreams, upstream, request, response, at, body, signal);
      const asked = this.#read(body, served, upstream, access);
      if (route.kind === "count") {
        access.takeCount(this.#now());
        await call.pass();
        this.#log(served, response.statusCode);
      } else await this.#pay(access, open, call, body, asked);
    } finally {
      body?.drop();
      access.leave(open);
    }
  }

  async #accessOf(token: string): Promise<Access> {
    const access = this.#accesses.get(token) ?? (await this.#place.stored?.find(token));
    if (access === undefined || access.isClosed) throw goneRefusal();
    return access;
  }

  /** Returns the models that a program may call, in a form that the clients of OpenAI and Anthropic understand. */
  async #models({ headers }: IncomingMessage, { models: own, wire: only }: Access): Promise<Json> {
    const { upstreams, models } = this.#options;
    const isAnthropic = headers["anthropic-version"] !== undefined;
    const data: Json[] = [];
    for (const [wire, upstream] of Object.entries(upstreams)) {
      if (upstream === undefined || isAnthropic !== (wire === "anthropic")) continue;
      if (only !== undefined && only !== wire) continue;
      const provider = providerOf(wire, upstream);
      const listed =
        models ?? (await listedModelNames([provider])).map((name) => name.slice(provider.length + 1));
      for (const id of listed)
        if (own === undefined || own.includes(id))
          data.push({
            id,
            type: "model",
            object: "model",
            display_name: id,
            created: 0,
            created_at: epoch,
            owned_by: provider,
          });
    }
    return {
      object: "list",
      data,
      has_more: false,
      first_id: data[0]?.["id"] ?? null,
      last_id: data.at(-1)?.["id"] ?? null,
    };
  }

  /**
   * Reads what a request asks for, and throws for what the rules do not allow. It does not keep the values of the
   * request.
   */
  #read(body: RequestBody, served: Served, upstream: GatewayUpstream, access: Access): Asked {
    const { text, json } = body.parse();
    const { route, wire } = served.at;
    const { allow } = this.#options;
    const provider = providerOf(wire.name, upstream);
    const rules = { allow, provider, outputLimit: outputLimitOf(upstream) };
    const asked = wire.read(json, route ?? { wire, kind: "call" }, rules);
    if (asked.model.length <= longestModel) served.model = asked.model;
    this.#check(asked, text, access);
    return { ...asked, inputTokens: boundInput(asked, provider, body.size) };
  }

  async #pay(
    access: Access,
    open: OpenRequest,
    call: GatewayCall,
    body: RequestBody,
    asked: Asked,
  ): Promise<void> {
    const { maxOutputTokens, maxOpenRequests, record, redact, topUpWaitMs } = this.#options;
    const limit = Math.min(asked.outputLimit ?? maxOutputTokens, maxOutputTokens);
    const { meter } = access;
    const request = {
      provider: call.provider,
      model: asked.model,
      inputTokens: asked.inputTokens,
      maxOutputTokens: limit,
      statedOutputTokens: asked.outputLimit ?? null,
      needsPrice: true,
      // Below it the provider would refuse the request, so that money which pays for less is used up.
      ...(asked.thinking !== undefined && {
        minOutputTokens: Math.max(1, Math.min(limit, asked.thinking.least + 1)),
      }),
      topUpWaitMs,
      onTopUpWait: () => access.hold(open, maxOpenRequests),
      ...(access.seatWaitMs !== undefined && { seatWaitMs: access.seatWaitMs }),
      ...(call.canCount && {
        countTokens: ({ signal }: { readonly signal: CancelSignal }) => call.count(signal),
      }),
    };
    const kept = new CallRecord(record, redact, body);
    const metered = meter.metered(request, async (granted) => {
      if (!access.release(open)) access.counts.addDelay(call.delayMs);
      try {
        return await call.perform(asked, granted, kept);
      } finally {
        kept.write(meter, call.path, call.status);
      }
    });
    try {
      await Promise.race([metered, call.withdrawn]);
    } catch (error) {
      access.note(error);
      throw access.refusalOf(error);
    }
  }

  #check({ model, found }: WireRequest, text: JsonText, access: Access): void {
    const repeated = text.repeated();
    if (repeated !== undefined) throw new Refusal(400, `the request has the member ${repeated} twice`);
    if (found.problem !== undefined) throw new Refusal(400, found.problem);
    const { models, allow } = this.#options;
    if (model === "") throw new Refusal(400, "the request names no model");
    if (model.length > longestModel)
      throw new Refusal(400, `the name of the model has more than ${longestModel} characters`);
    for (const allowed of [models, access.models])
      if (allowed !== undefined && !allowed.includes(model))
        throw new Refusal(403, `the model ${model} is not allowed; use one of ${allowed.join(", ")}`);
    const refused = [...found.unbounded].filter((name) => !allow.includes(name));
    if (refused.length > 0)
      throw new Refusal(
        403,
        `the request uses ${refused.join(", ")}, which the gateway does not know, or whose cost it cannot bound; remove it, or allow it by name in the configuration of the gateway`,
      );
  }
}

/** What a request asks for, with the upper bound of its input. */
interface Asked extends WireRequest {
  readonly inputTokens: number;
}

/** Upper bound of the tokens of the instructions that a provider adds about tools and the format of the answer. */
const addedTokens = 1_152;

/**
 * B1: returns an upper bound of the input tokens of a request: one per byte, a bound for each image, and the
 * context window if it has a document whose bytes give no bound.
 */
function boundInput({ model, found }: WireRequest, provider: string, bytes: number): number {
  const tokens = bytes + addedTokens + found.images * boundImage(model);
  if (!found.hasDocuments) return tokens;
  return Math.max(tokens, boundDocuments(model, modelLimits(provider, model).contextWindow));
}

/** Opens a gateway on a free port of loopback. */
export function openGateway(options: GatewayOptions): Promise<Gateway> {
  return Gateway.open(options);
}

const wires: readonly Wire[] = [anthropicWire, responsesWire, chatWire, geminiWire];

function routeOf(path: string): Route | undefined {
  for (const wire of wires) {
    const route = wire.route(path);
    if (route !== undefined) return route;
  }
  return undefined;
}

/**
 * Returns the protocol (wire) to which an unknown path probably belongs. The refusal has the error format of this
 * protocol.
 */
function wireOf(path: string, { headers }: IncomingMessage): Wire {
  if (/^\/v1(?:beta|alpha)(?:\/|$)|^\/v1\/models\/.+:/.test(path)) return geminiWire;
  const isAnthropic = path.startsWith("/v1/messages") || headers["anthropic-version"] !== undefined;
  return isAnthropic ? anthropicWire : chatWire;
}

function tokenOf({ headers }: IncomingMessage): string {
  const bearer = /^Bearer (.+)$/i.exec(headers.authorization ?? "")?.[1];
  // Some programs send a fixed key of their own, so that the token arrives in a header of the gateway.
  for (const name of ["x-reeve-token", "x-api-key", "x-goog-api-key"]) {
    const value = headers[name];
    if (typeof value === "string" && value !== "") return value;
  }
  return bearer ?? "";
}

/**
 * Whether the host name of a request is local. A page of another site whose name resolves to the loopback interface
 * sends its own name, and is refused.
 */
function isLocal(host: string | undefined, server: Server): boolean {
  const { port } = server.address() as AddressInfo;
  return host === `127.0.0.1:${port}` || host === `localhost:${port}`;
}
