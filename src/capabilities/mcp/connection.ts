import { AsyncLocalStorage } from "node:async_hooks";
import type {
  Client,
  ClientOptions,
  ElicitResult,
  Implementation,
  RequestOptions,
  Transport,
} from "@modelcontextprotocol/client";
import { Fault, type ApprovalDecision, type Clock, type JsonObject } from "../../kernel/index.ts";
import { needingPackage } from "../optional-package.ts";
import { type Elicitation, elicitResult, questionOf } from "./elicitation.ts";
import { StderrTail } from "./stderr-tail.ts";
import { addressSuffix, failureText } from "./http-problem.ts";
import { isStdio, type ServerConfig } from "./server-config.ts";
import { reasonOf, delay, TimeLimit, unlessAborted } from "./time-limit.ts";
import { trustingValidator } from "./trusting-validator.ts";
import type * as Driver from "./transport.ts";

/** Answers a question that the server asks a person during a call. */
type ElicitationHandler = (elicitation: Elicitation) => Promise<ElicitResult>;

/**
 * The calls of a server that are in flight, to find the call to which a question belongs. The protocol does not
 * name the call. A question on the response stream of an HTTP request belongs to that request; any other question
 * belongs to the only call in flight. If several calls are in flight, it belongs to none of them, so that a person
 * never sees a question of another user's run.
 */
class InFlightCalls {
  readonly #open = new Set<ElicitationHandler>();
  readonly #storage = new AsyncLocalStorage<ElicitationHandler>();

  /** Runs a call and answers questions during it with `asking`. */
  async during<Value>(asking: ElicitationHandler, work: () => Promise<Value>): Promise<Value> {
    this.#open.add(asking);
    try {
      return await this.#storage.run(asking, work);
    } finally {
      this.#open.delete(asking);
    }
  }

  /**
   * Runs work that continues after the current call, such as the start of a server, outside the call's async
   * context.
   */
  outside<Value>(work: () => Value): Value {
    return this.#storage.exit(work);
  }

  /** Returns the handler of the call to which the current question belongs, or `undefined` if that is not known. */
  find(): ElicitationHandler | undefined {
    const known = this.#storage.getStore();
    if (known !== undefined && this.#open.has(known)) return known;
    const [only, ...others] = this.#open;
    return others.length === 0 ? only : undefined;
  }

  /** Number of calls in flight. */
  get size(): number {
    return this.#open.size;
  }
}

/** How starts of a server are retried. */
export interface Backoff {
  /** Maximum number of attempts of one start, before the waiting calls fail. Default: 3. */
  readonly attempts?: number;
  /**
   * Milliseconds before the second retry in a row, doubled for each further one. The first retry is immediate. Default:
   * 500.
   */
  readonly baseMs?: number;
  /** Maximum number of milliseconds between two attempts. Default: 30_000. */
  readonly maxMs?: number;
}

/** Answers a question that a server asks outside a call. */
export type OnQuestion = (question: JsonObject, server: string) => Promise<ApprovalDecision>;

/** Options of `Connection`. */
export interface ConnectionOptions {
  /** Name of the server in the configuration. */
  readonly name: string;
  /** Configuration of the server. */
  readonly config: ServerConfig;
  /** Clock of the timeouts and delays. */
  readonly clock: Clock;
  /** Name and version under which this client introduces itself. */
  readonly clientInfo: Implementation;
  /** How starts of the server are retried. */
  readonly backoff: Backoff;
  /** Called when the server reports that its tools have changed. */
  readonly onToolsChanged: () => void;
  /** Answers questions that do not belong to a call. If absent, such questions are cancelled. */
  readonly onQuestion?: OnQuestion;
  /** Receives problems that do not stop an operation. */
  readonly onWarning: (warning: Fault) => void;
  /** Called before each start of the server. If it throws, the server is not started. */
  readonly beforeStart?: () => Promise<void>;
}

/** Options of one call. */
export interface CallOptions {
  /** Cancels the call. */
  readonly signal?: AbortSignal;
  /** Receives the progress that the server reports. */
  readonly progress?: (update: JsonObject) => void;
  /** Answers questions that the server asks during the call. Default: `onQuestion` of the connection. */
  readonly onElicitation?: ElicitationHandler;
}

/**
 * Maximum delay of a platform timer. The MCP package gets it as its timeout, because `TimeLimit` ends calls
 * instead.
 */
const maxTimerMs = 2 ** 31 - 1;

/** Time in which a server must end a session when the connection closes, in milliseconds. */
const endSessionMs = 5_000;

/**
 * Connection to one server. The server is started at the first call, and again after it is lost, with increasing delays
 * while it fails without answering a call. A call that was in flight when the server was lost is not repeated, because
 * it may have been executed.
 */
export class Connection {
  readonly name: string;
  readonly config: ServerConfig;
  readonly #options: ConnectionOptions;
  readonly #calls = new InFlightCalls();
  readonly #closing = new AbortController();
  #stderr = new StderrTail();
  /** The code that uses the MCP package. It is loaded at the first start. */
  #driver: typeof Driver | undefined;
  #client: Client | undefined;
  #transport: Transport | undefined;
  #starting: Promise<Client> | undefined;
  /** Number of failures in a row, without an answer in between. */
  #failures = 0;
  /** Time before which the server is not started again, in epoch milliseconds. */
  #notBefore = 0;

  constructor(options: ConnectionOptions) {
    this.name = options.name;
    this.config = options.config;
    this.#options = options;
  }

  /** Process id of the server's program, or `null` if it is not running. */
  get pid(): number | null {
    const { pid } = (this.#transport ?? {}) as { readonly pid?: number | null };
    return pid ?? null;
  }

  /**
   * Sends a request and returns its result. `what` names the request in messages, for example `tool read_file`. A
   * request that the server refused before executing it, for a missing sign-in or a lost session, is sent once more.
   */
  async call<Value>(
    what: string,
    request: (client: Client, options: RequestOptions) => Promise<Value>,
    options: CallOptions = {},
  ): Promise<Value> {
    const client = await this.client(options.signal);
    try {
      return await this.#request(client, what, request, options);
    } catch (error) {
      if (!(await this.#recovered(client, error))) throw this.#toFault(what, error);
    }
    try {
      return await this.#request(await this.client(options.signal), what, request, options);
    } catch (error) {
      throw this.#toFault(what, error);
    }
  }

  /**
   * Handles an error that the server returned before executing the request. Returns `true` if the request can be sent
   * again.
   */
  async #recovered(client: Client, error: unknown): Promise<boolean> {
    // The server requires a sign-in.
    if (this.#driver?.isUnauthorized(error)) {
      await this.#driver.signIn(this.name, this.config, this.#transport, error);
      return true;
    }
    // The server no longer knows our session.
    const isForgotten = this.#driver?.isForgotten(error) === true;
    if (isForgotten) this.#forget(client);
    return isForgotten;
  }

  /**
   * Returns the client, and starts the server if needed. The signal ends only the wait, not the start, because other
   * calls may wait for it.
   */
  client(signal?: AbortSignal): Promise<Client> {
    if (this.#closing.signal.aborted)
      return Promise.reject(new Fault("unsupported", `MCP server ${this.name} is closed`));
    if (this.#client !== undefined) return Promise.resolve(this.#client);
    this.#starting ??= this.#calls
      .outside(() => this.#start())
      .finally(() => {
        this.#starting = undefined;
      });
    return unlessAborted(this.#starting, signal);
  }

  /** Ends the server's program or session. Calls in flight fail. */
  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort(new Fault("unsupported", `MCP server ${this.name} is closed`));
    const client = await this.#starting?.catch(() => undefined);
    const open = client ?? this.#client;
    this.#client = undefined;
    await this.#endSession();
    await open?.close();
  }

  /**
   * Asks a server over HTTP to end the session. If the server no longer exists or has forgotten the session,
   * nothing needs to be done. If it refuses or does not answer in time, it will end the session by itself; the
   * caller gets a warning and continues.
   */
  async #endSession(): Promise<void> {
    const { sessionId, terminateSession } = (this.#transport ?? {}) as Partial<SessionTransport>;
    if (sessionId === undefined || terminateSession === undefined) return;
    const { clock, onWarning } = this.#options;
    const controller = new AbortController();
    const limit = new TimeLimit(clock, endSessionMs, () =>
      controller.abort(new Fault("tool_timeout", `the server did not answer within ${endSessionMs} ms`)),
    );
    try {
      await unlessAborted(terminateSession.call(this.#transport), controller.signal);
    } catch (error) {
      if (this.#driver?.isLost(error) || this.#driver?.isForgotten(error)) return;
      const reason = failureText(error);
      onWarning(
        new Fault("tool_failed", `${this.#server} did not end its session: ${reason}`, { cause: error }),
      );
    } finally {
      limit.end();
    }
  }

  async #start(): Promise<Client> {
    const { clock, backoff } = this.#options;
    const { attempts = 3 } = backoff;
    for (let attempt = 1; ; attempt++) {
      await delay(clock, this.#notBefore - clock.now(), this.#closing.signal);
      await this.#options.beforeStart?.();
      try {
        return await this.#connect();
      } catch (error) {
        this.#failed();
        if (attempt >= attempts || !isTransient(error) || this.#closing.signal.aborted)
          throw this.#notStarted(error);
      }
    }
  }

  async #connect(): Promise<Client> {
    const { clock, clientInfo, name } = this.#options;
    const words = new StderrTail();
    this.#stderr = words;
    const driver = await needingPackage(
      "@modelcontextprotocol/client",
      `MCP server ${name}`,
      () => import("./transport.ts"),
    );
    this.#driver = driver;
    const client = driver.newClient(clientInfo, this.#clientOptions());
    client.setRequestHandler("elicitation/create", ({ params }) => this.#answerQuestion(params));
    const controller = new AbortController();
    const stop = (): void => controller.abort(reasonOf(this.#closing.signal));
    const { startTimeoutMs = 30_000 } = this.config;
    const limit = new TimeLimit(clock, startTimeoutMs, () =>
      controller.abort(new Fault("tool_timeout", `the server did not answer within ${startTimeoutMs} ms`)),
    );
    this.#closing.signal.addEventListener("abort", stop);
    try {
      const options = { timeout: maxTimerMs, signal: controller.signal };
      const connecting = driver.connect(name, this.config, { client, words, options });
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

  #clientOptions(): ClientOptions {
    const { protocol = "initialize" } = this.config;
    const mode = protocol === "initialize" ? "legacy" : protocol === "auto" ? "auto" : { pin: protocol };
    return {
      jsonSchemaValidator: trustingValidator,
      capabilities: { elicitation: { form: { applyDefaults: true }, url: {} } },
      versionNegotiation: { mode },
      listChanged: {
        tools: { autoRefresh: false, debounceMs: 0, onChanged: () => this.#options.onToolsChanged() },
      },
    };
  }

  async #answerQuestion(elicitation: Elicitation): ReturnType<ElicitationHandler> {
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
    { signal, progress, onElicitation: asking }: CallOptions,
  ): Promise<Value> {
    const controller = new AbortController();
    const stop = (): void => controller.abort(signal === undefined ? undefined : reasonOf(signal));
    if (signal?.aborted) throw reasonOf(signal);
    signal?.addEventListener("abort", stop);
    const [silence, whole] = this.#limits(what, (fault) => controller.abort(fault));
    const options: RequestOptions = {
      timeout: maxTimerMs,
      signal: controller.signal,
      onprogress: ({ progress: done, total, message }) => {
        silence.renew();
        progress?.({
          progress: done,
          ...(total !== undefined && { total }),
          ...(message !== undefined && { message }),
        });
      },
    };
    const ask: ElicitationHandler = (elicitation) => {
      silence.renew();
      return whole.heldDuring(silence.heldDuring((asking ?? this.#askOutsideCall)(elicitation)));
    };
    try {
      const value = await this.#calls.during(ask, () => request(client, options));
      this.#failures = 0;
      return value;
    } catch (error) {
      if (controller.signal.aborted) throw reasonOf(controller.signal);
      if (this.#driver?.isRefused(error)) this.#failures = 0;
      else if (this.#driver?.isLost(error)) this.#forget(client);
      throw error;
    } finally {
      silence.end();
      whole.end();
      signal?.removeEventListener("abort", stop);
    }
  }

  /**
   * Returns the two timeouts of a call: for the time without any activity, and for the total time. Neither counts
   * the time in which a person is asked.
   */
  #limits(what: string, over: (fault: Fault) => void): readonly [TimeLimit, TimeLimit] {
    const { timeoutMs = 60_000, totalTimeoutMs = 600_000 } = this.config;
    const limit = (ms: number, problem: string): TimeLimit =>
      new TimeLimit(this.#options.clock, ms, () =>
        over(new Fault("tool_timeout", `${what} of ${this.#server} ${problem} ${ms} ms`)),
      );
    return [
      limit(timeoutMs, "sent neither a result nor progress for"),
      limit(totalTimeoutMs, "sent no result within"),
    ];
  }

  readonly #askOutsideCall: ElicitationHandler = async (elicitation) => {
    const { onQuestion } = this.#options;
    if (onQuestion === undefined) return { action: "cancel" };
    return elicitResult(await onQuestion(questionOf(elicitation), this.name), elicitation);
  };

  /** Drops a lost client. The next call starts the server again. */
  #forget(client: Client): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    this.#transport = undefined;
    this.#failed();
    // The server is lost, so closing the client only releases local resources. Its error is added to the text that later errors quote.
    client.close().catch((error: unknown) => this.#stderr.add(String(error)));
  }

  /**
   * Counts a failure and sets the earliest time of the next start. After the first failure in a row the server restarts
   * at once.
   */
  #failed(): void {
    const { clock, backoff } = this.#options;
    const { baseMs = 500, maxMs = 30_000 } = backoff;
    const pause = this.#failures === 0 ? 0 : Math.min(maxMs, baseMs * 2 ** (this.#failures - 1));
    this.#failures++;
    this.#notBefore = clock.now() + pause;
  }

  /** Names the server in messages: its name, and over HTTP its address. */
  get #server(): string {
    return `MCP server ${this.name}${addressSuffix(this.config)}`;
  }

  #notStarted(error: unknown): Fault {
    if (Fault.is(error) && (error.code === "permission_denied" || error.code === "dependency_missing"))
      return error;
    const { code, syscall } = error as Partial<NodeJS.ErrnoException>;
    if (code === "ENOENT" && syscall?.startsWith("spawn")) {
      return new Fault(
        "dependency_missing",
        `MCP server ${this.name} did not start: the program ${JSON.stringify((this.config as { command?: string }).command)} does not exist. Install it, or correct its command or cwd`,
        { cause: error },
      );
    }
    return new Fault(
      "tool_failed",
      `${this.#server} ${isStdio(this.config) ? "did not start" : "did not start a session"}: ${failureText(error)}${this.#stderr.suffix}`,
      {
        cause: error,
      },
    );
  }

  /** T2: converts an error to a fault whose message tells the model what happened and what it can do. */
  #toFault(what: string, error: unknown): unknown {
    if (Fault.is(error)) return error;
    const server = this.#server;
    const message = failureText(error);
    if (this.#driver?.isRefused(error))
      return new Fault("tool_failed", `${server} refused ${what}: ${message}`, { cause: error });
    if (this.#driver?.isLost(error)) {
      return new Fault(
        "tool_failed",
        `${server} was lost during ${what} (${message}); the request may or may not have been executed. The next call starts the server again${this.#stderr.suffix}`,
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

/** Whether a failed start may succeed later. A missing program is not, because it will not appear within seconds. */
function isTransient(error: unknown): boolean {
  if (Fault.is(error)) return error.code === "tool_timeout";
  const { code, syscall } = error as Partial<NodeJS.ErrnoException>;
  return !((code === "ENOENT" || code === "EACCES") && syscall?.startsWith("spawn"));
}
