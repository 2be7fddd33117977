export * from "../agents/architectures/index.ts";
