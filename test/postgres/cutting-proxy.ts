import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

interface Cut {
  readonly after: string;
  /** Whether the proxy refuses all later connections, until `accept`. */
  readonly isLast: boolean;
}

/** A TCP proxy before a PostgreSQL server that cuts connections between a statement and its answer. */
export class CuttingProxy {
  readonly url: string;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #cut: Cut | undefined;
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
    let isCut = this.#isRefusing;
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        this.#sockets.delete(socket);
        client.destroy();
        server.destroy();
      });
    }
    if (isCut) client.destroy();
    client.on("data", (data: Buffer) => {
      if (this.#cut !== undefined && data.includes(this.#cut.after)) {
        this.#isRefusing = this.#cut.isLast;
        this.#cut = undefined;
        this.#cuts++;
        isCut = true;
      }
      server.write(data);
    });
    server.on("data", (data: Buffer) => {
      // The answer shows that the server has executed the statement.
      if (isCut) client.destroy();
      else client.write(data);
    });
  }
}
