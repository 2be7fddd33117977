import type { Server as HttpServer } from "node:http";
import { isIP, type AddressInfo } from "node:net";
import { hostname, networkInterfaces } from "node:os";
import { createAdaptorServer } from "@hono/node-server";
import { Fault } from "../../kernel/index.ts";
import { isLoopback, loopbackHosts } from "../http/access/gate.ts";
import type { Server } from "./server.ts";

/** Options of `listen`. Durations are in milliseconds. */
export interface ListenOptions {
  /** Port to listen at. Default: 4711. With 0, the system chooses a free port. */
  readonly port?: number;
  /** Address to listen at. Default: `127.0.0.1`. */
  readonly host?: string;
  /** Maximum number of connections. Further connections are closed immediately. Default: 2_000. */
  readonly maxConnections?: number;
  /** Time in which a client must send the headers of a request. Default: 10_000. */
  readonly headersTimeoutMs?: number;
  /** Time in which a client must send a whole request. Default: 60_000. */
  readonly requestTimeoutMs?: number;
  /** Time that open responses may still take after `close()`. Default: 5_000. */
  readonly closeGraceMs?: number;
}

/** A server that listens. */
export interface Listening {
  /** Such as `http://127.0.0.1:4711`. */
  readonly url: string;
  readonly port: number;
  /** Accepts no more connections, drains the server and resolves when all connections are closed. */
  close(): Promise<void>;
}

const defaultPort = 4711;

/** Serves a fetch handler over HTTP. A server that needs no token (`tokens: null`) listens on loopback addresses only. */
export async function listen(
  server: Pick<Server, "fetch" | "drain"> & Partial<Pick<Server, "needsToken">>,
  options: ListenOptions = {},
): Promise<Listening> {
  const {
    port = defaultPort,
    host = "127.0.0.1",
    maxConnections = 2_000,
    headersTimeoutMs = 10_000,
    requestTimeoutMs = 60_000,
    closeGraceMs = 5_000,
  } = options;
  if (server.needsToken === false && !isLoopback(host))
    throw new Fault(
      "invalid_argument",
      `invalid host ${JSON.stringify(host)} of listen(): a server with tokens: null answers everyone, so it listens on loopback only; use 127.0.0.1, or create the server with tokens`,
    );
  const http = createAdaptorServer({
    fetch: (request, bindings) => server.fetch(request, bindings),
    overrideGlobalObjects: false,
    serverOptions: {
      headersTimeout: headersTimeoutMs,
      requestTimeout: requestTimeoutMs,
      connectionsCheckingInterval: Math.max(10, Math.min(headersTimeoutMs, 5_000)),
    },
  }) as HttpServer;
  http.maxConnections = maxConnections;
  await listening(http, port, host);
  const { port: own } = http.address() as AddressInfo;
  return {
    port: own,
    url: `http://${isIP(host) === 6 ? `[${host}]` : host}:${own}`,
    close: () => close(http, server, closeGraceMs),
  };
}

async function listening(http: HttpServer, port: number, host: string): Promise<void> {
  const failed = Promise.withResolvers<never>();
  http.once("error", failed.reject);
  const ready = new Promise<void>((resolve) => void http.listen(port, host, resolve));
  try {
    await Promise.race([ready, failed.promise]);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const advice = code === "EADDRINUSE" ? "the port is in use; choose another one" : message;
    throw new Fault("invalid_argument", `cannot listen at ${host}:${port}: ${advice}`, { cause: error });
  }
  http.off("error", failed.reject);
}

async function close(http: HttpServer, server: Pick<Server, "drain">, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => void http.close(() => resolve()));
  await server.drain();
  http.closeIdleConnections();
  const timer = setTimeout(() => http.closeAllConnections(), graceMs);
  await closed;
  clearTimeout(timer);
}

/** Returns the host names with which clients can address a server that listens at an address. */
export function hostsOf(host: string): readonly string[] {
  const own = isIP(host) === 6 ? `[${host}]` : host;
  if (isLoopback(host)) return [...loopbackHosts, own];
  if (host !== "0.0.0.0" && host !== "::") return [own];
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return [
    ...loopbackHosts,
    hostname(),
    ...addresses.map(({ address, family }) => (family === "IPv6" ? `[${address}]` : address)),
  ];
}
