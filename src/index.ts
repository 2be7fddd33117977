export { react, type ReAct, type ReActDependencies } from "./agents/index.ts";
export { tool, type ToolOptions, type ToolReturn } from "./capabilities/index.ts";
export { memoryStore, sha256, systemClock, uuidSource, type MemoryStoreOptions } from "./runtime/index.ts";
export { SoloRun, type SoloRunOptions } from "./solo-run.ts";
