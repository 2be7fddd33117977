import { needingPackage } from "../optional-package.ts";
import type { McpExport } from "./mcp-server.ts";

/** Loads the server side, which needs the optional package `@modelcontextprotocol/server`. */
export async function loadMcpExport(): Promise<typeof McpExport> {
  const server = await needingPackage(
    "@modelcontextprotocol/server",
    "mcpServer",
    () => import("./mcp-server.ts"),
  );
  return server.McpExport;
}
