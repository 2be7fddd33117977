import type { Fault, JsonObject } from "../../kernel/index.ts";
import type { Body, Method, PathOf, RequestValues, Result } from "../server/route-values.ts";
import { addressOf } from "../view/request-address.ts";
import { StreamParser, type StreamMessage } from "../view/stream-parser.ts";

interface RequestErrorOptions {
  readonly status?: number;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** An error of a request: a refusal by the server, with its fault code, or `offline` if the server did not answer. */
export class RequestError extends Error {
  override readonly name = "RequestError";
  readonly code: Fault["code"] | "offline";
  /** The status of the response. 0 if the server did not answer. */
  readonly status: number;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(
    code: RequestError["code"],
    message: string,
    { status = 0, details = {} }: RequestErrorOptions = {},
  ) {
    super(message);
    this.code = code;
    this.status = status;
    this.details = details;
  }
}

/** Answers a request, either over the network or in this process. */
type Fetch = (request: Request) => Promise<Response>;

/** The address of a server, or its handler in this process. */
export interface ServerPlace {
  /** The address of the server. The paths of routes are appended to it. */
  readonly url: string;
  readonly fetch: Fetch;
  /** The token that is sent with requests. If absent, no token is sent. */
  readonly token?: string;
  /** Converts each answer and each message of a stream. Default: they are not changed. */
  readonly read?: (value: unknown) => unknown;
}

export interface StreamOptions {
  /**
   * Returns the path with its query. It is called again for each connection, so that the reader can resume at its
   * position.
   */
  readonly path: () => string;
  /** The server answers. */
  readonly onOpen?: () => void;
  /** Called when the server does not answer. The request is sent again after `retryMs` milliseconds. */
  readonly onLost?: (retryMs: number) => void;
  /** Ends the iteration without an error. */
  readonly signal?: AbortSignal;
}

const firstDelayMs = 250;
const longestDelayMs = 5_000;

/** Calls the routes of a server. Paths, values and results have the types of the routes. */
export class RouteClient {
  readonly #place: ServerPlace;
  readonly #read: (value: unknown) => unknown;

  constructor(place: ServerPlace) {
    this.#place = place;
    this.#read = place.read ?? ((value) => value);
  }

  get<Path extends PathOf<"GET">>(
    path: Path,
    values: RequestValues<"GET", Path> = {},
  ): Promise<Result<"GET", Path>> {
    return this.#send("GET", path, values);
  }

  post<Path extends PathOf<"POST">>(
    path: Path,
    values: RequestValues<"POST", Path>,
    idempotencyKey?: string,
  ): Promise<Result<"POST", Path>> {
    return this.#send("POST", path, values, idempotencyKey);
  }

  patch<Path extends PathOf<"PATCH">>(
    path: Path,
    values: RequestValues<"PATCH", Path>,
  ): Promise<Result<"PATCH", Path>> {
    return this.#send("PATCH", path, values);
  }

  put<Path extends PathOf<"PUT">>(
    path: Path,
    values: RequestValues<"PUT", Path>,
  ): Promise<Result<"PUT", Path>> {
    return this.#send("PUT", path, values);
  }

  delete<Path extends PathOf<"DELETE">>(
    path: Path,
    values: RequestValues<"DELETE", Path>,
  ): Promise<Result<"DELETE", Path>> {
    return this.#send("DELETE", path, values);
  }

  /** Sends a request to a route that only some servers have. The caller must know the type of the answer. */
  async send(path: string, body: JsonObject): Promise<unknown> {
    const headers = { "content-type": "application/json" };
    const response = await this.#fetch(path, { method: "POST", body: JSON.stringify(body), headers });
    return this.#answerOf(response);
  }

  /**
   * Yields server-sent events until the caller leaves the loop or the signal aborts. If the connection is lost, it
   * connects again with a growing delay, and sends `Last-Event-ID` so that each event is yielded once. Ends if the
   * server has nothing more to send (204), and throws if it refuses the stream.
   */
  async *messages({ path, onOpen, onLost, signal }: StreamOptions): AsyncGenerator<StreamMessage, void> {
    let lastId: string | null = null;
    let delay = firstDelayMs;
    while (!isAborted(signal)) {
      const parser = new StreamParser(lastId, this.#read);
      try {
        const headers = { accept: "text/event-stream", ...(lastId !== null && { "last-event-id": lastId }) };
        const response = await this.#fetch(path(), { headers, ...(signal !== undefined && { signal }) });
        if (response.status === 204) return;
        if (!response.ok) throw await this.#refusalOf(response);
        delay = firstDelayMs;
        onOpen?.();
        if (response.body !== null) yield* messagesIn(response.body, parser, signal);
      } catch (error) {
        if (isAborted(signal)) return;
        if (!(error instanceof RequestError) || !isPassing(error)) throw error;
      }
      lastId = parser.lastId;
      if (isAborted(signal)) return;
      onLost?.(delay);
      await pause(delay, signal);
      delay = Math.min(longestDelayMs, delay * 2);
    }
  }

  async #send<M extends Method, Path extends string>(
    method: M,
    path: Path,
    values: RequestValues<M, Path>,
    idempotencyKey?: string,
  ): Promise<Result<M, Path>> {
    const { params, query, body, signal } = values;
    const response = await this.#fetch(addressOf(path, { ...params }, { ...query }), {
      method,
      ...(signal !== undefined && { signal }),
      ...(body !== undefined && { body: JSON.stringify(body satisfies Body<M, Path>) }),
      headers: {
        ...(body !== undefined && { "content-type": "application/json" }),
        ...(idempotencyKey !== undefined && { "idempotency-key": idempotencyKey }),
      },
    });
    return this.#read(await this.#answerOf(response)) as Result<M, Path>;
  }

  /** Returns the value that a route answers: an object or nothing. Rejects if the request was refused. */
  async #answerOf(response: Response): Promise<unknown> {
    if (!response.ok) throw await this.#refusalOf(response);
    const text = await this.#textOf(response);
    const value = text === "" ? {} : jsonObject(text);
    if (value === undefined) throw this.#foreign("without the JSON of a route");
    return text === "" ? undefined : value;
  }

  async #refusalOf(response: Response): Promise<RequestError> {
    const { code, detail, details }: Problem = jsonObject(await this.#textOf(response)) ?? {};
    if (typeof code !== "string" || typeof detail !== "string")
      return this.#foreign(`with status ${response.status} and no reason`);
    return new RequestError(code, detail, {
      status: response.status,
      ...(details !== undefined && { details }),
    });
  }

  /**
   * Returns the error for an answer that does not come from Reeve: the address belongs to another program, or a
   * proxy has answered.
   */
  #foreign(answer: string): RequestError {
    const { url } = this.#place;
    return new RequestError(
      "offline",
      `the server at ${url} answered ${answer}, as reeve serve never does; check the address, and the proxy before it`,
    );
  }

  async #textOf(response: Response): Promise<string> {
    try {
      return await response.text();
    } catch {
      throw new RequestError("offline", `the server at ${this.#place.url} was lost during its answer`);
    }
  }

  async #fetch(path: string, options: RequestInit): Promise<Response> {
    const { url, fetch, token } = this.#place;
    const headers = {
      ...(options.headers as Record<string, string>),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    };
    const request = new Request(`${url.replace(/\/$/u, "")}${path}`, { ...options, headers });
    try {
      return await fetch(request);
    } catch (error) {
      if (options.signal?.aborted === true) throw error;
      throw new RequestError("offline", `the server at ${url} does not answer; start it with reeve serve`);
    }
  }
}

/** Returns the result of a request, or `undefined` if the requested object does not exist. */
export async function unlessAbsent<Value>(asked: Promise<Value>): Promise<Value | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof RequestError && error.code === "not_found") return undefined;
    throw error;
  }
}

/** Whether the reason of a refused request or lost connection is temporary, so that a later attempt may succeed. */
function isPassing({ code }: RequestError): boolean {
  return code === "offline" || code === "closed" || code === "rate_limited" || code === "internal";
}

interface Problem {
  readonly code?: Fault["code"];
  readonly detail?: string;
  readonly details?: RequestError["details"];
}

/** Parses a text as a JSON object. Returns `undefined` for any other text. */
function jsonObject(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    // Another program answers with a page of its own.
    return undefined;
  }
}

/**
 * Reads a body to its end. If the connection is lost, the reading ends too; the caller then resumes after the last
 * id.
 */
async function* messagesIn(
  body: ReadableStream<Uint8Array>,
  parser: StreamParser,
  signal: AbortSignal | undefined,
): AsyncGenerator<StreamMessage, void> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }));
      if (done || isAborted(signal)) return;
      for (const message of parser.messages(decoder.decode(value, { stream: true }))) {
        yield message;
        if (isAborted(signal)) return;
      }
    }
  } finally {
    // The caller may have left the loop, which must not keep the connection open.
    reader.cancel().catch(() => undefined);
  }
}

/**
 * Whether the signal has aborted. This is a function because the compiler would assume that a second read of
 * `aborted` has the same value.
 */
function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done, { once: true });
  });
}
