export * from "../assembly/restate.ts";
