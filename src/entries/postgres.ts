export * from "../runtime/stores/postgres/index.ts";
export type {} from "./kernel.ts";
