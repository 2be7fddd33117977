export * from "../workspace/workspace.ts";
export type {} from "./kernel.ts";
