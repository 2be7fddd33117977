import {
  Client,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  UnauthorizedError,
  type Implementation,
  type RequestOptions,
  type Transport,
} from "@modelcontextprotocol/client";
import { Fault, type ApprovalDecision, type Clock, type JsonObject } from "../../kernel/index.ts";
import { elicitResult, questionOf, type Elicitation } from "./elicitation.ts";
import { LastWords } from "./last-words.ts";
import { InFlightCalls, type ModelAttempts } from "./open-calls.ts";
import type { ServerConfig } from "./server-config.ts";
import { reasonOf, rest, TimeLimit, unlessAborted } from "./time-limit.ts";
import { connect, signIn } from "./transport.ts";

export interface Backoff {
  /** How often a start is tried before whoever waits for it is told; 3 unless told. */
  readonly attempts?: number;
  /** Before the second failed start in a row, doubled for each one after; 500 unless told. */
  readonly baseMs?: number;
  /** 30,000 unless told. */
  readonly maxMs?: number;
}

/** What a server asks a person while no call is open that it can belong to. */
export type OnQuestion = (question: JsonObject, server: string) => Promise<ApprovalDecision>;

export interface ConnectionOptions {
  readonly name: string;
  readonly config: ServerConfig;
  readonly clock: Clock;
  readonly clientInfo: Implementation;
  readonly backoff: Backoff;
  readonly onToolsChanged: () => void;
  readonly onQuestion?: OnQuestion;
}

/** What a call may bring along. */
export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly progress?: (update: JsonObject) => void;
  /** Who answers what the server asks meanwhile; otherwise `onQuestion`. */
  readonly asking?: ModelAttempts;
}

/** The longest a timer of the platform holds: time is ours to keep. */
const longest = 2 ** 31 - 1;

/**
 * One server: started with the first call, started again when it is gone, later each time it goes without having answered anything. A call
 * that was open when it went is not made again, since nobody knows how far it got.
 */
export class Connection {
  readonly name: string;
  readonly config: ServerConfig;
  readonly #options: ConnectionOptions;
  readonly #calls = new InFlightCalls();
  readonly #closing = new AbortController();
  #words = new LastWords();
  #client: Client | undefined;
  #transport: Transport | undefined;
  #starting: Promise<Client> | undefined;
  /** In a row, without an answer between. */
  #failures = 0;
  #notBefore = 0;

  constructor(options: ConnectionOptions) {
    this.name = options.name;
    this.config = options.config;
    this.#options = options;
  }

  /** Of the program, while it runs. */
  get pid(): number | null {
    const { pid } = (this.#transport ?? {}) as { readonly pid?: number | null };
    return pid ?? null;
  }

  /** `what`: as it stands in messages, `tool read_file`. */
  async call<Value>(
    what: string,
    request: (client: Client, options: RequestOptions) => Promise<Value>,
    options: CallOptions = {},
  ): Promise<Value> {
    const client = await this.client(options.signal);
    try {
      return await this.#request(client, what, request, options);
    } catch (error) {
      if (!(await this.#mended(client, error))) throw this.#shown(what, error);
    }
    try {
      return await this.#request(await this.client(options.signal), what, request, options);
    } catch (error) {
      throw this.#shown(what, error);
    }
  }

  /** Whether the server refused before it did anything, and may not refuse again. */
  async #mended(client: Client, error: unknown): Promise<boolean> {
    // It wants to know more of who asks.
    if (error instanceof UnauthorizedError) {
      await signIn(this.name, this.config, this.#transport, error);
      return true;
    }
    // It has forgotten our session.
    const isForgotten = error instanceof SdkHttpError && error.status === 404;
    if (isForgotten) this.#forget(client);
    return isForgotten;
  }

  /** Started, if it is not. The signal ends the waiting, not the start, which others may wait for. */
  client(signal?: AbortSignal): Promise<Client> {
    if (this.#closing.signal.aborted)
      return Promise.reject(new Fault("unsupported", `MCP server ${this.name} was closed`));
    if (this.#client !== undefined) return Promise.resolve(this.#client);
    this.#starting ??= this.#calls
      .outside(() => this.#start())
      .finally(() => {
        this.#starting = undefined;
      });
    return unlessAborted(this.#starting, signal);
  }

  /** Ends the program, or the session. What is open is told so. */
  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort(new Fault("unsupported", `MCP server ${this.name} was closed`));
    const client = await this.#starting?.catch(() => undefined);
    const open = client ?? this.#client;
    this.#client = undefined;
    const { sessionId, terminateSession } = (this.#transport ?? {}) as Partial<SessionTransport>;
    try {
      if (sessionId !== undefined) await terminateSession?.call(this.#transport);
    } finally {
      await open?.close();
    }
  }

  async #start(): Promise<Client> {
    const { clock, backoff } = this.#options;
    const { attempts = 3 } = backoff;
    for (let attempt = 1; ; attempt++) {
      await rest(clock, this.#notBefore - clock.now(), this.#closing.signal);
      try {
        return await this.#connect();
      } catch (error) {
        this.#failed();
        if (attempt >= attempts || !mayPass(error) || this.#closing.signal.aborted)
          throw this.#notStarted(error);
      }
    }
  }

  async #connect(): Promise<Client> {
    const { clock, clientInfo, name } = this.#options;
    const words = new LastWords();
    this.#words = words;
    const client = this.#newClient(clientInfo);
    const controller = new AbortController();
    const stop = (): void => controller.abort(reasonOf(this.#closing.signal));
    const { startTimeoutMs = 30_000 } = this.config;
    const limit = new TimeLimit(clock, startTimeoutMs, () =>
      controller.abort(new Fault("tool_timeout", `it did not answer within ${startTimeoutMs} ms`)),
    );
    this.#closing.signal.addEventListener("abort", stop);
    try {
      const options = { timeout: longest, signal: controller.signal };
      const connecting = connect(name, this.config, { client, words, options });
      this.#transport = await unlessAborted(connecting, controller.signal);
      Object.assign(client, { onclose: () => this.#forget(client) });
      this.#client = client;
      return client;
    } catch (error) {
      await client.close();
      throw controller.signal.aborted ? reasonOf(controller.signal) : error;
    } finally {
      limit.end();
      this.#closing.signal.removeEventListener("abort", stop);
    }
  }

  #newClient(clientInfo: Implementation): Client {
    const { protocol = "initialize" } = this.config;
    const mode = protocol === "initialize" ? "legacy" : protocol === "auto" ? "auto" : { pin: protocol };
    const client = new Client(clientInfo, {
      capabilities: { elicitation: { form: { applyDefaults: true }, url: {} } },
      versionNegotiation: { mode },
      listChanged: {
        tools: { autoRefresh: false, debounceMs: 0, onChanged: () => this.#options.onToolsChanged() },
      },
    });
    client.setRequestHandler("elicitation/create", ({ params }) => this.#asked(params));
    return client;
  }

  async #asked(elicitation: Elicitation): ReturnType<ModelAttempts> {
    const asking = this.#calls.find();
    if (asking !== undefined) return asking(elicitation);
    const { onQuestion } = this.#options;
    if (this.#calls.size > 0 || onQuestion === undefined) return { action: "cancel" };
    return elicitResult(await onQuestion(questionOf(elicitation), this.name), elicitation);
  }

  async #request<Value>(
    client: Client,
    what: string,
    request: (client: Client, options: RequestOptions) => Promise<Value>,
    { signal, progress, asking }: CallOptions,
  ): Promise<Value> {
    const controller = new AbortController();
    const stop = (): void => controller.abort(signal === undefined ? undefined : reasonOf(signal));
    if (signal?.aborted) throw reasonOf(signal);
    signal?.addEventListener("abort", stop);
    const { timeoutMs = 60_000 } = this.config;
    const limit = new TimeLimit(this.#options.clock, timeoutMs, () =>
      controller.abort(
        new Fault("tool_timeout", `${what} of MCP server ${this.name} said nothing for ${timeoutMs} ms`),
      ),
    );
    const options: RequestOptions = {
      timeout: longest,
      signal: controller.signal,
      onprogress: ({ progress: done, total, message }) => {
        limit.renew();
        progress?.({
          progress: done,
          ...(total !== undefined && { total }),
          ...(message !== undefined && { message }),
        });
      },
    };
    const ask: ModelAttempts = (elicitation) => limit.heldDuring((asking ?? this.#unasked)(elicitation));
    try {
      const value = await this.#calls.during(ask, () => request(client, options));
      this.#failures = 0;
      return value;
    } catch (error) {
      if (controller.signal.aborted) throw reasonOf(controller.signal);
      if (error instanceof ProtocolError) this.#failures = 0;
      else if (isLost(error)) this.#forget(client);
      throw error;
    } finally {
      limit.end();
      signal?.removeEventListener("abort", stop);
    }
  }

  readonly #unasked: ModelAttempts = async (elicitation) => {
    const { onQuestion } = this.#options;
    if (onQuestion === undefined) return { action: "cancel" };
    return elicitResult(await onQuestion(questionOf(elicitation), this.name), elicitation);
  };

  /** The next call starts anew. */
  #forget(client: Client): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    this.#transport = undefined;
    this.#failed();
    // Of a server that is reached over HTTP nothing is open that a failure to close could leave behind.
    client.close().catch((error: unknown) => this.#words.add(String(error)));
  }

  /** The first time in a row it is started again at once. */
  #failed(): void {
    const { clock, backoff } = this.#options;
    const { baseMs = 500, maxMs = 30_000 } = backoff;
    const pause = this.#failures === 0 ? 0 : Math.min(maxMs, baseMs * 2 ** (this.#failures - 1));
    this.#failures++;
    this.#notBefore = clock.now() + pause;
  }

  #notStarted(error: unknown): Fault {
    if (Fault.is(error) && error.code === "permission_denied") return error;
    const { code, message, syscall } = error as Partial<NodeJS.ErrnoException>;
    if (code === "ENOENT" && syscall?.startsWith("spawn")) {
      return new Fault(
        "dependency_missing",
        `MCP server ${this.name} did not start: there is no program ${JSON.stringify((this.config as { command?: string }).command)}. Install it, or mend its command (or cwd)`,
        { cause: error },
      );
    }
    return new Fault(
      "tool_failed",
      `MCP server ${this.name} did not start: ${message}${this.#words.remark}`,
      {
        cause: error,
      },
    );
  }

  /** T2: what the model is told, which is what it can act on. */
  #shown(what: string, error: unknown): unknown {
    if (Fault.is(error)) return error;
    const server = `MCP server ${this.name}`;
    const { message } = error as Partial<Error>;
    if (error instanceof ProtocolError)
      return new Fault("tool_failed", `${server} refused ${what}: ${message}`, { cause: error });
    if (isLost(error)) {
      return new Fault(
        "tool_failed",
        `${server} was lost during ${what} (${message}); it may or may not have been done. The next call starts the server again${this.#words.remark}`,
        { cause: error },
      );
    }
    return new Fault("tool_failed", `${what} of ${server} failed: ${message}`, { cause: error });
  }
}

interface SessionTransport {
  readonly sessionId: string | undefined;
  readonly terminateSession: () => Promise<void>;
}

const lostCodes: ReadonlySet<unknown> = new Set([
  SdkErrorCode.ConnectionClosed,
  SdkErrorCode.NotConnected,
  SdkErrorCode.SendFailed,
]);

function isLost(error: unknown): boolean {
  if (error instanceof SdkError) return lostCodes.has(error.code);
  // What `fetch` throws when nobody is there.
  return error instanceof TypeError;
}

/** A program that is not there will not be there in a second. */
function mayPass(error: unknown): boolean {
  if (Fault.is(error)) return error.code === "tool_timeout";
  const { code, syscall } = error as Partial<NodeJS.ErrnoException>;
  return !((code === "ENOENT" || code === "EACCES") && syscall?.startsWith("spawn"));
}
