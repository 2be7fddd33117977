import { createServer, type Http2Server, type ServerHttp2Session } from "node:http2";
import { Server as NetServer, type AddressInfo } from "node:net";
import { describeValue, Fault } from "../../../kernel/index.ts";
import { runObject, type RunObjectOptions, type Sdk, type SliceDriver } from "./run-object.ts";

export interface EndpointOptions extends RunObjectOptions {
  /** Address on which the worker accepts invocations. */
  readonly host: string;
  readonly port: number;
  /** The public keys of Restate. If there are any, the worker refuses requests without a valid signature. */
  readonly identityKeys: readonly string[];
  /** Called with the port when the worker accepts invocations. */
  readonly onListen: ((port: number) => Promise<void> | void) | undefined;
}

/** Maximum time in which Restate must take the results of the last slices when the endpoint closes. Milliseconds. */
const closeMs = 5_000;

/** The HTTP/2 server through which Restate invokes the objects of runs in this process. */
export class Endpoint {
  readonly #options: EndpointOptions;
  /** The connections of Restate, with the number of invocations that are open on each. */
  readonly #sessions = new Map<ServerHttp2Session, number>();
  #server: Http2Server | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: EndpointOptions) {
    this.#options = options;
  }

  /** Whether every slice was requested by a Restate server that signs with one of the keys. */
  get isSigned(): boolean {
    return this.#options.identityKeys.length > 0;
  }

  async open(driver: SliceDriver): Promise<void> {
    const { host, port, onListen } = this.#options;
    const sdk = await loadSdk();
    const server = createServer(this.#handler(sdk, driver));
    server.on("session", (session) => this.#watch(session));
    this.#server = server;
    await listening(server, host, port);
    await onListen?.((server.address() as AddressInfo).port);
  }

  #handler(sdk: Sdk, driver: SliceDriver): ReturnType<Sdk["createEndpointHandler"]> {
    const services = [runObject(sdk, this.#options, driver)];
    const options = { services, logger: () => undefined };
    if (!this.isSigned) return sdk.createEndpointHandler(options);
    const identityKeys = [...this.#options.identityKeys];
    try {
      return sdk.createEndpointHandler({ ...options, identityKeys });
    } catch (error) {
      throw new Fault(
        "invalid_argument",
        `invalid identityKeys ${describeValue(identityKeys.join(" "))} of restate(): expected the public keys that Restate prints when it starts, such as "publickeyv1_..."`,
        { cause: error },
      );
    }
  }

  /** Stops accepting invocations, so that Restate sends them to other workers. Open invocations continue. */
  stopAccepting(): void {
    const server = this.#server;
    if (server === undefined || this.#closed !== undefined) return;
    this.#closed = new Promise((resolve) => {
      // `close` of an HTTP/2 server also says GOAWAY on every connection.
      NetServer.prototype.close.call(server, () => resolve());
    });
    for (const [session, open] of this.#sessions) {
      // Restate gives up all invocations of a connection on which it gets GOAWAY and then wants to start another one.
      if (open === 0) session.close();
      else session.settings({ maxConcurrentStreams: 0 });
    }
  }

  /**
   * Answers the open invocations, then closes the connections. Restate repeats an invocation whose answer it did
   * not receive in time.
   */
  async close(): Promise<void> {
    this.stopAccepting();
    const timer = setTimeout(() => {
      for (const session of this.#sessions.keys()) session.destroy();
    }, closeMs);
    await this.#closed;
    clearTimeout(timer);
  }

  /**
   * Counts the invocations of a connection. After `stopAccepting`, a connection without open invocations is closed.
   */
  #watch(session: ServerHttp2Session): void {
    const count = (change: number): void => {
      if (session.destroyed) return;
      const open = (this.#sessions.get(session) ?? 0) + change;
      this.#sessions.set(session, open);
      if (open === 0 && this.#closed !== undefined) session.close();
    };
    count(0);
    session.on("stream", (stream) => {
      count(1);
      stream.on("close", () => count(-1));
    });
    session.on("close", () => this.#sessions.delete(session));
  }
}

async function listening(server: Http2Server, host: string, port: number): Promise<void> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject).listen(port, host, resolve);
    });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const advice = code === "EADDRINUSE" ? "the port is in use; choose another one" : message;
    throw new Fault("invalid_argument", `Restate cannot be served at ${host}:${port}: ${advice}`, {
      cause: error,
    });
  }
}

async function loadSdk(): Promise<Sdk> {
  try {
    return await import("@restatedev/restate-sdk");
  } catch (error) {
    throw new Fault(
      "dependency_missing",
      "a worker of the Restate engine needs the package @restatedev/restate-sdk: npm install @restatedev/restate-sdk",
      { cause: error },
    );
  }
}
