import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { Fault } from "../../kernel/index.ts";
import { isPublicAddress } from "./public-address.ts";

/** One IP address of a host. */
export interface HostAddress {
  readonly address: string;
  readonly family: 4 | 6;
}

/** Returns all IP addresses of a host name. */
export type Resolver = (hostname: string) => Promise<readonly HostAddress[]>;

/** Options that decide which addresses may be fetched. */
export interface AddressCheckOptions {
  /**
   * Private addresses that may be fetched: `true` for all, or a list of hosts as `host` or `host:port`. Default: none.
   */
  readonly allowPrivate?: boolean | readonly string[];
  /** Resolves host names. Default: the resolver of the system. */
  readonly resolve?: Resolver;
}

/**
 * Returns the address to connect to for a URL. Throws `permission_denied` unless every address of the host is public,
 * so that a second lookup cannot lead to a private one. The caller must connect to the returned address without another
 * lookup.
 */
export async function checkedAddress(url: URL, options: AddressCheckOptions): Promise<HostAddress> {
  const { allowPrivate = false, resolve = systemResolver } = options;
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw new Fault("permission_denied", `${url.protocol} is not fetched: use an http or https URL`);
  if (url.username !== "" || url.password !== "")
    throw new Fault("permission_denied", "a URL with a user name or password is not fetched: leave them out");
  const hostname = url.hostname.replace(/^\[|\]$|\.$/g, "");
  const addresses = await addressesOf(hostname, resolve);
  const [first] = addresses;
  if (first === undefined) throw new Fault("not_found", `${hostname} has no address`);
  const isAllowed =
    allowPrivate === true ||
    (Array.isArray(allowPrivate) && (allowPrivate.includes(hostname) || allowPrivate.includes(url.host)));
  const inner = isAllowed ? undefined : addresses.find(({ address }) => !isPublicAddress(address));
  if (inner !== undefined)
    throw new Fault(
      "permission_denied",
      `${hostname} is not fetched: ${inner.address} is not a public address`,
      { details: { hostname, address: inner.address } },
    );
  return first;
}

async function addressesOf(hostname: string, resolve: Resolver): Promise<readonly HostAddress[]> {
  const family = isIP(hostname);
  if (family === 4 || family === 6) return [{ address: hostname, family }];
  try {
    return await resolve(hostname);
  } catch (cause) {
    throw new Fault("not_found", `${hostname} cannot be resolved: check the name`, { cause });
  }
}

const systemResolver: Resolver = async (hostname) => {
  const found = await lookup(hostname, { all: true });
  return found.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }));
};
