import { Fault } from "../../../../kernel/index.ts";
import type { Server } from "../../../server/index.ts";
import { nameAgents } from "../../../view/agent-names.ts";
import { printable } from "../../terminal/terminal.ts";
import type { RequestError, ServerPlace } from "../../../client/route-client.ts";

/** The environment variable with the token for a server at an address. */
export const tokenVariable = "REEVE_TOKEN";

/** The base URL for requests to the server inside this process. No server listens at this address. */
const ownUrl = "http://localhost";
/** The sender of every request to it. */
const ownSender = { incoming: { socket: { remoteAddress: "127.0.0.1" } } };
/**
 * The rate limits of the server inside this process. They are never reached: a person types less, and a program
 * that uses `--mode rpc` runs on the same machine and is trusted.
 */
export const ownLimits = { requestsPerSecond: 100_000, requestBurst: 100_000 };

/** The server of this process. */
export function ownPlace(server: Pick<Server, "fetch">): ServerPlace {
  return { url: ownUrl, fetch: (request) => server.fetch(request, ownSender), read: nameAgents };
}

/**
 * Returns the connection data of a server at an address. Throws `invalid_argument` if the address is invalid, or if
 * the token cannot be sent in a header.
 */
export function remotePlace(url: string, token: string | undefined): ServerPlace {
  if (!isServerAddress(url))
    throw new Fault(
      "invalid_argument",
      `invalid --url ${describeAddress(url)}: expected the address of a server without a path or a password, such as http://127.0.0.1:4711`,
    );
  if (token !== undefined && !/^[\u{21}-\u{7e}]*$/u.test(token.trim()))
    throw new Fault(
      "invalid_argument",
      `invalid ${tokenVariable}: expected letters, digits and signs without spaces; use a token of reeve token create`,
    );
  return {
    url,
    fetch: (request) => globalThis.fetch(request),
    read: nameAgents,
    ...(token !== undefined && { token }),
  };
}

function isServerAddress(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password, pathname, search, hash } = new URL(text);
  return /^https?:$/u.test(protocol) && `${username}${password}${pathname}${search}${hash}` === "/";
}

/** Returns an address without its password, for error messages. */
function describeAddress(text: string): string {
  return JSON.stringify(text.replace(/\/\/[^/]*@/u, "//[secret]@"));
}

/** Converts the error of a refused request to a fault, so that the command ends with the exit code of the refusal. */
export function faultOf({ code, message }: RequestError): Fault {
  if (code === "unauthenticated" || code === "permission_denied")
    return new Fault(
      "permission_denied",
      `${printable(message)}; set ${tokenVariable} to a token of reeve token create`,
    );
  const known = ["not_found", "invalid_argument", "agent_busy", "unsupported", "closed"] as const;
  return new Fault(
    code === "offline" ? "engine_unavailable" : (known.find((each) => each === code) ?? "internal"),
    message,
  );
}
