export { tool, type ToolOptions, type ToolReturn } from "./tools/tool.ts";
