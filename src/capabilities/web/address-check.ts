import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { Fault } from "../../kernel/index.ts";
import { isPublicAddress } from "./public-address.ts";

export interface HostAddress {
  readonly address: string;
  readonly family: 4 | 6;
}

/** All addresses of a host. */
export type Resolver = (hostname: string) => Promise<readonly HostAddress[]>;

export interface AddressCheckOptions {
  /** `true`: all; or those of certain hosts, as `host` or `host:port`. */
  readonly allowPrivate?: boolean | readonly string[];
  readonly resolve?: Resolver;
}

/**
 * The address to connect to for a URL. Refused unless every address the name stands for is public, so that none of them can be had by
 * asking again; who connects uses the one given, and asks nobody.
 */
export async function checkedAddress(url: URL, options: AddressCheckOptions): Promise<HostAddress> {
  const { allowPrivate = false, resolve = systemResolver } = options;
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw new Fault("permission_denied", `${url.protocol} is not fetched: only http and https are`);
  if (url.username !== "" || url.password !== "")
    throw new Fault("permission_denied", "an address with a user name or password is not fetched");
  const hostname = url.hostname.replace(/^\[|\]$/g, "");
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
      `${hostname} is not fetched: ${inner.address} is no public address`,
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
