/** What the host of the fetch handler knows about the sender of a request. Only Node's host knows it. */
export interface SenderBindings {
  readonly incoming?: { readonly socket?: { readonly remoteAddress?: string | undefined } };
}

/**
 * A key for the sender of a request without a valid token: its address, and for IPv6 the network of 64 bits, because one
 * machine can use all addresses of it. All requests that come through a proxy have the proxy's address. Empty if the host
 * of the fetch handler does not say it.
 */
export function addressKey({ incoming }: SenderBindings): string {
  const address = incoming?.socket?.remoteAddress ?? "";
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/iu.exec(address)?.[1];
  if (mapped !== undefined || !address.includes(":")) return mapped ?? address;
  const [before = "", after = ""] = address.split("%")[0]?.split("::") ?? [];
  const left = before === "" ? [] : before.split(":");
  const right = after === "" ? [] : after.split(":");
  const zeros = Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => "0");
  return [...left, ...zeros, ...right].slice(0, 4).join(":");
}
