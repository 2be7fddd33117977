import { Hono, type Context } from "hono";
import {
  Fault,
  type RunSummary,
  type Runtime,
  checkMethods,
  invalidOption,
  is,
  maxJsonValues,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";
import type { GatewayDesk } from "../../capabilities/gateway/gateway-desk.ts";
import type { McpMountOptions } from "../protocols/mcp/mcp-mount.ts";
import { mcpRoutes } from "../protocols/mcp/mcp-routes.ts";
import { packageVersion } from "../../assembly/package-root.ts";
import { addressKey, type SenderBindings } from "../http/access/address-key.ts";
import { publicAccess, requireScope, type Access } from "../http/access/access.ts";
import { AccessGate, loopbackHosts } from "../http/access/gate.ts";
import { PageLogin } from "../http/access/page-login.ts";
import { isForPerson, safeTarget, signInPage } from "./sign-in-page.ts";
import { RequestRate } from "../http/access/request-rate.ts";
import type { Tokens } from "../http/access/tokens.ts";
import { FiguresOfRuns } from "../http/figures/run-figures.ts";
import { WorkingRuns } from "../http/figures/working-runs.ts";
import { openApi } from "./openapi.ts";
import { PageFiles } from "./page-files.ts";
import { withCallerSession } from "../http/caller-session.ts";
import { errorResponse, type ErrorFormat } from "../http/problem.ts";
import { jsonBody, limitedRequest, maxCommandValues, type BodyLimit } from "../http/request-body.ts";
import { resultResponse, secured } from "../http/response.ts";
import type { Route, RouteRequest, RouteResult } from "../http/route.ts";
import { ExperimentReader } from "../http/experiment-reader.ts";
import { RunViews } from "../http/run-views.ts";
import { routeTable } from "./routes/table.ts";
import { object } from "../http/schema/schema.ts";
import { Validator } from "../http/schema/validator.ts";
import { ServedAgents, type AgentList } from "../http/served-agents.ts";
import type { ServerParts } from "../http/server-parts.ts";
import { OpenStreams } from "../http/streams/open-streams.ts";

/** The first segment of a path. */
function firstSegment(path: string): string | undefined {
  return path.split("/", 2)[1];
}

/** Whether a path of the route table, with parameters in braces, matches a request path. */
function matches(path: string, pathname: string): boolean {
  const [parts, wanted] = [path.split("/"), pathname.split("/")];
  return (
    parts.length === wanted.length && parts.every((part, at) => part.startsWith("{") || part === wanted[at])
  );
}

/** Returns the id of the run that a path of the page shows. `undefined` if it shows no run. */
function shownRunId(path: string): string | undefined {
  return /^\/runs\/(?<runId>[\w-]+)(?:\/|$)/u.exec(path)?.groups?.["runId"];
}

/** Limits of a server. Sizes are in bytes, durations in milliseconds. */
export interface ServerLimits {
  /** Maximum body size of a request that contains input of a run. Default: 16_777_216 (16 MiB). */
  readonly maxBodyBytes: number;
  /** Maximum body size of any other request. It must not exceed `maxBodyBytes`. Default: 1_048_576 (1 MiB). */
  readonly maxCommandBytes: number;
  /** Average number of requests per second that each token may send. Default: 50. */
  readonly requestsPerSecond: number;
  /** Number of requests that each token may send at once. Default: 200. */
  readonly requestBurst: number;
  /** Maximum number of open streams. Default: 1_000. */
  readonly maxStreams: number;
  /** Maximum number of open streams of each token. Default: 100. */
  readonly maxStreamsPerToken: number;
  /**
   * Number of bytes that a stream buffers for a reader that does not read. If there are more, the reader is
   * disconnected. Default: 4_194_304 (4 MiB).
   */
  readonly maxQueuedBytes: number;
  /**
   * Interval of heartbeats in streams. A reader that reads nothing for two intervals is disconnected. Default:
   * 15_000.
   */
  readonly heartbeatMs: number;
  /** Interval at which the server checks for changed runs while a client follows them. Default: 500. */
  readonly changesMs: number;
}

const defaultLimits: ServerLimits = Object.freeze({
  maxBodyBytes: 16_777_216,
  maxCommandBytes: 1_048_576,
  requestsPerSecond: 50,
  requestBurst: 200,
  maxStreams: 1_000,
  maxStreamsPerToken: 100,
  maxQueuedBytes: 4_194_304,
  heartbeatMs: 15_000,
  changesMs: 500,
});

/** Options of `createServer`. */
export interface ServerOptions {
  /**
   * The agents that callers may start by name. The server registers each agent with the runtime. For an agent that
   * is created for each run (`ServedAgent`), the caller must register a resolver. A function returns the current
   * list, which may contain only agents that are created for each run. It must return the same list object until
   * the list changes. Default: none.
   */
  readonly agents?: AgentList;
  /**
   * Names of workflows that callers may start although this process does not host them. A worker of the store that hosts the
   * workflow reads the input and executes the run. Default: none.
   */
  readonly workflows?: readonly string[];
  /**
   * The tokens that callers need. `null` if callers need no token: they then act as the person at this machine,
   * with access to the whole store. Such a server listens only on loopback, and refuses requests from other
   * machines.
   */
  readonly tokens: Tokens | null;
  /**
   * Host names with which clients may address the server, without a port. Default: `127.0.0.1`, `localhost` and
   * `[::1]`.
   */
  readonly hosts?: readonly string[];
  /** Routes of other modules. They are checked and documented like the routes of the server. Default: none. */
  readonly routes?: readonly Route[];
  /**
   * Gives access to the gateway runs of the store, as in `reeve serve`. Default: the tokens and the open requests
   * of gateway runs are not shown.
   */
  readonly gateway?: GatewayDesk;
  /**
   * Options of the MCP server at `/mcp`, which offers the agents. `false` means that there is no MCP server.
   * Default: an MCP server without additional tools.
   */
  readonly mcp?: McpMountOptions | false;
  /** Folder with the files of the page, including `index.html`. These files need no token. Default: no page. */
  readonly page?: string;
  /**
   * Name of the page's cookie. Browsers send a cookie to all ports of a host, so two servers on one host need
   * different names. Default: `reeve`.
   */
  readonly cookie?: string;
  readonly limits?: Partial<ServerLimits>;
  /** Receives errors that callers see only as `internal`. Default: the error is emitted as a process warning. */
  readonly onError?: (error: Fault) => void;
}

/** The data that the host of the fetch handler provides about the connection of a request. */
interface Bindings extends SenderBindings {
  readonly outgoing?: { destroy(): void };
}

/** A server as a fetch handler, for `listen` or any other host of such handlers. */
export interface Server {
  /** Answers a request. Never rejects. The function works without its object, so it can be passed on alone. */
  readonly fetch: (request: Request, bindings?: object) => Promise<Response>;
  /** All routes of the server. */
  readonly routes: readonly Route[];
  /** Whether callers need a token. `listen` serves a server without tokens only on loopback. */
  readonly needsToken: boolean;
  /** Returns the path of a link that opens the page and can be used once. `undefined` if the server needs no token. */
  pageLink(): string | undefined;
  /**
   * Ends all streams, refuses new runs with `closed`, and resolves when all other requests are answered. Runs are
   * not affected; close the runtime afterwards.
   */
  drain(): Promise<void>;
}

const tokensHint = "use storedTokens(store.records), or null for a server that only this machine may use";

const serverTable = optionTable({
  agents: is.any,
  workflows: is.list({ of: is.text({ empty: false }), hint: 'use names, as in ["order"]' }),
  tokens: {
    isRequired: true,
    check: (value, option, owner) => {
      if (value === undefined) throw invalidOption(owner, option, value, "tokens or null", tokensHint);
      checkMethods(`${option} of ${owner}`, value, ["verify", "isValid"], tokensHint);
    },
  },
  hosts: is.list({ of: is.text() }),
  routes: is.list(),
  gateway: is.any,
  mcp: is.any,
  page: is.text(),
  cookie: is.text(),
  limits: is.any,
  onError: is.callback(),
} satisfies OptionKinds<ServerOptions>);

/**
 * Creates a server for the runs and sessions of a runtime. Closing the server does not close the runtime.
 *
 * @example
 * ```ts
 * import { Agent, openRuntime } from "reeve";
 * import { createServer, listen } from "reeve/server";
 * import { scriptedModel } from "reeve/testing";
 *
 * const runtime = await openRuntime();
 * const clerk = new Agent({ name: "clerk", model: scriptedModel(["Done."]) });
 * const server = createServer(runtime, { agents: [clerk], tokens: null });
 * const listening = await listen(server, { port: 0 });
 *
 * const response = await fetch(`${listening.url}/api/agents`);
 * console.log(await response.json());
 * await listening.close();
 * await runtime.close();
 * ```
 */
export function createServer(runtime: Runtime, options: ServerOptions): Server {
  const { agents = [] } = serverTable.read("createServer()", options);
  ServedAgents.register(agents, runtime);
  return new HonoServer(runtime, options);
}

class HonoServer implements Server {
  readonly routes: readonly Route[];
  readonly #needsToken: boolean;
  readonly #runtime: Runtime;
  readonly #app = new Hono<{ Bindings: Bindings }>();
  readonly #limits: ServerLimits;
  readonly #gate: AccessGate;
  readonly #rate: RequestRate;
  readonly #validator = new Validator();
  readonly #parts: ServerParts;
  readonly #page: PageFiles | undefined;
  readonly #report: (error: unknown) => void;
  readonly #draining = new AbortController();
  readonly #leave: () => void;
  readonly #inProgress = new Set<Promise<Response>>();

  constructor(runtime: Runtime, options: ServerOptions) {
    const {
      agents = [],
      workflows = [],
      tokens,
      hosts = loopbackHosts,
      routes = [],
      gateway,
      mcp = {},
      page,
      cookie = "reeve",
      onError = warn,
    } = options;
    this.#runtime = runtime;
    this.#leave = runtime.attend();
    this.#limits = { ...defaultLimits, ...options.limits };
    const { requestsPerSecond: perSecond, requestBurst: burst } = this.#limits;
    this.#gate = new AccessGate({ hosts, cookie, tokens });
    this.#needsToken = tokens !== null;
    this.#rate = new RequestRate({ perSecond, burst }, () => performance.now());
    this.#report = (error) => onError(Fault.from(error));
    this.#page = page === undefined ? undefined : new PageFiles(page);
    this.routes = routeTable([...(mcp === false ? [] : mcpRoutes(runtime, mcp)), ...routes]);
    const figures = new FiguresOfRuns();
    this.#parts = {
      agents: new ServedAgents(agents),
      workflows: new Set(workflows),
      figures,
      working: new WorkingRuns(runtime, figures),
      streams: new OpenStreams(runtime, this.#limits, this.#gate, this.#report),
      views: new RunViews(),
      experiments: new ExperimentReader(),
      ...(gateway !== undefined && { gateway }),
      pageFonts: this.#page?.fonts ?? "",
      ...(tokens !== null && { login: new PageLogin(tokens, cookie) }),
      document: () => openApi(this.routes, packageVersion()),
      draining: this.#draining.signal,
      refuseIfDraining: () => this.#refuseIfDraining(),
      report: this.#report,
    };
    this.#mount();
  }

  readonly fetch: Server["fetch"] = (request, bindings = {}) => {
    const response = Promise.resolve(this.#app.fetch(request, bindings));
    this.#inProgress.add(response);
    void response.finally(() => this.#inProgress.delete(response));
    return response;
  };

  get needsToken(): boolean {
    return this.#needsToken;
  }

  pageLink(): string | undefined {
    return this.#parts.login?.link();
  }

  async drain(): Promise<void> {
    this.#draining.abort();
    this.#leave();
    this.#parts.streams.close();
    await Promise.allSettled(this.#inProgress);
  }

  #mount(): void {
    for (const route of this.routes) {
      const path = route.path.replaceAll(/\{(\w+)\}/gu, ":$1");
      this.#app.on(route.method, path, (context) =>
        this.#answer(route, context).catch((error: unknown) => this.#refusal(error, route.errors)),
      );
    }
    this.#app.notFound((context) =>
      this.#answerOther(context).catch((error: unknown) =>
        this.#refusal(error, this.#formatOf(new URL(context.req.url).pathname)),
      ),
    );
    this.#app.onError((error, { req }) => this.#refusal(error, this.#formatOf(new URL(req.url).pathname)));
  }

  async #answer(route: Route, { req, env }: Context<{ Bindings: Bindings }>): Promise<Response> {
    this.#gate.checkOrigin(req.raw, env);
    if (route.isStream === true && req.raw.method === "HEAD")
      return this.#notAllowed(req.path, req.raw.method);
    const access = await this.#admit(route, req.raw, env);
    const request = limitedRequest(req.raw, this.#bodyLimit(route));
    const { outgoing } = env;
    const viewOf = (): Runtime => this.#viewOf(access);
    const caller = {
      get runtime() {
        return viewOf();
      },
      access,
    };
    const params = this.#checkedParams(route, req.param());
    const query = this.#checkedQuery(route, new URL(req.url).searchParams);
    const body = await this.#checkedBody(route, request);
    const checked: RouteRequest = {
      get runtime() {
        return viewOf();
      },
      access,
      params: await withCallerSession(caller, params),
      query: await withCallerSession(caller, query),
      body: await withCallerSession(caller, body),
      request,
      server: this.#parts,
      ...(outgoing !== undefined && { disconnect: () => outgoing.destroy() }),
    };
    const result = await this.#handle(route, checked);
    if (route.method !== "GET") this.#parts.streams.poke();
    return secured(result instanceof Response ? result : resultResponse(route, result));
  }

  #bodyLimit({
    carriesInput = false,
    maxValues = carriesInput ? maxJsonValues : maxCommandValues,
  }: Route): BodyLimit {
    const { maxBodyBytes, maxCommandBytes } = this.#limits;
    return carriesInput || maxBodyBytes < maxCommandBytes
      ? { maxBytes: maxBodyBytes, maxValues, option: "maxBodyBytes" }
      : { maxBytes: maxCommandBytes, maxValues, option: "maxCommandBytes" };
  }

  /**
   * Calls the handler of a route. Requests that the handler refuses as unauthenticated share one rate limit, like
   * requests without a valid token.
   */
  async #handle(route: Route, checked: RouteRequest): Promise<RouteResult> {
    try {
      return await route.handle(checked);
    } catch (error) {
      if (route.authenticates === true && Fault.from(error).code === "unauthenticated")
        this.#rate.count(`unauthenticated ${route.id}`);
      throw error;
    }
  }

  /** Checks the sender of the request, its rate limit, and whether the caller may use the route. */
  async #admit(
    { scope, authenticates = false }: Pick<Route, "scope" | "authenticates">,
    request: Request,
    sender: SenderBindings,
  ): Promise<Access> {
    if (scope === null) {
      if (!authenticates) this.#rate.count(`public ${addressKey(sender)}`);
      return publicAccess;
    }
    const access = await this.#identified(request, sender);
    this.#rate.count(`token ${access.tokenId}`);
    requireScope(access, scope);
    return access;
  }

  /**
   * Identifies the caller. Requests without a valid token share one rate limit per address, so that tokens can be
   * guessed only slowly. Requests with a valid token are not affected, even from the same address, because behind a
   * proxy all callers have the same address.
   */
  async #identified(request: Request, sender: SenderBindings): Promise<Access> {
    try {
      return await this.#gate.identify(request);
    } catch (error) {
      this.#rate.count(`unknown ${addressKey(sender)}`);
      throw error;
    }
  }

  /** Returns the view of the runtime that contains no data of other tenants and users (rule S6). */
  #viewOf(access: Access): Runtime {
    const { tenantId, userId } = access;
    if (access === publicAccess) throw new Fault("internal", "a route without a scope uses the runtime");
    if (tenantId === null) return this.#runtime;
    return this.#runtime.forTenant(userId === null ? { tenantId } : { tenantId, userId });
  }

  #checkedParams({ params }: Route, values: Record<string, string>): unknown {
    if (params !== undefined) this.#validator.check(params, values, "path");
    return values;
  }

  #checkedQuery({ query }: Route, search: URLSearchParams): unknown {
    // Without a prototype, because a client may name a parameter `__proto__`.
    const values = Object.create(null) as Record<string, string | string[]>;
    for (const name of new Set(search.keys())) {
      const all = search.getAll(name);
      values[name] = all.length === 1 && all[0] !== undefined ? all[0] : all;
    }
    this.#validator.check(query ?? noQuery, values, "query");
    return values;
  }

  async #checkedBody({ body, isBodyOptional = false }: Route, request: Request): Promise<unknown> {
    if (body === undefined) return undefined;
    const value = await jsonBody(request);
    if (value === undefined && !isBodyOptional)
      throw new Fault(
        "invalid_argument",
        "the request has no body; send JSON with content-type application/json",
      );
    const checked = value ?? {};
    this.#validator.check(body, checked, "body");
    return checked;
  }

  /** Answers a path that is not in the table: a file of the page, or an error. */
  async #answerOther({ req, env }: Context<{ Bindings: Bindings }>): Promise<Response> {
    this.#gate.checkOrigin(req.raw, env);
    const { pathname } = new URL(req.url);
    if (req.method === "GET" || req.method === "HEAD") {
      const signIn = await this.#signIn(pathname, req.raw, env);
      if (signIn !== undefined) return secured(signIn);
      const file = this.#page?.find(pathname, await this.#shownRun(pathname, req.raw, env));
      if (file !== undefined) return secured(file, this.#page?.policy);
    }
    if (this.#methodsOf(pathname).length > 0) return this.#notAllowed(pathname, req.method);
    throw new Fault(
      "not_found",
      `${req.method} ${pathname} does not exist; GET /openapi.json lists all routes`,
    );
  }

  /** Returns the page on which a person enters a token, if a view of the page could show no data to this person. */
  async #signIn(path: string, request: Request, sender: SenderBindings): Promise<Response | undefined> {
    if (this.#page?.isView(path) !== true || !isForPerson(request)) return undefined;
    const { pathname, search } = new URL(request.url);
    const to = safeTarget(`${pathname}${search}`);
    const { pageFonts: fonts } = this.#parts;
    try {
      await this.#identified(request, sender);
      return undefined;
    } catch (error) {
      const { code, details } = Fault.from(error);
      const retryAfter = details?.["retryAfter"];
      if (code === "rate_limited" && typeof retryAfter === "number")
        return signInPage({ reason: "wait", to, fonts, retryAfter });
      if (code === "unauthenticated") return signInPage({ reason: "missing", to, fonts });
      throw error;
    }
  }

  /**
   * Returns the run that a path of the page shows. `undefined` if the caller may not read the run; this is possible
   * because the page itself needs no token.
   */
  async #shownRun(path: string, request: Request, sender: SenderBindings): Promise<RunSummary | undefined> {
    const runId = shownRunId(path);
    if (this.#page === undefined || runId === undefined) return undefined;
    try {
      const access = await this.#admit({ scope: "read" }, request, sender);
      return await (await this.#viewOf(access).find(runId))?.summary();
    } catch (error) {
      if (Fault.from(error).code === "internal") this.#report(error);
      return undefined;
    }
  }

  #methodsOf(pathname: string): readonly string[] {
    return this.routes.filter(({ path }) => matches(path, pathname)).map(({ method }) => method);
  }

  #notAllowed(pathname: string, method: string): Response {
    const allow = this.#methodsOf(pathname).join(", ");
    const fault = new Fault("unsupported", `${pathname} does not accept ${method}; use ${allow}`);
    return secured(errorResponse(fault, this.#formatOf(pathname), { status: 405, headers: { allow } }));
  }

  /**
   * Returns the error format for a path that is not in the table: the format of the routes with the same first
   * segment.
   */
  #formatOf(pathname: string): ErrorFormat | undefined {
    const first = firstSegment(pathname);
    return this.routes.find(({ path, errors }) => errors !== undefined && firstSegment(path) === first)
      ?.errors;
  }

  #refusal(error: unknown, format: ErrorFormat | undefined): Response {
    const fault = Fault.from(error);
    if (fault.code === "internal") this.#report(error);
    return secured(errorResponse(fault, format));
  }

  #refuseIfDraining(): void {
    if (this.#draining.signal.aborted)
      throw new Fault(
        "closed",
        "this server is shutting down and starts no more runs; repeat the request later",
      );
  }
}

const noQuery = object({});

function warn(error: Fault): void {
  process.emitWarning(error.message, { type: "ReeveWarning", code: error.code });
}
