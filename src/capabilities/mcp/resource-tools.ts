import type { JsonObject, Tool, UserPart } from "../../kernel/index.ts";
import { tool } from "../tools/tool.ts";
import { partsResult } from "./remote-result.ts";

/** The methods of `McpServers` that the tools use. */
interface ResourceHolder {
  resources(server?: string): Promise<readonly ListedResource[]>;
  readResource(
    server: string,
    uri: string,
    options: { readonly signal: AbortSignal },
  ): Promise<readonly UserPart[]>;
}

interface ListedResource {
  readonly server: string;
  readonly uri: string;
  readonly name: string;
  readonly description?: string | undefined;
  readonly mimeType?: string | undefined;
}

const listInput = {
  type: "object",
  properties: { server: { type: "string", description: "List only resources of this server" } },
} as const;

const readInput = {
  type: "object",
  properties: { server: { type: "string" }, uri: { type: "string" } },
  required: ["server", "uri"],
} as const;

/** Creates the tools `list_mcp_resources` and `read_mcp_resource`. */
export function resourceTools(servers: ResourceHolder): readonly Tool[] {
  const list = tool({
    name: "list_mcp_resources",
    description:
      "List the resources of the MCP servers, each with the server and uri by which it can be read",
    inputSchema: listInput,
    execute: async ({ server }) => (await servers.resources(server)).map(shown),
  });
  const read = tool({
    name: "read_mcp_resource",
    description: "Read a resource of an MCP server by its uri",
    inputSchema: readInput,
    // The call changes nothing, but the uri itself can carry data to the server.
    risk: "high",
    destructive: false,
    execute: async ({ server, uri }, { signal }) =>
      partsResult(await servers.readResource(server, uri, { signal })),
  });
  return [list, read];
}

function shown({ server, uri, name, description, mimeType }: ListedResource): JsonObject {
  return {
    server,
    uri,
    name,
    ...(description !== undefined && { description }),
    ...(mimeType !== undefined && { mimeType }),
  };
}
