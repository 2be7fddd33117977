import { Fault } from "../../../../kernel/index.ts";
import type { Server } from "../../../server/index.ts";
import { nameAgents } from "../../../view/agent-names.ts";
import { printable } from "../../terminal/terminal.ts";
import type { RequestError, ServerPlace } from "../../../client/route-client.ts";

/** The name of the variable with the token for a server at an address. */
export const tokenVariable = "REEVE_TOKEN";

/** The address under which the server of this process is addressed. Nothing listens there. */
const ownUrl = "http://localhost";
/** The sender of every request to it. */
const ownSender = { incoming: { socket: { remoteAddress: "127.0.0.1" } } };
/** The limits of the server of this process. The person types less, and a program behind `--mode rpc` is this machine's own. */
export const ownLimits = { requestsPerSecond: 100_000, requestBurst: 100_000 };

/** The server of this process. */
export function ownPlace(server: Pick<Server, "fetch">): ServerPlace {
  return { url: ownUrl, fetch: (request) => server.fetch(request, ownSender), read: nameAgents };
}

/** A server at an address. Throws `invalid_argument` if it is no such address, or if a header cannot have the token. */
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

/** An address as an error shows it: without its password. */
function describeAddress(text: string): string {
  return JSON.stringify(text.replace(/\/\/[^/]*@/u, "//[secret]@"));
}

/** The fault of a refused request, so that the command ends with the exit code of the refusal. */
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
