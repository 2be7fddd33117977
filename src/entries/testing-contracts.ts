export * from "../testing/contracts/index.ts";
export type {} from "./kernel.ts";
