import { once } from "node:events";
import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { pipeline, type Duplex } from "node:stream";
import { Fault } from "../../kernel/index.ts";
import { checkedAddress, type AddressCheckOptions } from "../web/address-check.ts";

/** Options of `FilterProxy`. */
export interface FilterProxyOptions extends AddressCheckOptions {
  /** Whether a connection to the URL is allowed. */
  readonly allow: (url: URL) => boolean;
  /** Receives the host of each refused connection, and the reason. */
  readonly onRefused: (host: string, fault: Fault) => void;
}

/** Headers that apply only to the connection to the proxy (RFC 9110, 7.6.1). */
const perConnection = [
  "connection",
  "keep-alive",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "transfer-encoding",
  "upgrade",
];

/**
 * HTTP proxy on this machine through which a browser reaches the network. All traffic of the browser goes through
 * it: requests of pages, frames, workers and service workers, redirects and WebSockets. The proxy resolves host
 * names itself, refuses private addresses by the rule of the tool `fetch`, and connects to the address that it has
 * checked.
 *
 * For an unencrypted request, the proxy checks the URL. Of an encrypted connection the proxy sees only host and
 * port. Such a connection is allowed if `grant()` has named a URL there, or if `allow` accepts the root URL of that
 * origin.
 */
export class FilterProxy {
  readonly #options: FilterProxyOptions;
  readonly #server: Server;
  readonly #sockets = new Set<Duplex>();
  /** Hosts with ports of the URLs that were granted. */
  readonly #granted = new Set<string>();

  private constructor(options: FilterProxyOptions) {
    this.#options = options;
    this.#server = createServer((incoming, outgoing) => void this.#forward(incoming, outgoing));
    this.#server.on("connect", (incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
      void this.#tunnel(incoming.url ?? "", socket, head);
    });
  }

  /** Starts a proxy on a free port of the loopback interface. */
  static async start(options: FilterProxyOptions): Promise<FilterProxy> {
    const proxy = new FilterProxy(options);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  /** URL of the proxy. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Allows encrypted connections to the host and port of a URL. */
  grant(url: URL): void {
    this.#granted.add(hostAndPort(url));
  }

  /** Ends all connections and stops the proxy. */
  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #forward(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const url = URL.parse(incoming.url ?? "");
    try {
      if (url?.protocol !== "http:") throw refused(incoming.url ?? "");
      if (!this.#options.allow(url)) throw refused(url.href);
      const { address, family } = await checkedAddress(url, this.#options);
      if (outgoing.destroyed) return;
      const headers = Object.entries(incoming.headers).filter(([name]) => !perConnection.includes(name));
      const sent = request(url, {
        agent: false,
        method: incoming.method ?? "GET",
        headers: Object.fromEntries(headers),
        // The checked address is the answer to every lookup of the host name.
        lookup: (_hostname, { all }, give) =>
          all === true ? give(null, [{ address, family }]) : give(null, address, family),
      });
      outgoing.once("close", () => sent.destroy());
      sent.once("response", (response) => {
        if (outgoing.destroyed) return;
        outgoing.writeHead(response.statusCode ?? 502, response.rawHeaders);
        pipeline(response, outgoing, () => sent.destroy());
      });
      pipeline(incoming, sent, (error) => error && outgoing.destroy());
      sent.once("error", () => outgoing.destroy());
    } catch (error) {
      this.#options.onRefused(url?.host ?? "", Fault.from(error));
      // The browser reports a connection that ends as an error of the network, and not as a page.
      outgoing.destroy();
    }
  }

  /** Connects a CONNECT request: an encrypted connection or a WebSocket. */
  async #tunnel(target: string, socket: Duplex, head: Buffer): Promise<void> {
    this.#watch(socket);
    const address = await this.#tunnelAddress(target);
    if (address === undefined) return void socket.end("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n");
    if (socket.destroyed) return;
    const far = this.#watch(connect(address.port, address.host));
    socket.once("close", () => far.destroy());
    far.once("close", () => socket.destroy());
    far.once("connect", () => {
      if (socket.destroyed) return;
      socket.write("HTTP/1.1 200 Connection Established\r\n\r\n");
      far.write(head);
      pipeline(socket, far, socket, () => far.destroy());
    });
  }

  /** Returns the checked address of a CONNECT request, or `undefined` if it is refused. */
  async #tunnelAddress(target: string): Promise<{ host: string; port: number } | undefined> {
    let host = target;
    try {
      const url = tunnelUrl(target);
      ({ host } = url);
      if (!this.#granted.has(hostAndPort(url)) && !this.#options.allow(url)) throw refused(url.origin);
      const { address } = await checkedAddress(url, this.#options);
      return { host: address, port: portOf(url) };
    } catch (error) {
      this.#options.onRefused(host, Fault.from(error));
      return undefined;
    }
  }

  /** Tracks a socket until it closes. Its errors end it and need no other reaction. */
  #watch<Socket extends Duplex>(socket: Socket): Socket {
    this.#sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.once("close", () => this.#sockets.delete(socket));
    return socket;
  }
}

function refused(address: string): Fault {
  return new Fault(
    "permission_denied",
    `${address} may not be opened: the options of this browser do not allow it`,
  );
}

/** Returns the root URL for the target `host:port` of a CONNECT request, as http for port 80 and else as https. */
function tunnelUrl(target: string): URL {
  const url = URL.parse(target.endsWith(":80") ? `http://${target}/` : `https://${target}/`);
  if (url === null || url.pathname !== "/") throw refused(target);
  return url;
}

function portOf({ protocol, port }: URL): number {
  return port === "" ? (protocol === "http:" ? 80 : 443) : Number(port);
}

function hostAndPort(url: URL): string {
  return `${url.hostname}:${portOf(url)}`;
}
