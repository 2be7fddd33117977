export * from "../testing/index.ts";
export type {} from "./kernel.ts";
