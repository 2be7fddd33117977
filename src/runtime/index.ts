export { RunJournal } from "./run-journal.ts";
export { sha256 } from "./sha256.ts";
export { memoryStore, type MemoryStoreOptions } from "./stores/memory/store.ts";
export { systemClock } from "./system-clock.ts";
export { TaskContext, type SoloTool } from "./task-context.ts";
export { uuidSource } from "./uuid-source.ts";
