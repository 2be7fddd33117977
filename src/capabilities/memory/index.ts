export { FullTextMemory } from "./full-text-memory.ts";
export { memorySchema } from "./memory-tables.ts";
export { PostgresMemory } from "./postgres-memory.ts";
export { postgresTables } from "./postgres-tables.ts";
