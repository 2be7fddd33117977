export * from "../assembly/middleware.ts";
export type {} from "./kernel.ts";
