import { hash } from "node:crypto";

/** Server of a tool, and the server's own name for the tool. */
export interface RemoteName {
  readonly server: string;
  readonly tool: string;
}

/** Maximum length of a tool name that every provider accepts. */
const maxLength = 64;

/**
 * Returns the names by which the model calls the tools, in the same order: `mcp__<server>__<tool>`. Characters that
 * providers do not accept become `_`, and a name of more than 64 characters is cut and ends with a hash. The tools must
 * be different from each other; then their names are, too.
 */
export function toolNames(tools: readonly RemoteName[]): readonly string[] {
  const named = new Map<RemoteName, string>();
  const taken = new Set<string>();
  for (const remote of inOrder(tools)) {
    const name = freeName(remote, taken);
    taken.add(name);
    named.set(remote, name);
  }
  return tools.map((remote) => named.get(remote) ?? "");
}

/**
 * Returns the tools in the order in which they choose their names. A name that needs no change is chosen before names
 * that are derived from others, so that a tool cannot take the name of another one. The order of the input is
 * irrelevant.
 */
function inOrder(tools: readonly RemoteName[]): readonly RemoteName[] {
  const key = (remote: RemoteName): string =>
    JSON.stringify([fitted(remote) === fullName(remote) ? 0 : 1, remote.server, remote.tool]);
  return tools.toSorted((one, other) => (key(one) < key(other) ? -1 : 1));
}

function freeName(remote: RemoteName, taken: ReadonlySet<string>): string {
  const first = fitted(remote);
  for (let attempt = 0, name = first; ; attempt++, name = marked(first, remote, attempt))
    if (!taken.has(name)) return name;
}

/** Returns the name if the tool were the only one. */
function fitted(remote: RemoteName): string {
  const name = fullName(remote).replaceAll(/[^A-Za-z0-9_-]/gu, "_");
  return name.length <= maxLength ? name : marked(name, remote, 0);
}

function fullName({ server, tool }: RemoteName): string {
  return `mcp__${server}__${tool}`;
}

/** Returns the name with a hash of server, tool and attempt at its end, within the maximum length. */
function marked(name: string, { server, tool }: RemoteName, attempt: number): string {
  const mark = `_${hash("sha256", JSON.stringify([server, tool, attempt]), "hex").slice(0, 8)}`;
  return name.slice(0, maxLength - mark.length) + mark;
}
