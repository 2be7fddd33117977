import type { Delta, Event, RunResult } from "../../kernel/index.ts";
import type { Body, Query, Result } from "../server/route-values.ts";
import { addressOf } from "../view/request-address.ts";
import { RequestError, RouteClient, type ServerPlace } from "./route-client.ts";

/** Options of {@link createClient}. */
export interface ClientOptions {
  /**
   * The address of a server, such as `http://127.0.0.1:4711`. A path in the address is kept, for servers behind a
   * proxy. Default in a browser: the address (origin) of the page.
   */
  readonly url?: string;
  /**
   * A token of `reeve token create`. In the browser of a person who has signed in, the cookie of the page is
   * sufficient.
   */
  readonly token?: string;
  /** Function that sends the requests. Default: the global `fetch`. */
  readonly fetch?: (request: Request) => Promise<Response>;
}

/** A run as lists show it. */
export type ClientRun = Result<"GET", "/api/runs/{runId}">;
/** A session as lists show it. */
export type ClientSession = Result<"GET", "/api/sessions/{sessionId}">;
/** A schedule as lists show it. */
export type ClientSchedule = Result<"GET", "/api/schedules/{name}">;
/** An open question of a run. */
export type ClientApproval = Result<"GET", "/api/runs/{runId}/approvals">["approvals"][number];
/** What a run starts with. */
export type ClientSubmission = Body<"POST", "/api/runs">;

/** Options of a request. */
export interface ClientRequestOptions {
  readonly signal?: AbortSignal;
}

/** Options of a request that takes effect only once, even if it is repeated. */
export interface ClientOnceOptions extends ClientRequestOptions {
  /**
   * Key of the request. The server executes requests with the same key only once. Default: a random key, so that
   * only repetitions within this call have the same key.
   */
  readonly idempotencyKey?: string;
}

/** Options of a stream of events. */
export interface ClientStreamOptions extends ClientRequestOptions {
  /** Called when the server did not answer. The request is sent again after `retryMs` milliseconds. */
  readonly onLost?: (retryMs: number) => void;
  /** Called when the server answers, the first time or after an interruption. */
  readonly onOpen?: () => void;
}

/** Options of the events of a run. */
export interface ClientEventOptions extends ClientStreamOptions {
  /** Sequence number of the first event. Default: 0. */
  readonly from?: number;
  /** Whether pieces of text are yielded while the model writes. Default: `true`. */
  readonly deltas?: boolean;
}

/** An event of a session's runs, or a piece of a text. */
export type ClientSessionItem = Event | Delta;

const waitMs = 60_000;
const repeats = [250, 1_000, 4_000];

/**
 * Speaks to a server of Reeve from Node, browsers and edge runtimes. Methods throw a {@link RequestError} if the server
 * refuses a request or does not answer.
 *
 * @example
 * ```ts
 * import { createClient } from "reeve/client";
 *
 * const client = createClient({ url: "http://127.0.0.1:4711", token: process.env["REEVE_TOKEN"] ?? "" });
 * const { run } = await client.runs.submit({ agent: "assistant", input: "Summarise the log" });
 * for await (const item of client.runs.events(run.runId)) console.log(item.type);
 * console.log((await client.runs.result(run.runId)).output);
 * ```
 */
export function createClient(options: ClientOptions = {}): Client {
  return new Client(options);
}

/** The methods of {@link createClient}, by resource. `routes` reaches every other route of the server, with its types. */
export class Client {
  /** Every route of the server, by method and path. */
  readonly routes: RouteClient;
  readonly runs: ClientRuns;
  readonly inbox: ClientInbox;
  readonly sessions: ClientSessions;
  readonly schedules: ClientSchedules;

  constructor(options: ClientOptions = {}) {
    this.routes = new RouteClient(placeOf(options));
    this.runs = new ClientRuns(this.routes);
    this.inbox = new ClientInbox(this.routes);
    this.sessions = new ClientSessions(this.routes);
    this.schedules = new ClientSchedules(this.routes);
  }

  /** Lists the agents and workflows of the server. */
  agents(options: ClientRequestOptions = {}): Promise<Result<"GET", "/api/agents">> {
    return this.routes.get("/api/agents", options);
  }
}

/** Methods for runs: start, follow, decide and end them. */
export class ClientRuns {
  readonly #routes: RouteClient;

  constructor(routes: RouteClient) {
    this.#routes = routes;
  }

  /**
   * Starts a run. If the answer of the server is lost, the request is repeated with the same key, so that one run
   * starts. `isSteered` is `true` if no run was started, because the input was sent to a run that waits in the
   * session.
   */
  submit(body: ClientSubmission, options: ClientOnceOptions = {}): Promise<Result<"POST", "/api/runs">> {
    return once(options, (key) => this.#routes.post("/api/runs", { body, ...signalOf(options) }, key));
  }

  /** Reads a run: its status, its cost and what it waits for. */
  get(runId: string, options: ClientRequestOptions = {}): Promise<ClientRun> {
    return this.#routes.get("/api/runs/{runId}", { params: { runId }, ...signalOf(options) });
  }

  /** Reads a page of runs, newest first. Pass `next` of a page as `after` to read the following page. */
  list(
    query: Query<"GET", "/api/runs"> = {},
    options: ClientRequestOptions = {},
  ): Promise<Result<"GET", "/api/runs">> {
    return this.#routes.get("/api/runs", { query, ...signalOf(options) });
  }

  /**
   * Waits for the end of a run and returns its result. Throws `offline` if the server does not answer for about five
   * seconds.
   */
  async result(runId: string, options: ClientRequestOptions = {}): Promise<RunResult> {
    for (;;) {
      const answer = await patiently(options, () =>
        this.#routes.get("/api/runs/{runId}/result", {
          params: { runId },
          query: { waitMs },
          ...signalOf(options),
        }),
      );
      if ("output" in answer) return answer as RunResult;
    }
  }

  /**
   * Yields the events of a run in the order of their sequence numbers (`seq`), and between them pieces of text,
   * until the run ends. If the connection is lost, it continues at the same place, so that each event is yielded
   * once. Leaving the loop does not stop the run.
   */
  async *events(runId: string, options: ClientEventOptions = {}): AsyncGenerator<Event | Delta, void> {
    const { from = 0, deltas = true, ...stream } = options;
    let next = from;
    const path = (): string => addressOf("/api/runs/{runId}/stream", { runId }, { from: next, deltas });
    for await (const { name, data } of this.#routes.messages({ ...stream, path })) {
      if (name === "end") return;
      const item = data as Event | Delta;
      if ("seq" in item) next = item.seq + 1;
      yield item;
    }
  }

  /**
   * Yields each run that changes. Yields `undefined` when the server answers, the first time or after an
   * interruption. Changes before this moment are not repeated, so callers should then read their list again.
   */
  async *changes(options: ClientStreamOptions = {}): AsyncGenerator<ClientRun | undefined, void> {
    const messages = this.#routes.messages({ ...options, path: () => "/api/stream" });
    for await (const { name, data } of messages) yield name === "ready" ? undefined : (data as ClientRun);
  }

  /** Lists the open questions of a run: approvals, inputs and top-ups. */
  async approvals(runId: string, options: ClientRequestOptions = {}): Promise<readonly ClientApproval[]> {
    const values = { params: { runId }, ...signalOf(options) };
    return (await this.#routes.get("/api/runs/{runId}/approvals", values)).approvals;
  }

  /** Answers a question of a run. Only the first answer is used; later answers are refused. */
  decide(
    runId: string,
    body: Body<"POST", "/api/runs/{runId}/decide">,
    options: ClientRequestOptions = {},
  ): Promise<ClientRun> {
    return this.#routes.post("/api/runs/{runId}/decide", { params: { runId }, body, ...signalOf(options) });
  }

  /**
   * Sends input that the agent reads before its next turn. If the server's answer is lost, the request is repeated
   * with the same key.
   */
  steer(
    runId: string,
    body: Body<"POST", "/api/runs/{runId}/steer">,
    options: ClientOnceOptions = {},
  ): Promise<Result<"POST", "/api/runs/{runId}/steer">> {
    const values = { params: { runId }, body, ...signalOf(options) };
    return once(options, (key) => this.#routes.post("/api/runs/{runId}/steer", values, key));
  }

  /**
   * Sends input that the agent reads when it would otherwise end. If the server's answer is lost, the request is
   * repeated with the same key.
   */
  followUp(
    runId: string,
    body: Body<"POST", "/api/runs/{runId}/follow-up">,
    options: ClientOnceOptions = {},
  ): Promise<Result<"POST", "/api/runs/{runId}/follow-up">> {
    const values = { params: { runId }, body, ...signalOf(options) };
    return once(options, (key) => this.#routes.post("/api/runs/{runId}/follow-up", values, key));
  }

  /** Cancels a run, or only one of its tasks if `taskId` is given. */
  cancel(
    runId: string,
    body: Body<"POST", "/api/runs/{runId}/cancel"> = {},
    options: ClientRequestOptions = {},
  ): Promise<ClientRun> {
    return this.#routes.post("/api/runs/{runId}/cancel", { params: { runId }, body, ...signalOf(options) });
  }

  /** Pauses a run: calls in progress end, and no other calls start. */
  pause(runId: string, options: ClientRequestOptions = {}): Promise<ClientRun> {
    const values = { params: { runId }, body: {}, ...signalOf(options) };
    return this.#routes.post("/api/runs/{runId}/pause", values);
  }

  /** Continues a run that is paused, or that ended with a fault. */
  resume(runId: string, options: ClientRequestOptions = {}): Promise<ClientRun> {
    const values = { params: { runId }, body: {}, ...signalOf(options) };
    return this.#routes.post("/api/runs/{runId}/resume", values);
  }

  /** Adds to the budget of a run. */
  topUp(
    runId: string,
    body: Body<"POST", "/api/runs/{runId}/top-up">,
    options: ClientRequestOptions = {},
  ): Promise<ClientRun> {
    return this.#routes.post("/api/runs/{runId}/top-up", { params: { runId }, body, ...signalOf(options) });
  }

  /** Sends a signal to a run. With an `id` in the body, a repeated request has no second effect. */
  signal(
    runId: string,
    body: Body<"POST", "/api/runs/{runId}/signal">,
    options: ClientRequestOptions = {},
  ): Promise<ClientRun> {
    return this.#routes.post("/api/runs/{runId}/signal", { params: { runId }, body, ...signalOf(options) });
  }
}

/** What waits for the caller. */
export class ClientInbox {
  readonly #routes: RouteClient;

  constructor(routes: RouteClient) {
    this.#routes = routes;
  }

  /** Reads everything that waits for the caller: questions, stopped runs and failures. */
  list(
    query: Query<"GET", "/api/inbox"> = {},
    options: ClientRequestOptions = {},
  ): Promise<Result<"GET", "/api/inbox">> {
    return this.#routes.get("/api/inbox", { query, ...signalOf(options) });
  }
}

/** The conversations that the caller may see. */
export class ClientSessions {
  readonly #routes: RouteClient;

  constructor(routes: RouteClient) {
    this.#routes = routes;
  }

  /** Reads a page of sessions, newest first. */
  list(
    query: Query<"GET", "/api/sessions"> = {},
    options: ClientRequestOptions = {},
  ): Promise<Result<"GET", "/api/sessions">> {
    return this.#routes.get("/api/sessions", { query, ...signalOf(options) });
  }

  /** Reads a session. */
  get(sessionId: string, options: ClientRequestOptions = {}): Promise<ClientSession> {
    return this.#routes.get("/api/sessions/{sessionId}", { params: { sessionId }, ...signalOf(options) });
  }

  /** Reads the entries of the conversation from its beginning to the current entry. */
  async path(
    sessionId: string,
    query: Query<"GET", "/api/sessions/{sessionId}/path"> = {},
    options: ClientRequestOptions = {},
  ): Promise<Result<"GET", "/api/sessions/{sessionId}/path">["entries"]> {
    const values = { params: { sessionId }, query, ...signalOf(options) };
    return (await this.#routes.get("/api/sessions/{sessionId}/path", values)).entries;
  }

  /** Sets the name, the model or the thinking level of a session. */
  change(
    sessionId: string,
    body: Body<"PATCH", "/api/sessions/{sessionId}">,
    options: ClientRequestOptions = {},
  ): Promise<ClientSession> {
    const values = { params: { sessionId }, body, ...signalOf(options) };
    return this.#routes.patch("/api/sessions/{sessionId}", values);
  }

  /** Copies the path of a conversation to a new session, and returns the id of the new session. */
  async fork(
    sessionId: string,
    body: Body<"POST", "/api/sessions/{sessionId}/fork"> = {},
    options: ClientRequestOptions = {},
  ): Promise<string> {
    const values = { params: { sessionId }, body, ...signalOf(options) };
    return (await this.#routes.post("/api/sessions/{sessionId}/fork", values)).sessionId;
  }

  /** Deletes a session. Its runs stay. */
  async delete(sessionId: string, options: ClientRequestOptions = {}): Promise<void> {
    await this.#routes.delete("/api/sessions/{sessionId}", { params: { sessionId }, ...signalOf(options) });
  }

  /** Yields the events of the session's runs, one run after the other, until the caller leaves the loop. */
  async *events(
    sessionId: string,
    options: ClientStreamOptions = {},
  ): AsyncGenerator<ClientSessionItem, void> {
    const path = (): string => addressOf("/api/sessions/{sessionId}/stream", { sessionId });
    for await (const { data } of this.#routes.messages({ ...options, path })) yield data as ClientSessionItem;
  }
}

/** Runs that start by the clock. */
export class ClientSchedules {
  readonly #routes: RouteClient;

  constructor(routes: RouteClient) {
    this.#routes = routes;
  }

  /** Reads a page of schedules. */
  list(
    query: Query<"GET", "/api/schedules"> = {},
    options: ClientRequestOptions = {},
  ): Promise<Result<"GET", "/api/schedules">> {
    return this.#routes.get("/api/schedules", { query, ...signalOf(options) });
  }

  /** Reads a schedule. */
  get(name: string, options: ClientRequestOptions = {}): Promise<ClientSchedule> {
    return this.#routes.get("/api/schedules/{name}", { params: { name }, ...signalOf(options) });
  }

  /** Creates a schedule. */
  create(
    body: Body<"POST", "/api/schedules">,
    options: ClientRequestOptions = {},
  ): Promise<Result<"POST", "/api/schedules">> {
    return this.#routes.post("/api/schedules", { body, ...signalOf(options) });
  }

  /** Changes a schedule. */
  change(
    name: string,
    body: Body<"PATCH", "/api/schedules/{name}">,
    options: ClientRequestOptions = {},
  ): Promise<ClientSchedule> {
    return this.#routes.patch("/api/schedules/{name}", { params: { name }, body, ...signalOf(options) });
  }

  /** Stops a schedule until `resume`. */
  pause(
    name: string,
    options: ClientRequestOptions = {},
  ): Promise<Result<"POST", "/api/schedules/{name}/pause">> {
    const values = { params: { name }, body: {}, ...signalOf(options) };
    return this.#routes.post("/api/schedules/{name}/pause", values);
  }

  /** Continues a paused schedule. */
  resume(
    name: string,
    options: ClientRequestOptions = {},
  ): Promise<Result<"POST", "/api/schedules/{name}/resume">> {
    const values = { params: { name }, body: {}, ...signalOf(options) };
    return this.#routes.post("/api/schedules/{name}/resume", values);
  }

  /** Starts a run of the schedule now. */
  run(
    name: string,
    options: ClientRequestOptions = {},
  ): Promise<Result<"POST", "/api/schedules/{name}/run">> {
    return this.#routes.post("/api/schedules/{name}/run", {
      params: { name },
      body: {},
      ...signalOf(options),
    });
  }

  /** Removes a schedule. */
  async delete(name: string, options: ClientRequestOptions = {}): Promise<void> {
    await this.#routes.delete("/api/schedules/{name}", { params: { name }, ...signalOf(options) });
  }
}

function placeOf({ url = browserOrigin(), token, fetch }: ClientOptions): ServerPlace {
  if (url === undefined)
    throw new TypeError("missing url: expected the address of a server, such as http://127.0.0.1:4711");
  if (!/^https?:\/\//u.test(url) || !URL.canParse(url))
    throw new TypeError(
      `invalid url ${JSON.stringify(url)}: expected the address of a server, such as http://127.0.0.1:4711`,
    );
  return {
    url,
    fetch: fetch ?? ((request) => globalThis.fetch(request)),
    ...(token !== undefined && { token }),
  };
}

/** The origin of the page in a browser. */
function browserOrigin(): string | undefined {
  return (globalThis as { readonly location?: { readonly origin: string } }).location?.origin;
}

function signalOf({ signal }: ClientRequestOptions): ClientRequestOptions {
  return signal === undefined ? {} : { signal };
}

/** Sends a request with a key. If the answer is lost, the request is repeated with the same key. */
function once<Value>(
  { idempotencyKey = crypto.randomUUID(), signal }: ClientOnceOptions,
  send: (key: string) => Promise<Value>,
): Promise<Value> {
  return patiently(signal === undefined ? {} : { signal }, () => send(idempotencyKey));
}

/**
 * Sends a request that has no second effect if it is repeated, and repeats it up to three times while the server
 * does not answer.
 */
async function patiently<Value>(
  { signal }: ClientRequestOptions,
  send: () => Promise<Value>,
): Promise<Value> {
  for (const delay of repeats) {
    try {
      return await send();
    } catch (error) {
      const isPassing = error instanceof RequestError && ["offline", "closed"].includes(error.code);
      if (!isPassing || signal?.aborted === true) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, delay));
  }
  return send();
}
