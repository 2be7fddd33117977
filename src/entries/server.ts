export * from "../surfaces/server/index.ts";
