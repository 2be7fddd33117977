import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

/** How a proxy disturbs its connections, until `heal`. */
export type LinkFault =
  /** All connections are closed, and new ones too. */
  | "cut"
  /** Nothing passes. What was sent meanwhile passes afterwards. */
  | "delay"
  /** The client receives the end of the stream, and what it sends still reaches the server. */
  | "half-close";

interface Link {
  readonly client: Socket;
  readonly server: Socket;
}

/** A TCP proxy between one worker and its server that disturbs the connections. */
export class FaultyProxy {
  readonly port: number;
  readonly #listener: Server;
  readonly #links = new Set<Link>();
  #fault: LinkFault | undefined;
  #cuts = 0;

  private constructor(listener: Server) {
    this.#listener = listener;
    this.port = (listener.address() as AddressInfo).port;
  }

  static async open(host: string, port: number): Promise<FaultyProxy> {
    const listener = createServer({ allowHalfOpen: true });
    listener.listen(0, "127.0.0.1");
    await once(listener, "listening");
    const proxy = new FaultyProxy(listener);
    listener.on("connection", (client) => proxy.#accept(client, host, port));
    return proxy;
  }

  /** Number of connections that a cut has closed. */
  get cuts(): number {
    return this.#cuts;
  }

  disturb(fault: LinkFault): void {
    this.#fault = fault;
    for (const link of this.#links) this.#apply(link);
  }

  heal(): void {
    this.#fault = undefined;
    for (const { client, server } of this.#links) {
      client.resume();
      server.resume();
    }
  }

  async close(): Promise<void> {
    for (const link of this.#links) end(link);
    const closed = once(this.#listener, "close");
    this.#listener.close();
    await closed;
  }

  #accept(client: Socket, host: string, port: number): void {
    const server = connect({ host, port, allowHalfOpen: true });
    const link = { client, server };
    this.#links.add(link);
    for (const socket of [client, server]) {
      socket.on("error", () => undefined);
      socket.on("close", () => {
        this.#links.delete(link);
        end(link);
      });
    }
    client.on("data", (data: Buffer) => void (server.writable && server.write(data)));
    server.on("data", (data: Buffer) => void (client.writable && client.write(data)));
    client.on("end", () => server.end());
    server.on("end", () => client.end());
    this.#apply(link);
  }

  #apply(link: Link): void {
    const { client, server } = link;
    if (this.#fault === "cut") {
      this.#cuts++;
      end(link);
    } else if (this.#fault === "half-close") client.end();
    else if (this.#fault === "delay") {
      client.pause();
      server.pause();
    }
  }
}

function end({ client, server }: Link): void {
  client.destroy();
  server.destroy();
}
