import { isIPv4, isIPv6 } from "node:net";

/**
 * Returns the network that one caller controls: the address itself for IPv4, and the first 64 bits for IPv6, because a
 * caller may use every address of such a network. Returns `undefined` for a text that is not an IP address.
 */
export function callerNetwork(address: unknown): string | undefined {
  if (typeof address !== "string") return undefined;
  const [plain = ""] = address.split("%", 1);
  const [, mapped] = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/iu.exec(plain) ?? [];
  if (isIPv4(mapped ?? plain)) return mapped ?? plain;
  return isIPv6(plain) ? `${groups(plain).slice(0, 4).join(":")}::/64` : undefined;
}

/** Returns the eight groups of an IPv6 address in their shortest form. */
function groups(address: string): readonly string[] {
  // The URL parser writes every IPv6 address in the canonical form.
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [head = "", tail] = canonical.split("::");
  const [before, after] = [head, tail ?? ""].map((part) => (part === "" ? [] : part.split(":")));
  const zeros = tail === undefined ? 0 : 8 - (before?.length ?? 0) - (after?.length ?? 0);
  return [...(before ?? []), ...Array.from({ length: zeros }, () => "0"), ...(after ?? [])];
}
