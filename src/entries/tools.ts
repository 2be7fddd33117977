export * from "../capabilities/tools/index.ts";
export { worktreeTools } from "../capabilities/worktrees/worktree-tools.ts";
export type {} from "./kernel.ts";
