import { Fault } from "../../../kernel/index.ts";
import { localAccess, type Access } from "./access.ts";
import type { SenderBindings } from "./address-key.ts";
import type { Tokens } from "./tokens.ts";

/** The host names with which a page on this machine reaches its own server. */
export const loopbackHosts: readonly string[] = Object.freeze(["127.0.0.1", "localhost", "[::1]"]);

export interface GateOptions {
  /** Host names with which clients may address the server, without a port. */
  readonly hosts: readonly string[];
  /** The tokens of the server. `null` if requests need no token; then only this machine may send requests. */
  readonly tokens: Tokens | null;
  /** Name of the page's cookie. */
  readonly cookie: string;
}

/** Decides in whose name a request is made, and refuses requests that a browser sends on behalf of another site. */
export class AccessGate {
  readonly #hosts: ReadonlySet<string>;
  readonly #tokens: Tokens | null;
  readonly #cookie: string;

  constructor({ hosts, tokens, cookie }: GateOptions) {
    this.#hosts = hostNames(hosts);
    this.#tokens = tokens;
    this.#cookie = cookie;
  }

  /**
   * Throws if a request is for another host or comes from another origin. Without tokens, also throws if the
   * request comes from another machine, or if its sender is unknown; this does not depend on the address at which
   * the host of the fetch handler listens.
   */
  checkOrigin(request: Request, sender: SenderBindings): void {
    checkOrigin(request, this.#hosts);
    const from = sender.incoming?.socket?.remoteAddress;
    if (this.#tokens === null && (from === undefined || !isLoopback(from)))
      throw new Fault(
        "permission_denied",
        "this server needs no token, so it answers only requests of its own machine; create it with tokens, or send the request from that machine through listen()",
      );
  }

  /** Returns in whose name the request is made. Throws `unauthenticated` if it has no valid token. */
  async identify({ headers }: Request): Promise<Access> {
    if (this.#tokens === null) return localAccess;
    const token = bearer(headers.get("authorization")) ?? cookieValue(headers.get("cookie"), this.#cookie);
    const access = token === undefined ? undefined : await this.#tokens.verify(token);
    if (access !== undefined) return access;
    throw new Fault(
      "unauthenticated",
      token === undefined
        ? "the request has no token; send the header Authorization: Bearer TOKEN with a token of reeve token create"
        : "the token is unknown, revoked or expired; create one with reeve token create",
    );
  }

  /** Whether the access of an open stream is still valid. */
  async isValid({ tokenId }: Access): Promise<boolean> {
    return this.#tokens === null || tokenId === null || this.#tokens.isValid(tokenId);
  }
}

/** Returns the host names with which clients may address a server, for `checkOrigin`. */
export function hostNames(hosts: readonly string[]): ReadonlySet<string> {
  return new Set(hosts.map((host) => host.toLowerCase()));
}

/**
 * Throws if a request is for a host that is not in `hosts` (protection against DNS rebinding), or comes from
 * another origin (a page of another site). Names must be equal; prefixes and wildcards are not supported.
 */
export function checkOrigin({ headers, url, method }: Request, hosts: ReadonlySet<string>): void {
  const host = (headers.get("host") ?? new URL(url).host).toLowerCase();
  if (!hosts.has(withoutPort(host)))
    throw new Fault(
      "permission_denied",
      `host ${JSON.stringify(host)} is not served here; use one of ${[...hosts].join(", ")}, or start the server with this name as a further host`,
    );
  const origin = headers.get("origin");
  if (origin !== null && hostOf(origin) !== host)
    throw new Fault("permission_denied", `requests from the origin ${JSON.stringify(origin)} are refused`);
  // A browser sends the header with every request. A navigation to the page from elsewhere is harmless.
  const site = headers.get("sec-fetch-site");
  const isNavigation = headers.get("sec-fetch-mode") === "navigate" && method === "GET";
  if ((site === "cross-site" || site === "same-site") && !isNavigation)
    throw new Fault("permission_denied", "requests from pages of other sites are refused");
}

/** Whether an address is a loopback address, which only programs of this machine can reach or have. */
export function isLoopback(address: string): boolean {
  return address === "localhost" || address === "::1" || /^(?:::ffff:)?127(?:\.\d{1,3}){3}$/iu.test(address);
}

function withoutPort(host: string): string {
  return host.replace(/:\d+$/u, "");
}

function hostOf(origin: string): string | undefined {
  try {
    const { protocol, host } = new URL(origin);
    return protocol === "http:" || protocol === "https:" ? host : undefined;
  } catch {
    // An origin that is no URL, such as `null`, has no host.
    return undefined;
  }
}

function bearer(header: string | null): string | undefined {
  return /^bearer +(\S+)$/iu.exec(header ?? "")?.[1];
}

/** Returns the value of the first cookie with this name. */
export function cookieValue(header: string | null, name: string): string | undefined {
  for (const pair of (header ?? "").split(";")) {
    const at = pair.indexOf("=");
    if (at >= 0 && pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim();
  }
  return undefined;
}
