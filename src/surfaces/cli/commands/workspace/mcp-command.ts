import { withoutSecrets, type JsonObject, type JsonValue } from "../../../../kernel/index.ts";
import { listMcpEntries, type McpEntry } from "../../../../workspace/files/index.ts";
import { inspectWorkspace } from "../../../../workspace/inspect-workspace.ts";
import { reportNotices } from "../../setup/run-workspace.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { columns, shellWord } from "../../terminal/format.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";

export interface McpListOptions {
  readonly profile?: string;
  readonly json?: boolean;
}

/**
 * The data that files contain about an MCP server. The server is not started, and values of variables and headers
 * are not shown.
 */
interface ServerFacts {
  readonly name: string;
  readonly origin: string;
  readonly file: string;
  readonly state: "used" | "disabled" | "replaced" | "needs trust";
  /** The program with its arguments, or the address. Secrets are removed. */
  readonly starts: string;
  /** Names of the environment variables that the program receives, or of the headers that are sent. */
  readonly receives: readonly string[];
}

/** Lists the MCP servers of the workspace. No server is started. */
export async function mcpListCommand(
  { profile, json = false }: McpListOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const loaded = await inspectWorkspace({ env: terminal.env, ...(profile !== undefined && { profile }) });
  const used = await listMcpEntries(loaded.mcpFiles);
  const ignored = await listMcpEntries(loaded.ignoredMcpFiles);
  const facts = [
    ...used.map((entry, index) =>
      factsOf(entry, used.slice(index + 1).some(({ name }) => name === entry.name) ? "replaced" : undefined),
    ),
    ...ignored.map((entry) => factsOf(entry, "needs trust")),
  ];
  const rows = facts.map(rowOf);
  const lines = json
    ? facts.map((each) => JSON.stringify(each))
    : columns(terminal.isWatched && rows.length > 0 ? [heading, ...rows] : rows);
  for (const line of lines) await terminal.out(line);
  if (facts.length === 0)
    terminal.say("No MCP server found; list servers in .mcp.json of the project or in ~/.reeve/mcp.json.");
  if (ignored.length > 0)
    terminal.say(`Servers of a project that is not trusted: ${ignored.length}; run reeve trust to use them.`);
  reportNotices({ notices: loaded.notices.filter(({ kind }) => kind === "warning") }, terminal);
  return "ok";
}

const heading = ["SERVER", "STATE", "STARTS", "RECEIVES", "FILE"];

function rowOf({ name, state, starts, receives, file }: ServerFacts): string[] {
  return [name, state, starts, receives.length === 0 ? "-" : receives.join(", "), file].map(printable);
}

function factsOf({ name, file, server }: McpEntry, known: ServerFacts["state"] | undefined): ServerFacts {
  const entry = isObject(server) ? server : {};
  const { command, url, env, headers, disabled } = entry;
  return {
    name,
    origin: file.origin,
    file: file.path,
    state: known ?? (disabled === true ? "disabled" : "used"),
    starts:
      typeof command === "string"
        ? programOf(command, entry["args"])
        : typeof url === "string"
          ? withoutSecrets(url)
          : "invalid: neither command nor url",
    receives: Object.keys(isObject(env) ? env : isObject(headers) ? headers : {}),
  };
}

function programOf(command: string, args: JsonValue | undefined): string {
  const words = [command, ...(Array.isArray(args) ? args.map(String) : [])];
  return withoutSecrets(words.map((word) => (word.startsWith("$") ? word : shellWord(word))).join(" "));
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
