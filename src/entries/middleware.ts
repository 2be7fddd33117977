export * from "../assembly/middleware.ts";
