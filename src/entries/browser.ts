export * from "../capabilities/browser/index.ts";
export type {} from "./kernel.ts";
