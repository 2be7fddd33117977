import { Socket } from "node:net";

const near: readonly unknown[] = [undefined, "localhost", "127.0.0.1", "::1"];
const connect: unknown = Reflect.get(Socket.prototype, "connect");

/**
 * Loaded before a program, so that its sockets cannot connect to other machines. `fetch`, HTTP and TLS all use
 * `Socket.connect`.
 */
Reflect.set(Socket.prototype, "connect", function guarded(this: Socket, ...args: unknown[]): unknown {
  const host = hostOf(args);
  if (!near.includes(host)) throw new Error(`no network here: ${String(host)}`);
  return Reflect.apply(connect as Socket["connect"], this, args as Parameters<Socket["connect"]>);
});

/**
 * Returns the host from the arguments of `connect`, in any of its three call forms or the array that Node passes
 * internally.
 */
function hostOf(args: readonly unknown[]): unknown {
  const [first, second]: readonly unknown[] = Array.isArray(args[0]) ? args[0] : args;
  if (typeof first === "object" && first !== null) return Reflect.get(first, "host");
  return typeof first === "number" && typeof second === "string" ? second : undefined;
}
