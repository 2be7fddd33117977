import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

interface Cut {
  readonly after: string;
  /** Whether the proxy refuses all later connections, until `accept`. */
  readonly isLast: boolean;
}

interface Hold {
  readonly after: string;
  readonly answered: PromiseWithResolvers<void>;
  readonly released: PromiseWithResolvers<void>;
}

/** A TCP proxy before a PostgreSQL server that cuts or holds connections between a statement and its answer. */
export class CuttingProxy {
  readonly url: string;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #cut: Cut | undefined;
  #hold: Hold | undefined;
  #cuts = 0;
  #isRefusing = false;

  private constructor(url: string, server: Server) {
    this.url = url;
    this.#server = server;
  }

  static async open(target: string): Promise<CuttingProxy> {
    const { hostname, port, pathname, username } = new URL(target);
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port: own } = server.address() as AddressInfo;
    const proxy = new CuttingProxy(`postgres://${username}@127.0.0.1:${own}${pathname}`, server);
    server.on("connection", (client) => proxy.#connect(client, connect(Number(port), hostname)));
    return proxy;
  }

  /** Number of connections that were cut. */
  get cuts(): number {
    return this.#cuts;
  }

  /**
   * Cuts the next connection on which the client sends this text. The server receives the statement and executes it; the client
   * gets no answer.
   */
  cutAfter(after: string, { isLast = false } = {}): void {
    this.#cut = { after, isLast };
  }

  /**
   * Holds the answer to the next statement that contains this text. `answered` resolves when the server has executed it, and
   * `release` lets the client have the answer.
   */
  holdAfter(after: string): { readonly answered: Promise<void>; readonly release: () => void } {
    const [answered, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    this.#hold = { after, answered, released };
    return { answered: answered.promise, release: released.resolve };
  }

  /** Accepts connections again. */
  accept(): void {
    this.#isRefusing = false;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, "close");
  }

  #connect(client: Socket, server: Socket): void {
    let cut: Cut | undefined;
    let hold: Hold | undefined;
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        this.#sockets.delete(socket);
        client.destroy();
        server.destroy();
      });
    }
    if (this.#isRefusing) client.destroy();
    client.on("data", (data: Buffer) => {
      if (this.#cut !== undefined && data.includes(this.#cut.after)) {
        cut = this.#cut;
        this.#cut = undefined;
        this.#isRefusing = cut.isLast;
        this.#cuts++;
      }
      if (this.#hold !== undefined && data.includes(this.#hold.after)) {
        hold = this.#hold;
        this.#hold = undefined;
        void hold.released.promise.then(() => (hold = undefined));
      }
      server.write(data);
    });
    server.on("data", (data: Buffer) => {
      // The answer shows that the server has executed the statement.
      if (cut !== undefined && isAnswer(data, cut.after)) client.destroy();
      else if (hold === undefined || !isAnswer(data, hold.after)) client.write(data);
      else {
        hold.answered.resolve();
        void hold.released.promise.then(() => client.write(data));
      }
    });
  }
}

/** Whether data of the server may answer a statement. The server may send other messages before it answers COMMIT. */
function isAnswer(data: Buffer, statement: string): boolean {
  return statement !== "COMMIT" || data.includes("COMMIT\0");
}
