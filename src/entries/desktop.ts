export * from "../capabilities/desktop/index.ts";
export type {} from "./kernel.ts";
