export * from "../assembly/guardrails.ts";
export type {} from "./kernel.ts";
