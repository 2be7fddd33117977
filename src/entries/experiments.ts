export * from "../experiments/index.ts";
export type {} from "./kernel.ts";
