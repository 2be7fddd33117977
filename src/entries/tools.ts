export * from "../capabilities/tools/index.ts";
export type {} from "./kernel.ts";
