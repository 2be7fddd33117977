export { FullTextMemory } from "./full-text-memory.ts";
export { memorySchema } from "./memory-tables.ts";
