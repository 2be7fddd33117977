export type { SandboxMode, SandboxPolicy, SandboxReport } from "../sandbox/sandbox-policy.ts";
export { bashTool, type BashToolOptions } from "./bash.ts";
export { editTool, type EditToolOptions } from "./edit.ts";
export { fileTools, type FileToolsOptions } from "./file-tools.ts";
export { findTool, type FindToolOptions } from "./find.ts";
export { grepTool, type GrepToolOptions } from "./grep.ts";
export { lsTool, type LsToolOptions } from "./ls.ts";
export { readTool, type ReadToolOptions } from "./read.ts";
export { writeTool, type WriteToolOptions } from "./write.ts";
