export * from "../assembly/memory.ts";
export type {} from "./kernel.ts";
