export * from "../assembly/restate.ts";
export type {} from "./kernel.ts";
