import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { RestateAdmin } from "../../src/assembly/restate.ts";
import type { SiteAddress } from "../crash/site-engine.ts";
import { Balancer } from "./balancer.ts";
import type { RestateServer } from "./server.ts";

let services = 0;

interface SiteOptions {
  /** Returns the port under which Restate reaches a worker that listens at `port`. Default: the same port. */
  readonly through?: (place: number, port: number) => Promise<number>;
}

/** The address of worker processes in Restate: they send their ports, which a balancer then serves. */
export class WorkerSite {
  readonly service = `site-${process.pid}-${++services}`;
  readonly #server: RestateServer;
  readonly #balancer: Balancer;
  readonly #registry: Server;
  readonly #through: NonNullable<SiteOptions["through"]>;
  #deploying: Promise<string> | undefined;

  private constructor(
    server: RestateServer,
    balancer: Balancer,
    { through = async (_, port) => port }: SiteOptions,
  ) {
    this.#server = server;
    this.#balancer = balancer;
    this.#through = through;
    this.#registry = createServer((request, response) => {
      const [, place = "", port = ""] = (request.url ?? "").split("/");
      this.#register(Number(place), Number(port)).then(
        () => response.end(),
        (error: unknown) => response.writeHead(500).end(String(error)),
      );
    });
  }

  static async open(server: RestateServer, options: SiteOptions = {}): Promise<WorkerSite> {
    const site = new WorkerSite(server, await Balancer.open(), options);
    site.#registry.listen(0, "127.0.0.1");
    await once(site.#registry, "listening");
    return site;
  }

  /** What a worker in this place must know. */
  address(place: number, ingressUrl = this.#server.ingressUrl): SiteAddress {
    const { port } = this.#registry.address() as AddressInfo;
    const { identityKey } = this.#server;
    const registerUrl = `http://127.0.0.1:${port}/${place}`;
    return { ingressUrl, service: this.service, registerUrl, ...(identityKey && { identityKey }) };
  }

  async close(): Promise<void> {
    this.#registry.closeAllConnections();
    this.#registry.close();
    await this.#balancer.close();
  }

  async #register(place: number, port: number): Promise<void> {
    this.#balancer.add(await this.#through(place, port));
    this.#deploying ??= new RestateAdmin(this.#server.adminUrl).deploy(this.#balancer.uri);
    await this.#deploying;
  }
}
