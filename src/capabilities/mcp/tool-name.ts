import { hash } from "node:crypto";

/** Server of a tool, and the server's own name for the tool. */
export interface RemoteName {
  readonly server: string;
  readonly tool: string;
}

/** Maximum length of a tool name that every provider accepts. */
const maxLength = 64;

/**
 * Returns the names by which the model calls the tools, in the same order: the tool's own name if it is unique, else
 * `server__tool`. Characters that providers do not accept become `_`.
 */
export function toolNames(tools: readonly RemoteName[]): readonly string[] {
  const bare = tools.map(({ tool }) => plain(tool));
  const times = counted(bare);
  const names = tools.map(({ server }, at) => {
    const name = bare[at] ?? "";
    return times.get(name) === 1 ? fitted(name) : fitted(`${server}__${name}`);
  });
  // Names can still be equal: if they differ only in replaced characters, or if a tool is named like another one with
  // its server.
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
  return name.length <= maxLength ? name : withMark(name, name);
}

function marked(name: string, remote: RemoteName | undefined): string {
  return withMark(name, `${remote?.server}\n${remote?.tool}`);
}

function withMark(name: string, of: string): string {
  const mark = `_${hash("sha256", of, "hex").slice(0, 8)}`;
  return name.slice(0, maxLength - mark.length) + mark;
}
