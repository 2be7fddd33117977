import { hash } from "node:crypto";

/** A tool of a server, by the server's own name for it. */
export interface RemoteName {
  readonly server: string;
  readonly tool: string;
}

/** What every provider takes. */
const longest = 64;

/**
 * What the model calls each tool, in the same order: the tool's own name where no other has it, and `server__tool` otherwise. Providers
 * take letters, digits, `_` and `-`, so there is no dot between them, and what they do not take becomes `_`.
 */
export function toolNames(tools: readonly RemoteName[]): readonly string[] {
  const bare = tools.map(({ tool }) => plain(tool));
  const times = counted(bare);
  const names = tools.map(({ server }, at) => {
    const name = bare[at] ?? "";
    return times.get(name) === 1 ? fitted(name) : fitted(`${server}__${name}`);
  });
  // Still alike: names that differ in what no provider takes, or a tool that is called like another with its server.
  const alike = counted(names);
  return names.map((name, at) => (alike.get(name) === 1 ? name : marked(name, tools[at])));
}

function counted(names: readonly string[]): ReadonlyMap<string, number> {
  const times = new Map<string, number>();
  for (const name of names) times.set(name, (times.get(name) ?? 0) + 1);
  return times;
}

function plain(name: string): string {
  const text = name.replaceAll(/[^A-Za-z0-9_-]/g, "_");
  return /^[A-Za-z_]/.test(text) ? text : `_${text}`;
}

function fitted(name: string): string {
  return name.length <= longest ? name : withMark(name, name);
}

function marked(name: string, remote: RemoteName | undefined): string {
  return withMark(name, `${remote?.server}\n${remote?.tool}`);
}

function withMark(name: string, of: string): string {
  const mark = `_${hash("sha256", of, "hex").slice(0, 8)}`;
  return name.slice(0, longest - mark.length) + mark;
}
