import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import {
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
  type OnBudget,
  type OptionKinds,
  type RunId,
} from "../../kernel/index.ts";
import { listedModelNames } from "../prices/price-catalog.ts";
import { Access, hashOf, newToken, type GatewayMeter } from "./access.ts";
import { anthropicWire } from "./anthropic-wire.ts";
import { CallRecord, recordModes, type RecordMode } from "./call-record.ts";
import { GatewayCall, type Place } from "./gateway-call.ts";
import { geminiWire } from "./gemini-wire.ts";
import type { JsonText } from "./json-text.ts";
import { chatWire, openAiRoute } from "./openai-wires.ts";
import { refusalOf, refuse, Refusal, send } from "./refusal.ts";
import { readBody, readObject } from "./request-body.ts";
import { providerOf, Upstreams, type GatewayUpstream } from "./upstream.ts";
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
  /**
   * B5: how long a request that does not fit into the budget waits for a top-up, if the task asks a person for one
   * (`onBudget: "ask"`), in milliseconds. Then it is refused with 402, and the question stays open. Default: 60_000.
   */
  readonly topUpWaitMs?: number;
  /**
   * What the log of the run keeps of each request besides model, usage and cost: nothing (`none`), the sizes of request and
   * answer (`sizes`), or also their texts, up to 1 MiB each (`bodies`). Default: `none`.
   */
  readonly record?: RecordMode;
  /** Changes a text before it is stored with `record: "bodies"`. If it throws, the texts are not stored. Default: no change. */
  readonly redact?: (text: string) => string;
}

const gatewayTable = optionTable({
  upstreams: is.any,
  models: is.list(),
  allow: is.list(),
  maxOutputTokens: is.integer({ from: 1, default: 16_000 }),
  maxBodyBytes: is.integer({ from: 1, default: 32 * 1024 * 1024 }),
  maxOpenRequests: is.integer({ from: 1, default: 50 }),
  topUpWaitMs: is.integer({ from: 0, default: 60_000 }),
  record: is.choice(recordModes, { default: "none" }),
  redact: is.callback(),
} satisfies OptionKinds<GatewayOptions>);

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
  /**
   * B5: what happens at the budget. `end`: the task ends as `budget_exhausted`. `ask`: a person is asked for a top-up; a request
   * waits for it for `topUpWaitMs`, and the program is started again after a later one. Default: `end`.
   */
  readonly onBudget?: OnBudget;
}

const programTable = optionTable({
  budget: is.checkedBy(executionBudget),
  onBudget: is.choice(["ask", "end"]),
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

/** The options with their defaults. */
type GatewayRules = Required<Omit<GatewayOptions, "models">> & Pick<GatewayOptions, "models">;

const longestModel = 200;
const epoch = new Date(0).toISOString();

/** Finds the accesses whose tokens outlive a process. */
export interface StoredAccesses {
  /** Returns the access of a token, by its hash. `undefined` if there is no such token. Throws a `Refusal` if it has no access here. */
  find(tokenHash: string): Promise<Access | undefined>;
}

/** How a server opens its gateway. */
export interface GatewayPlace {
  /** The port. Default: a free one. */
  readonly port?: number;
  /** The tokens of gateway runs. */
  readonly stored?: StoredAccesses;
}

/**
 * A server on loopback through which programs call providers. It reserves the cost of each request in the ledger of a task
 * before the request leaves, and refuses what does not fit.
 */
export class Gateway {
  readonly #options: GatewayRules;
  readonly #upstreams = new Upstreams();
  readonly #server: Server;
  readonly #stored: StoredAccesses | undefined;
  /** The accesses by the hash of their token. */
  readonly #accesses = new Map<string, Access>();

  private constructor(options: GatewayOptions, server: Server, stored: StoredAccesses | undefined) {
    const {
      allow = [],
      redact = (text: string): string => text,
      ...read
    } = gatewayTable.read("openGateway()", options);
    this.#options = { ...read, allow, redact };
    this.#server = server;
    this.#stored = stored;
    checkUpstreams(options.upstreams);
  }

  static async open(options: GatewayOptions, { port = 0, stored }: GatewayPlace = {}): Promise<Gateway> {
    const server = createServer({ maxHeaderSize: 32 * 1024 });
    const gateway = new Gateway(options, server, stored);
    server.on("request", (request, response) => void gateway.#serve(request, response));
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject).listen(port, "127.0.0.1", resolve);
    });
    server.unref();
    return gateway;
  }

  /** Address of the gateway, without `/v1`. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Lets one program in, at the cost of `meter`. Refusals name the run, if it is given. */
  admit(meter: GatewayMeter, { runId }: { readonly runId?: RunId } = {}): GatewayAccess {
    const token = newToken();
    const key = hashOf(token);
    const access = new Access(meter, { ...(runId !== undefined && { runId }) });
    this.#accesses.set(key, access);
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
   * Returns an agent that runs a program behind the gateway. A crash ends the program, and the next owner of the run starts
   * it again as another attempt. If the gateway refused a request because of money, the task ends as `budget_exhausted`,
   * whatever the program returns, and continues after a top-up. With `onBudget: "ask"` it waits for the top-up instead.
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
    const wire = wireOf(path);
    try {
      const route = routeOf(path);
      await this.#answer(request, response, { path, query, route, wire: route?.wire ?? wire });
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
    const access = await this.#accessOf(request);
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
    const cut = access.enter(this.#options.maxOpenRequests);
    response.once("close", () => cut.abort());
    try {
      const { maxBodyBytes } = this.#options;
      const body = await readBody(request, maxBodyBytes, (bytes) =>
        access.hold(cut, bytes, 4 * maxBodyBytes),
      );
      const call = new GatewayCall(this.#upstreams, upstream, request, response, at, cut.signal);
      if (route.kind === "count") await call.pass(body);
      else await this.#pay(access, call, route, body);
    } finally {
      access.leave(cut);
    }
  }

  async #accessOf(request: IncomingMessage): Promise<Access> {
    const hash = hashOf(tokenOf(request));
    const access = this.#accesses.get(hash) ?? (await this.#stored?.find(hash));
    if (access !== undefined) return access;
    throw new Refusal(
      401,
      "the token is not known, or its task has ended; use the token that the gateway gave",
    );
  }

  /** The models that a program may call, in a shape that the clients of OpenAI and Anthropic understand. */
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

  async #pay(access: Access, call: GatewayCall, route: Route, body: Buffer): Promise<void> {
    const { text, json } = readObject(body);
    const asked = route.wire.read(json, route);
    this.#check(asked, text, access);
    const { maxOutputTokens, record, redact, topUpWaitMs } = this.#options;
    const limit = Math.min(asked.outputLimit ?? maxOutputTokens, maxOutputTokens);
    const request = {
      provider: call.provider,
      model: asked.model,
      inputTokens: boundTokens(json, body.byteLength),
      maxOutputTokens: Math.max(1, limit),
      // Below it the provider would refuse the request, so that money which pays for less is used up.
      ...(asked.thinking !== undefined && {
        minOutputTokens: Math.max(1, Math.min(limit, asked.thinking.least + 1)),
      }),
      topUpWaitMs,
      ...(route.wire.countPath !== undefined && {
        countTokens: ({ signal }: { readonly signal: CancelSignal }) => call.count(json, signal),
      }),
    };
    const kept = new CallRecord(record, redact, body);
    const metered = access.meter.metered(request, async (granted) => {
      try {
        return await call.perform(asked, text, body, granted, kept);
      } finally {
        kept.write(access.meter, call.path, call.status);
      }
    });
    try {
      await Promise.race([metered, call.withdrawn]);
    } catch (error) {
      access.note(error);
      throw access.refusalOf(error);
    }
  }

  #check({ model, unbounded, problem }: WireRequest, text: JsonText, access: Access): void {
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
    if (model.length > longestModel)
      throw new Refusal(400, `the name of the model has more than ${longestModel} characters`);
    for (const allowed of [models, access.models])
      if (allowed !== undefined && !allowed.includes(model))
        throw new Refusal(403, `the model ${model} is not allowed; use one of ${allowed.join(", ")}`);
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

function routeOf(path: string): Route | undefined {
  return anthropicWire.route(path) ?? openAiRoute(path) ?? geminiWire.route(path);
}

/** The wire of a path, in whose shape it is refused if it is unknown. */
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

/** A page of another site that resolves its name to loopback sends its own name. */
function isLocal(host: string | undefined, server: Server): boolean {
  const { port } = server.address() as AddressInfo;
  return host === `127.0.0.1:${port}` || host === `localhost:${port}`;
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
