import { createHash, randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import {
  BudgetExhaustedError,
  executionBudget,
  Fault,
  formatAgentId,
  is,
  optionTable,
  type AttemptContext,
  type CancelSignal,
  type ExecutionBudget,
  type HostedAgent,
  type JsonValue,
  type MeteredCall,
  type MeteredResult,
  type OptionKinds,
  type ReportedUsage,
} from "../../kernel/index.ts";
import { EventStream, WholeAnswer } from "./answer-usage.ts";
import { anthropicWire } from "./anthropic-wire.ts";
import { geminiWire } from "./gemini-wire.ts";
import { JsonText } from "./json-text.ts";
import { chatWire, openAiRoute } from "./openai-wires.ts";
import { headersOf, Upstreams, type GatewayUpstream } from "./upstream.ts";
import { boundTokens, isObject, type Json, type Route, type Wire, type WireRequest } from "./wire.ts";

/** Options of `openGateway()`. */
export interface GatewayOptions {
  /** The providers, by the wire that programs use. A wire without an upstream does not exist. */
  readonly upstreams: Readonly<Partial<Record<Wire["name"], GatewayUpstream>>>;
  /** Names of the models that may be called. Default: every model with a known price. */
  readonly models?: readonly string[];
  /**
   * Names of what may be used although its cost is not bounded by the tokens of a request: server tools (`web_search`),
   * tiers (`priority`), stored conversations (`store`, `previous_response_id`). Default: nothing.
   */
  readonly allow?: readonly string[];
  /** Highest output limit of one request. A higher one is lowered, a missing one is added. Default: 16_000. */
  readonly maxOutputTokens?: number;
  /** Largest body of a request, in bytes. Default: 33_554_432. */
  readonly maxBodyBytes?: number;
  /** Number of requests that one token may have open. Default: 50. */
  readonly maxOpenRequests?: number;
}

const gatewayTable = optionTable({
  upstreams: is.any,
  models: is.list(),
  allow: is.list(),
  maxOutputTokens: is.integer({ from: 1, default: 16_000 }),
  maxBodyBytes: is.integer({ from: 1, default: 32 * 1024 * 1024 }),
  maxOpenRequests: is.integer({ from: 1, default: 50 }),
} satisfies OptionKinds<GatewayOptions>);

/** What pays for the requests of a program: the context of an attempt. */
export type GatewayMeter = Pick<AttemptContext, "metered" | "signal">;

/** What the function of `Gateway.program` receives. */
export interface GatewayProgram {
  /** Address of the gateway, without `/v1`. */
  readonly url: string;
  /** The key of the program at the gateway. It is valid until the function ends. */
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
  /** Budget of each run. If absent, a run has no limit of its own. */
  readonly budget?: Partial<ExecutionBudget>;
}

const programTable = optionTable({
  budget: is.checkedBy(executionBudget),
} satisfies OptionKinds<GatewayProgramOptions>);

/** The access of one program. */
export interface GatewayAccess {
  /** What the program sends as its key: `Authorization: Bearer`, `x-api-key`, `x-goog-api-key` or `x-reeve-token`. */
  readonly token: string;
  /** Address of the gateway, without `/v1`. */
  readonly url: string;
  /** The first refusal because of money. A task whose program was refused has not succeeded, whatever the program says. */
  readonly refusal: Fault | undefined;
  /** Ends the access: open requests are cut, and the token is refused from now on. */
  close(): void;
}

interface Access {
  readonly meter: GatewayMeter;
  readonly open: Set<AbortController>;
  refusal: Fault | undefined;
}

/**
 * A server on loopback through which programs call providers. It reserves the cost of each request in the ledger of a task
 * before the request leaves, and refuses what does not fit.
 */
export class Gateway {
  readonly #options: Required<Omit<GatewayOptions, "models">> & Pick<GatewayOptions, "models">;
  readonly #upstreams = new Upstreams();
  readonly #server: Server;
  /** The accesses by the hash of their token, so that no token is compared or kept as it is. */
  readonly #accesses = new Map<string, Access>();

  private constructor(options: GatewayOptions, server: Server) {
    const { allow = [], ...read } = gatewayTable.read("openGateway()", options);
    this.#options = { ...read, allow };
    this.#server = server;
    checkUpstreams(options.upstreams);
  }

  static async open(options: GatewayOptions): Promise<Gateway> {
    const server = createServer({ maxHeaderSize: 32 * 1024 });
    const gateway = new Gateway(options, server);
    server.on("request", (request, response) => void gateway.#serve(request, response));
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject).listen(0, "127.0.0.1", resolve);
    });
    server.unref();
    return gateway;
  }

  /** Address of the gateway, without `/v1`. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Lets one program in, at the cost of `meter`. */
  admit(meter: GatewayMeter): GatewayAccess {
    const token = `rvg_${randomBytes(32).toString("base64url")}`;
    const key = hashOf(token);
    const access: Access = { meter, open: new Set(), refusal: undefined };
    this.#accesses.set(key, access);
    return {
      token,
      url: this.url,
      get refusal() {
        return access.refusal;
      },
      close: () => {
        this.#accesses.delete(key);
        for (const request of access.open) request.abort();
      },
    };
  }

  /**
   * Returns an agent that runs a program behind the gateway. A crash ends the program, and the next owner of the run starts
   * it again as another attempt. If the gateway refused a request because of money, the task ends as `budget_exhausted`,
   * whatever the program returns, and continues after a top-up.
   */
  program(
    name: string,
    run: (program: GatewayProgram) => Promise<JsonValue>,
    options: GatewayProgramOptions = {},
  ): HostedAgent {
    const { budget } = programTable.read(`program ${name}`, options);
    return {
      id: formatAgentId({ name }),
      ...(budget !== undefined && { budget }),
      run: (ctx) =>
        ctx.attempt(name, async (attempt) => {
          const access = this.admit(attempt);
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
    for (const { open } of this.#accesses.values()) for (const request of open) request.abort();
    this.#accesses.clear();
    this.#upstreams.close();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [path = "", query = ""] = (request.url ?? "").split("?", 2);
    const route = routeOf(path);
    const wire = route?.wire ?? wireOf(path);
    try {
      await this.#answer(request, response, { path, query, route, wire });
    } catch (error) {
      refuse(response, wire, refusalOf(error));
    }
  }

  async #answer(request: IncomingMessage, response: ServerResponse, at: Place): Promise<void> {
    const { route, path, wire } = at;
    if (!isLocal(request.headers.host, this.#server))
      throw new Refusal(
        403,
        "the host of the request is not that of the gateway; use the address that the gateway gave",
      );
    const access = this.#accesses.get(hashOf(tokenOf(request)));
    if (access === undefined)
      throw new Refusal(
        401,
        "the token is not known, or its task has ended; use the token that the gateway gave",
      );
    if (request.method === "GET" && path === "/v1/models") {
      const data = (this.#options.models ?? []).map((id) => ({ id, object: "model", type: "model" }));
      return send(response, 200, { object: "list", data });
    }
    const upstream = this.#options.upstreams[wire.name];
    if (request.method !== "POST" || route === undefined || upstream === undefined)
      throw new Refusal(404, `the gateway has no ${request.method} ${path}`);
    if (access.open.size >= this.#options.maxOpenRequests)
      throw new Refusal(
        429,
        `the token has ${this.#options.maxOpenRequests} open requests; wait for one of them`,
      );
    const cut = new AbortController();
    access.open.add(cut);
    response.once("close", () => cut.abort());
    try {
      const body = await readBody(request, this.#options.maxBodyBytes);
      const call = new GatewayCall(this.#upstreams, upstream, request, response, at, cut.signal);
      if (route.kind === "count") await call.pass(body);
      else await this.#pay(access, call, route, body);
    } finally {
      access.open.delete(cut);
    }
  }

  async #pay(access: Access, call: GatewayCall, route: Route, body: Buffer): Promise<void> {
    const text = readText(body);
    const json = readJson(text);
    const asked = route.wire.read(json, route);
    this.#check(asked, text);
    const { maxOutputTokens } = this.#options;
    const limit = Math.min(asked.outputLimit ?? maxOutputTokens, maxOutputTokens);
    const request = {
      provider: call.provider,
      model: asked.model,
      inputTokens: boundTokens(json, body.byteLength),
      maxOutputTokens: Math.max(1, limit),
      ...(route.wire.countPath !== undefined && {
        countTokens: ({ signal }: { readonly signal: CancelSignal }) => call.count(json, signal),
      }),
    };
    try {
      await access.meter.metered(request, (granted) => call.perform(asked, text, body, granted));
    } catch (error) {
      if (error instanceof BudgetExhaustedError) access.refusal ??= error;
      throw error;
    }
  }

  #check({ model, unbounded, problem }: WireRequest, text: JsonText): void {
    const repeated = [
      ...text.repeated(),
      ...text.repeated(["generationConfig"]),
      ...text.repeated(["thinking"]),
    ];
    if (repeated.length > 0)
      throw new Refusal(400, `the request has the member ${repeated.join(", ")} twice`);
    if (problem !== undefined) throw new Refusal(400, problem);
    const { models, allow } = this.#options;
    if (model === "") throw new Refusal(400, "the request names no model");
    if (models !== undefined && !models.includes(model))
      throw new Refusal(403, `the model ${model} is not allowed; use one of ${models.join(", ")}`);
    const refused = unbounded.filter((name) => !allow.includes(name));
    if (refused.length > 0)
      throw new Refusal(
        403,
        `the request uses ${refused.join(", ")}, whose cost the gateway cannot bound; remove it, or allow it by name in the configuration of the gateway`,
      );
  }
}

/** Opens a gateway on a free port of loopback. */
export function openGateway(options: GatewayOptions): Promise<Gateway> {
  return Gateway.open(options);
}

/** The target of a request. */
interface Place {
  readonly path: string;
  readonly query: string;
  readonly route: Route | undefined;
  readonly wire: Wire;
}

/** One request of a program on its way to the provider and back. */
class GatewayCall {
  readonly #upstreams: Upstreams;
  readonly #upstream: GatewayUpstream;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #place: Place;
  readonly #signal: AbortSignal;

  constructor(
    upstreams: Upstreams,
    upstream: GatewayUpstream,
    request: IncomingMessage,
    response: ServerResponse,
    place: Place,
    signal: AbortSignal,
  ) {
    this.#upstreams = upstreams;
    this.#upstream = upstream;
    this.#request = request;
    this.#response = response;
    this.#place = place;
    this.#signal = signal;
  }

  get provider(): string {
    const { name } = this.#place.wire;
    return this.#upstream.provider ?? (name === "gemini" ? "google" : name);
  }

  /** Passes a free request on. */
  async pass(body: Buffer): Promise<void> {
    const answer = await this.#send(this.#place.path, body, this.#signal);
    await this.#forward(answer, new WholeAnswer(this.#place.wire));
  }

  /** B1: asks the provider how many tokens the input has. */
  async count(body: Json, signal: CancelSignal): Promise<number> {
    const { wire } = this.#place;
    const asked = Buffer.from(JSON.stringify(wire.countBody?.(body) ?? body));
    const answer = await this.#send(wire.countPath ?? "", asked, signal);
    const json = readJson(readText(await readBody(answer, 1024 * 1024)));
    const tokens = answer.statusCode === 200 ? wire.countOf?.(json) : undefined;
    if (tokens === undefined)
      throw new Fault("internal", `the provider did not count the tokens (HTTP ${answer.statusCode})`);
    return tokens;
  }

  /** Sends a request whose cost is reserved. B3: an answer that ends without usage is a lost call. */
  async perform(
    asked: WireRequest,
    text: JsonText,
    original: Buffer,
    granted: MeteredCall,
  ): Promise<MeteredResult<null>> {
    const { outputLimit } = granted;
    if ((asked.minOutputTokens ?? 0) > outputLimit) {
      const problem = `the request thinks with up to ${(asked.minOutputTokens ?? 1) - 1} tokens, and ${outputLimit} are left for its output; lower budget_tokens`;
      refuse(this.#response, this.#place.wire, new Refusal(402, problem));
      return unbilled;
    }
    let sent = text;
    if (asked.outputLimit !== outputLimit) sent = sent.with(asked.limitPath, String(outputLimit));
    for (const { path, value } of asked.added) sent = sent.with(path, value);
    const body = sent === text ? original : Buffer.from(sent.text);
    const signal = AbortSignal.any([this.#signal, granted.signal]);
    const answer = await this.#send(this.#place.path, body, signal);
    const status = answer.statusCode ?? 502;
    const { wire } = this.#place;
    if (status >= 300 && status < 400) {
      answer.destroy();
      refuse(
        this.#response,
        wire,
        new Refusal(502, "the provider answered with a redirect, which the gateway refuses"),
      );
      return unbilled;
    }
    const isEvents = answer.headers["content-type"]?.startsWith("text/event-stream") === true;
    const usage = isEvents ? new EventStream(wire, asked.added.length > 0) : new WholeAnswer(wire);
    await this.#forward(answer, usage, granted);
    if (status >= 400) return unbilled;
    const { reported } = usage;
    if (reported === undefined) throw new Fault("internal", `the answer of ${asked.model} reports no usage`);
    return { value: null, usage: reported };
  }

  #send(path: string, body: Uint8Array, signal: CancelSignal): Promise<IncomingMessage> {
    const { wire, query } = this.#place;
    // The query of Gemini says how the answer is sent. A key in it would be that of the program.
    const alt = wire.name === "gemini" && new URLSearchParams(query).get("alt") === "sse" ? "?alt=sse" : "";
    return this.#upstreams.send(wire, this.#upstream, path + alt, this.#request.headers, body, signal);
  }

  /** Passes the answer on while it arrives. Rejects if the provider or the program ends the connection. */
  async #forward(
    answer: IncomingMessage,
    usage: EventStream | WholeAnswer,
    granted?: MeteredCall,
  ): Promise<void> {
    const response = this.#response;
    response.writeHead(answer.statusCode ?? 502, headersOf(answer));
    let reported: ReportedUsage | undefined;
    for await (const bytes of answer as AsyncIterable<Buffer>) {
      const passed = usage.push(bytes);
      if (passed.length > 0 && !response.write(passed)) await drained(response);
      if (usage.reported === undefined || usage.reported.inputTokens === reported?.inputTokens) continue;
      reported = usage.reported;
      granted?.report(reported);
    }
    response.end(usage.end());
  }
}

const unbilled: MeteredResult<null> = { value: null, usage: null };

/** A request that the gateway does not serve. */
class Refusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  const fault = Fault.from(error);
  if (error instanceof BudgetExhaustedError)
    return new Refusal(402, `${fault.message}; top up the run with reeve top-up, or ask a person who may`);
  if (fault.code === "unknown_price") return new Refusal(403, fault.message);
  if (fault.code === "cancelled") return new Refusal(409, "the task of the program was cancelled");
  return new Refusal(502, `the provider could not be reached: ${fault.message}`);
}

function refuse(response: ServerResponse, wire: Wire, { status, message }: Refusal): void {
  if (response.headersSent) {
    // A part of the answer was sent: only the end of the connection tells the program that it is not complete.
    response.destroy();
    return;
  }
  send(response, status, wire.error(status, message), {
    "x-should-retry": status === 429 ? "true" : "false",
  });
}

function send(
  response: ServerResponse,
  status: number,
  body: Json,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
}

function routeOf(path: string): Route | undefined {
  return anthropicWire.route(path) ?? openAiRoute(path) ?? geminiWire.route(path);
}

/** The wire in whose shape an unknown path is refused. */
function wireOf(path: string): Wire {
  if (path.startsWith("/v1/messages")) return anthropicWire;
  return /^\/v1(beta|alpha)?\/models\/.+:/.test(path) ? geminiWire : chatWire;
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

function hashOf(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

/** A page of another site that resolves its name to loopback sends its own name. */
function isLocal(host: string | undefined, server: Server): boolean {
  const { port } = server.address() as AddressInfo;
  return host === `127.0.0.1:${port}` || host === `localhost:${port}`;
}

async function readBody(from: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of from as AsyncIterable<Buffer>) {
    size += piece.byteLength;
    if (size > maxBytes) throw new Refusal(413, `the body has more than ${maxBytes} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

function readText(body: Buffer): JsonText {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body);
    if (!isObject(JSON.parse(text))) throw new Error("it is not an object");
    return new JsonText(text);
  } catch (error) {
    throw new Refusal(400, `the body is not a JSON object in UTF-8: ${Fault.from(error).message}`);
  }
}

function readJson({ text }: JsonText): Json {
  return JSON.parse(text) as Json;
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off("drain", done).off("close", done);
      resolve();
    };
    response.once("drain", done).once("close", done);
  });
}

function checkUpstreams(upstreams: GatewayOptions["upstreams"]): void {
  const use = 'use upstreams: { anthropic: { baseUrl: "https://api.anthropic.com", apiKey } }';
  if (!isObject(upstreams) || Object.keys(upstreams).length === 0)
    throw new Fault(
      "invalid_argument",
      `invalid upstreams of openGateway(): expected at least one provider; ${use}`,
    );
  for (const [name, upstream] of Object.entries(upstreams)) {
    const owner = `upstream ${name} of openGateway()`;
    if (name !== "anthropic" && name !== "openai" && name !== "gemini")
      throw new Fault("invalid_argument", `invalid ${owner}: expected anthropic, openai or gemini; ${use}`);
    const { baseUrl, apiKey } = upstreamTable.read(owner, upstream);
    const isAddress = URL.canParse(baseUrl ?? "") && /^https?:$/.test(new URL(baseUrl ?? "").protocol);
    if (!isAddress)
      throw new Fault(
        "invalid_argument",
        `invalid baseUrl of ${owner}: expected an http or https address; ${use}`,
      );
    if (apiKey === undefined || apiKey === "")
      throw new Fault(
        "invalid_argument",
        `invalid apiKey of ${owner}: expected the key of the provider; ${use}`,
      );
  }
}

const upstreamTable = optionTable({
  baseUrl: is.text(),
  apiKey: is.text(),
  provider: is.text(),
} satisfies OptionKinds<GatewayUpstream>);
