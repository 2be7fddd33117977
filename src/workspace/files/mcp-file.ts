import { basename, resolve } from "node:path";
import { describeValue, Fault, type JsonObject } from "../../kernel/index.ts";
import { readNamedFile } from "./text/bounded-file.ts";
import type { SourceFile } from "./source-file.ts";
import { languageOf } from "./trust/code-texts.ts";
import type { ProgramLine } from "./trust/understood.ts";

const maxMcpBytes = 256 * 1024;

/**
 * Reads the MCP servers of several files in the usual form, `{ "mcpServers": { NAME: { command, args, env } } }`.
 * If several files have a server of the same name, the last one is used. The entries are checked when the servers
 * are created. A program of a project is started in the root of the project, so that its relative paths do not
 * depend on the working folder of the user. `expand` fills in variables.
 */
export async function readMcpFiles(
  files: readonly SourceFile[],
  expand: (text: string) => string,
): Promise<JsonObject> {
  const servers: Record<string, JsonObject[string]> = {};
  for (const { path, origin, root } of files) {
    const file = await readNamedFile("MCP servers", path, {
      maxBytes: maxMcpBytes,
      ...(origin === "project" && { within: root }),
    });
    if (file === undefined) continue;
    for (const [name, server] of Object.entries(serversIn(file.text, path))) {
      const isProgram = origin === "project" && isObject(server) && "command" in server;
      servers[name] = isProgram
        ? { ...server, ...environmentOf(server, expand), cwd: folderOf(server, root, expand) }
        : server;
    }
  }
  return servers;
}

/** An MCP server as a file describes it. */
export interface McpEntry {
  readonly name: string;
  readonly file: SourceFile;
  /** The entry as the file contains it: not checked, and with variables not filled in. */
  readonly server: JsonObject[string];
}

/** Lists the MCP servers of several files, including those that a later file replaces. */
export async function listMcpEntries(files: readonly SourceFile[]): Promise<readonly McpEntry[]> {
  const entries: McpEntry[] = [];
  for (const file of files) {
    const read = await readNamedFile("MCP servers", file.path, {
      maxBytes: maxMcpBytes,
      ...(file.origin === "project" && { within: file.root }),
    });
    if (read === undefined) continue;
    for (const [name, server] of Object.entries(serversIn(read.text, file.path)))
      entries.push({ name, file, server });
  }
  return entries;
}

/**
 * Returns the environment of a server. It keeps Python from writing compiled files next to the code of a project,
 * because such files would be new code that the trust does not cover.
 */
function environmentOf({ command, env = {} }: JsonObject, expand: (text: string) => string): JsonObject {
  const isPython = typeof command === "string" && languageOf(basename(expand(command))) === "python";
  return isPython && isObject(env) ? { env: { PYTHONDONTWRITEBYTECODE: "1", ...env } } : {};
}

function folderOf({ cwd }: JsonObject, root: string, expand: (text: string) => string): string {
  return typeof cwd === "string" ? resolve(root, expand(cwd)) : root;
}

/**
 * Returns the programs that the MCP servers of these files would start. Files and entries that are invalid are left
 * out.
 */
export async function readPrograms(
  files: readonly SourceFile[],
  expand: (text: string) => string,
): Promise<ReadonlyMap<string, ProgramLine>> {
  const programs = new Map<string, ProgramLine>();
  for (const file of files) {
    // The reader of the servers reports the problem when they are used.
    const servers = await readMcpFiles([file], expand).catch((): JsonObject => ({}));
    for (const [name, server] of Object.entries(servers)) {
      if (!isObject(server) || typeof server["command"] !== "string") continue;
      const { command, args = [], env = {} } = server;
      programs.set(`${file.path} ${name}`, {
        command: expand(command),
        args: Array.isArray(args) ? args.map((arg) => expand(String(arg))) : [],
        env: isObject(env) ? mapped(env, (value) => expand(String(value))) : {},
        cwd: folderOf(server, file.root, expand),
      });
    }
  }
  return programs;
}

function mapped(values: JsonObject, change: (value: unknown) => string): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, change(value)]));
}

function serversIn(text: string, path: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Fault("invalid_argument", `invalid MCP servers ${path}: ${(error as Error).message}`, {
      cause: error,
    });
  }
  const servers = isObject(value) ? value["mcpServers"] : undefined;
  if (isObject(servers)) return servers;
  throw new Fault(
    "invalid_argument",
    `invalid MCP servers ${path}: expected an object with the servers by name in "mcpServers", not ${describeValue(value)}`,
  );
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
