export * from "../surfaces/server/index.ts";
export type {} from "./kernel.ts";
