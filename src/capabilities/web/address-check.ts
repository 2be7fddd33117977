import { lookup } from "node:dns/promises";
import { BlockList, isIP } from "node:net";
import { Fault } from "../../kernel/index.ts";

/**
 * IPv4 ranges that are not public: this machine, its local network, and reserved ranges (RFC 6890 and its registry).
 */
const v4: readonly (readonly [string, number])[] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
];

const privateV4 = new BlockList();
for (const [net, prefix] of v4) privateV4.addSubnet(net, prefix, "ipv4");

/**
 * The public IPv6 addresses: those in 2000::/3, except documentation, benchmark, Teredo and 6to4 ranges. The last
 * two ranges contain another address.
 */
const publicV6 = new BlockList();
publicV6.addSubnet("2000::", 3, "ipv6");
const privateV6 = new BlockList();
for (const [net, prefix] of [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
] as const)
  privateV6.addSubnet(net, prefix, "ipv6");

/** Whether an IP address is on the public internet. A text that is not an IP address is not public. */
export function isPublicAddress(address: string): boolean {
  // An address with a zone is local to a link of this machine.
  if (address.includes("%")) return false;
  switch (isIP(address)) {
    case 4:
      return !privateV4.check(address, "ipv4");
    case 6:
      return publicV6.check(address, "ipv6") && !privateV6.check(address, "ipv6");
    default:
      return false;
  }
}

/** One IP address of a host. */
export interface HostAddress {
  readonly address: string;
  readonly family: 4 | 6;
}

/** Returns all IP addresses of a host name. */
export type Resolver = (hostname: string) => Promise<readonly HostAddress[]>;

/** Options that determine which addresses may be fetched. */
export interface AddressCheckOptions {
  /**
   * Private addresses that may be fetched: `true` for all, or a list of hosts as `host` or `host:port`. Default: none.
   */
  readonly allowPrivate?: boolean | readonly string[];
  /**
   * Returns the address to which to connect for a URL. Throws `permission_denied` unless every address of the host
   * is public, so that a second lookup cannot lead to a private one. The caller must connect to the returned
   * address without another lookup.
   */
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
