import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

/** Distributes connections over the workers that listen, in turn. Stands for the load balancer of a deployment. */
export class Balancer {
  readonly #ports = new Set<number>();
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;
  #turn = 0;

  private constructor() {
    this.#server = createServer((socket) => {
      this.#keep(socket);
      this.#forward(socket, this.#ports.size);
    });
  }

  static async open(): Promise<Balancer> {
    const balancer = new Balancer();
    balancer.#server.listen(0, "127.0.0.1");
    await once(balancer.#server, "listening");
    return balancer;
  }

  get uri(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  add(port: number): void {
    this.#ports.add(port);
  }

  remove(port: number): void {
    this.#ports.delete(port);
  }

  /** Ends all connections. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    this.cut();
    this.#server.close();
    await once(this.#server, "close");
  }

  /** Connects to the next worker. Tries the others if it does not listen any more. */
  #forward(socket: Socket, attempts: number): void {
    const ports = [...this.#ports];
    const port = ports[this.#turn++ % Math.max(1, ports.length)];
    if (port === undefined || attempts === 0) {
      socket.destroy();
      return;
    }
    const worker = connect(port, "127.0.0.1");
    this.#keep(worker);
    worker.once("connect", () => {
      worker.off("error", retry);
      socket.pipe(worker).pipe(socket);
      for (const [one, other] of [
        [socket, worker],
        [worker, socket],
      ] as const)
        one.on("close", () => other.destroy());
    });
    const retry = (): void => {
      this.#ports.delete(port);
      this.#forward(socket, attempts - 1);
    };
    worker.once("error", retry);
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.#sockets.delete(socket));
  }
}
