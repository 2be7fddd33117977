import {
  Fault,
  readProperty,
  type CancelSignal,
  type Clock,
  type JsonObject,
  type JsonValue,
} from "../../kernel/index.ts";

/** Number of bytes of an answer, or of one message of a stream, above which the agent is refused. */
const mostBytes = 33_554_432;

/** The methods that a client of a remote agent calls. */
type Method = "SendMessage" | "GetTask" | "ListTasks" | "CancelTask" | "SubscribeToTask";

export interface A2aClientOptions {
  /** Name of the agent in Reeve, for errors. */
  readonly name: string;
  /** Address of the card. */
  readonly card: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly clock: Clock;
  /** How long the agent may take to answer what needs no work, in milliseconds. */
  readonly startTimeoutMs: number;
}

/** The agent cannot be reached at the moment, or its server fails. */
export class Unreachable extends Error {
  /** Whether the request may have reached the agent. */
  readonly mayHaveArrived: boolean;

  constructor(
    message: string,
    { mayHaveArrived = true, ...options }: ErrorOptions & { mayHaveArrived?: boolean } = {},
  ) {
    super(message, options);
    this.mayHaveArrived = mayHaveArrived;
  }
}

/** Codes of connections that were never made. */
const unmade = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN"]);

/** An error that the agent has answered. `code` is that of JSON-RPC. */
export class RefusedCall extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/**
 * A client of A2A 1.0 over JSON-RPC. Requests go only to the origin of the card, without redirects, so that the headers,
 * which hold a token, reach no other server.
 */
export class A2aClient {
  readonly #options: A2aClientOptions;
  readonly #url: string;
  #lastId = 0;

  private constructor(options: A2aClientOptions, url: string) {
    this.#options = options;
    this.#url = url;
  }

  /** Reads the card of the agent. */
  static async open(options: A2aClientOptions, signal: CancelSignal): Promise<A2aClient> {
    const { card, headers, name } = options;
    const response = await request(
      options,
      card,
      { headers: { ...headers, accept: "application/json" } },
      signal,
    );
    if (!response.ok) throw failedResponse(response, `the card of ${name} at ${card}`);
    return new A2aClient(options, interfaceOf(options, await jsonOf(response, `the card of ${name}`)));
  }

  async call(method: Method, params: JsonObject, signal: CancelSignal, isQuick = true): Promise<JsonValue> {
    const response = await this.#post(method, params, "application/json", signal, isQuick);
    return this.#resultOf(
      await jsonOf(response, `the answer of ${this.#options.name} to ${method}`),
      response,
    );
  }

  /** Yields the results of a streaming method. */
  async *stream(
    method: Method,
    params: JsonObject,
    signal: CancelSignal,
  ): AsyncGenerator<JsonValue, void, undefined> {
    const response = await this.#post(method, params, "text/event-stream", signal, false);
    const what = `the stream of ${this.#options.name}`;
    if (response.headers.get("content-type")?.startsWith("text/event-stream") !== true) {
      yield this.#resultOf(await jsonOf(response, what), response);
      return;
    }
    for await (const data of eventsOf(response, what)) yield this.#resultOf(parsed(data, what), response);
  }

  async #post(
    method: Method,
    params: JsonObject,
    accept: string,
    signal: CancelSignal,
    isQuick: boolean,
  ): Promise<Response> {
    const body = JSON.stringify({ jsonrpc: "2.0", id: ++this.#lastId, method, params });
    const headers = {
      ...this.#options.headers,
      "content-type": "application/json",
      "a2a-version": "1.0",
      accept,
    };
    const init = { method: "POST", headers, body };
    const response = await request(this.#options, this.#url, init, signal, isQuick);
    const isJson = response.headers.get("content-type")?.includes("json") === true;
    // Errors of JSON-RPC may come with any status.
    if (!response.ok && !isJson) throw failedResponse(response, `${this.#options.name} (${method})`);
    return response;
  }

  #resultOf(answer: JsonValue, response: Response): JsonValue {
    const error = readProperty(answer, "error");
    if (error !== undefined) {
      const code = Number(readProperty(error, "code"));
      const message = readProperty(error, "message");
      const told = typeof message === "string" ? message.slice(0, 2_000) : "no reason";
      if (response.status >= 500 || response.status === 429) throw new Unreachable(told);
      throw new RefusedCall(code, told);
    }
    const result = readProperty(answer, "result");
    if (result === undefined)
      throw new Fault("agent_protocol", `${this.#options.name} sent an answer of JSON-RPC without a result`);
    return result as JsonValue;
  }
}

async function request(
  { startTimeoutMs, clock }: A2aClientOptions,
  url: string,
  init: RequestInit,
  signal: CancelSignal,
  isQuick = true,
): Promise<Response> {
  const late = new AbortController();
  const cancel = isQuick ? clock.schedule(clock.now() + startTimeoutMs, () => late.abort()) : undefined;
  try {
    return await fetch(url, {
      ...init,
      redirect: "error",
      signal: AbortSignal.any([signal, late.signal]),
    });
  } catch (error) {
    signal.throwIfAborted();
    const why = late.signal.aborted ? `no answer within ${startTimeoutMs} ms` : reasonOf(error);
    const code = error instanceof Error ? readProperty(error.cause, "code") : undefined;
    const mayHaveArrived = !(typeof code === "string" && unmade.has(code));
    throw new Unreachable(`${new URL(url).origin}: ${why}`, { cause: error, mayHaveArrived });
  } finally {
    cancel?.();
  }
}

function reasonOf(error: unknown): string {
  const { message, cause } = Fault.from(error);
  return cause instanceof Error ? cause.message : message;
}

function failedResponse({ status }: Response, what: string): Error {
  if (status >= 500 || status === 429) return new Unreachable(`${what}: status ${status}`);
  if (status === 401 || status === 403)
    return new Fault(
      "agent_login_required",
      `${what} needs a login (status ${status}); set headers of remoteAgent(), such as { authorization: "Bearer TOKEN" }`,
    );
  return new Fault(
    "agent_protocol",
    `${what} answered with the status ${status}; check the address of its card`,
  );
}

/** The address of the interface that this client speaks, from a card. */
function interfaceOf({ name, card }: A2aClientOptions, value: JsonValue): string {
  const interfaces = readProperty(value, "supportedInterfaces");
  const all: readonly unknown[] = Array.isArray(interfaces) ? interfaces : [];
  const own = all.find(
    (each) =>
      readProperty(each, "protocolBinding") === "JSONRPC" &&
      /^1\.\d+/u.test(String(readProperty(each, "protocolVersion"))),
  );
  const url = readProperty(own, "url");
  if (typeof url !== "string" || !URL.canParse(url))
    throw new Fault("agent_protocol", `the card of ${name} names no interface for JSON-RPC of A2A 1.0`);
  if (new URL(url).origin !== new URL(card).origin)
    throw new Fault(
      "agent_protocol",
      `the card of ${name} at ${new URL(card).origin} names an interface at ${new URL(url).origin}; requests go only to the origin of the card`,
    );
  return url;
}

async function jsonOf(response: Response, what: string): Promise<JsonValue> {
  let text = "";
  for await (const piece of textOf(response)) {
    text += piece;
    if (text.length > mostBytes) throw tooLong(what);
  }
  return parsed(text, what);
}

function parsed(text: string, what: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch (error) {
    throw new Fault("agent_protocol", `${what} is not JSON`, { cause: error });
  }
}

function tooLong(what: string): Fault {
  return new Fault("agent_protocol", `${what} has more than ${mostBytes} characters`);
}

/** The data of the server-sent events of a response. */
async function* eventsOf(response: Response, what: string): AsyncGenerator<string, void, undefined> {
  let rest = "";
  let data: string[] = [];
  for await (const piece of textOf(response)) {
    rest += piece;
    if (rest.length > mostBytes) throw tooLong(what);
    const lines = rest.split(/\r\n|\r|\n/u);
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("data:")) data.push(line.slice("data:".length).trimStart());
      if (line !== "" || data.length === 0) continue;
      yield data.join("\n");
      data = [];
    }
  }
}

/** The text of a body. A connection that breaks is `Unreachable`. */
async function* textOf({ body }: Response): AsyncGenerator<string, void, undefined> {
  if (body === null) return;
  try {
    for await (const piece of body.pipeThrough(new TextDecoderStream())) yield piece;
  } catch (error) {
    if (error instanceof Error && error.name === "AbortError") throw error;
    throw new Unreachable(reasonOf(error), { cause: error });
  }
}
