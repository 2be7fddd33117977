/**
 * The data that the host of the fetch handler provides about the sender of a request. Only the host for Node
 * provides them.
 */
export interface SenderBindings {
  readonly incoming?: { readonly socket?: { readonly remoteAddress?: string | undefined } };
}

/**
 * Returns a key for the sender of a request without a valid token: the sender's IP address, or for IPv6 its 64-bit
 * network, because one machine can use all addresses of this network. All requests through a proxy have the proxy's
 * address. Empty if the host of the fetch handler does not provide the address.
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
