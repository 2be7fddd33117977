export * from "../assembly/memory.ts";
