import { isStdio, type ServerConfig } from "./server-config.ts";

/** Longest chain of causes that is read. */
const maxDepth = 5;

/** Adds the address to the name of a server over HTTP: ` at http://host/path`. Empty for a program. */
export function addressSuffix(config: ServerConfig): string {
  if (isStdio(config)) return "";
  const { origin, pathname } = new URL(config.url);
  // User, password and query are left out, because they may contain a key.
  return ` at ${origin}${pathname}`;
}

/**
 * Describes why a request failed. `fetch` reports every failure of the connection as "fetch failed" and keeps the
 * reason, such as a refused connection or an unknown host, in the chain of causes.
 */
export function failureText(error: unknown, depth = 0): string {
  const {
    message = String(error),
    cause,
    errors,
    code,
    status,
  } = Object(error) as Readonly<{
    message?: string;
    cause?: unknown;
    errors?: readonly unknown[];
    code?: unknown;
    status?: unknown;
  }>;
  const http = typeof status === "number" && !message.includes(String(status)) ? `HTTP ${status}: ` : "";
  // An AggregateError has one error for each address of the host, and often no message.
  const inner = cause ?? errors?.at(-1);
  const own = message === "" && typeof code === "string" ? code : `${http}${message}`;
  if (inner === undefined || depth >= maxDepth) return own;
  const reason = failureText(inner, depth + 1);
  if (own === "" || own === reason) return reason;
  return own.includes(reason) ? own : `${own} (${reason})`;
}
