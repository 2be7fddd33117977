import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { RestateAdmin } from "../../src/assembly/restate.ts";
import type { SiteAddress } from "../crash/site-engine.ts";
import { Balancer } from "./balancer.ts";
import type { RestateServer } from "./server.ts";

interface CaseSite {
  readonly balancer: Balancer;
  deploying?: Promise<string>;
}

/** Addresses in Restate for the cases of a crash test: the workers of a case send their service and their port. */
export class CaseSites {
  readonly #server: RestateServer;
  readonly #registry: Server;
  readonly #sites = new Map<string, Promise<CaseSite>>();

  private constructor(server: RestateServer) {
    this.#server = server;
    this.#registry = createServer((request, response) => {
      const [, service = "", port = ""] = (request.url ?? "").split("/");
      this.#register(service, Number(port)).then(
        () => response.end(),
        (error: unknown) => response.writeHead(500).end(String(error)),
      );
    });
  }

  static async open(server: RestateServer): Promise<CaseSites> {
    const sites = new CaseSites(server);
    sites.#registry.listen(0, "127.0.0.1");
    await once(sites.#registry, "listening");
    return sites;
  }

  /** What the workers of all cases must know. */
  get address(): SiteAddress {
    const { port } = this.#registry.address() as AddressInfo;
    const { ingressUrl, identityKey } = this.#server;
    const registerUrl = `http://127.0.0.1:${port}`;
    return { ingressUrl, service: `case-${process.pid}`, registerUrl, ...(identityKey && { identityKey }) };
  }

  async close(): Promise<void> {
    this.#registry.closeAllConnections();
    this.#registry.close();
    for (const site of this.#sites.values()) await (await site).balancer.close();
  }

  async #register(service: string, port: number): Promise<void> {
    const opening = this.#sites.get(service) ?? openSite();
    this.#sites.set(service, opening);
    const site = await opening;
    site.balancer.add(port);
    site.deploying ??= new RestateAdmin(this.#server.adminUrl).deploy(site.balancer.uri);
    await site.deploying;
  }
}

async function openSite(): Promise<CaseSite> {
  return { balancer: await Balancer.open() };
}
