import { formatRunId, type RunContext, type TaskFolder } from "../../../src/kernel/index.ts";
import { worktreeIsolation, type WorktreeOptions } from "../../../src/capabilities/index.ts";
import { agent, setUp } from "../../runtime/runtime-setup.ts";
import type { TestRepository } from "./repository.ts";

let runs = 0;

/** Runs code in a task with a worktree, and returns what it returned. Throws what it threw. */
export async function inTree<Value>(
  { path, trees }: Pick<TestRepository, "path" | "trees">,
  work: (folder: TaskFolder, ctx: RunContext) => Promise<Value>,
  options: WorktreeOptions = {},
  runId = `tree${++runs}`,
): Promise<Value> {
  const isolation = worktreeIsolation({ repository: path, folder: trees, ...options });
  const { runtime } = await setUp();
  const done = Promise.withResolvers<Value>();
  const worker = agent("worker", async (ctx) => {
    try {
      const folder = await isolation.open(ctx);
      ctx.useFolder(folder);
      done.resolve(await work(folder, ctx));
    } catch (error) {
      done.reject(error);
    }
  });
  await runtime.submit(worker, null, { runId: formatRunId(runId) });
  return done.promise;
}
