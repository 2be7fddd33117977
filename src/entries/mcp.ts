export * from "../assembly/mcp.ts";
