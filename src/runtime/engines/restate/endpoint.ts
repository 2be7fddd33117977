import { createServer, type Http2Server, type ServerHttp2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import { Fault } from "../../../kernel/index.ts";
import { runObject, type RunObjectOptions, type Sdk, type SliceDriver } from "./run-object.ts";

export interface EndpointOptions extends RunObjectOptions {
  /** Address on which the worker accepts invocations. */
  readonly host: string;
  readonly port: number;
  /** Called with the port when the worker accepts invocations. */
  readonly onListen: ((port: number) => Promise<void> | void) | undefined;
}

/** Time in which Restate must take the results of the last slices when the endpoint closes. Milliseconds. */
const closeMs = 5_000;

/** The HTTP/2 server through which Restate invokes the objects of runs in this process. */
export class Endpoint {
  readonly #options: EndpointOptions;
  readonly #sessions = new Set<ServerHttp2Session>();
  #server: Http2Server | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: EndpointOptions) {
    this.#options = options;
  }

  async open(driver: SliceDriver): Promise<void> {
    const { host, port, onListen } = this.#options;
    const sdk = await loadSdk();
    const services = [runObject(sdk, this.#options, driver)];
    const server = createServer(sdk.createEndpointHandler({ services, logger: () => undefined }));
    server.on("session", (session) => {
      if (this.#closed !== undefined) session.close();
      this.#sessions.add(session);
      session.on("close", () => this.#sessions.delete(session));
    });
    this.#server = server;
    await listening(server, host, port);
    await onListen?.((server.address() as AddressInfo).port);
  }

  /** Accepts no more invocations, so that Restate sends them to other workers. The open ones continue. */
  stopAccepting(): void {
    const server = this.#server;
    if (server === undefined || this.#closed !== undefined) return;
    this.#closed = new Promise((resolve) => {
      server.close(() => resolve());
    });
    for (const session of this.#sessions) session.close();
  }

  /** Answers the open invocations, then ends the connections. Restate repeats what it did not take in time. */
  async close(): Promise<void> {
    this.stopAccepting();
    const timer = setTimeout(() => {
      for (const session of this.#sessions) session.destroy();
    }, closeMs);
    await this.#closed;
    clearTimeout(timer);
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
