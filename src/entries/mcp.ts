export * from "../assembly/mcp.ts";
export type {} from "./kernel.ts";
