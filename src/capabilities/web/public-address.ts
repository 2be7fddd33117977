import { BlockList, isIP } from "node:net";

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
 * Public IPv6 addresses are those in 2000::/3, except documentation, benchmark, Teredo and 6to4 ranges; the last two
 * embed another address.
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
