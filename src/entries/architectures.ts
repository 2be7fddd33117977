export * from "../agents/architectures/index.ts";
export type {} from "./kernel.ts";
