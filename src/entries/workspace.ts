export * from "../workspace/workspace.ts";
