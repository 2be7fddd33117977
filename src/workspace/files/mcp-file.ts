import { describeValue, Fault, type JsonObject } from "../../kernel/index.ts";
import { readNamedFile } from "./text/bounded-file.ts";
import type { SourceFile } from "./load.ts";

const maxMcpBytes = 256 * 1024;

/**
 * Reads the MCP servers of several files in the usual form, `{ "mcpServers": { NAME: { command, args, env } } }`. Of
 * servers with the same name the one of the last file is used. The entries are checked when the servers are created.
 */
export async function readMcpFiles(files: readonly SourceFile[]): Promise<JsonObject> {
  const servers: Record<string, JsonObject[string]> = {};
  for (const { path, origin, root } of files) {
    const file = await readNamedFile("MCP servers", path, {
      maxBytes: maxMcpBytes,
      ...(origin === "project" && { within: root }),
    });
    if (file === undefined) continue;
    Object.assign(servers, serversIn(file.text, path));
  }
  return servers;
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
