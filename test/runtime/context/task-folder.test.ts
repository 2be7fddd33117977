import { expect, it } from "vitest";
import {
  formatRunId,
  formatTaskId,
  type Commit,
  type FolderWork,
  type JsonValue,
  type RunContext,
  type TaskFolder,
  type TaskRecord,
  type ToolContext,
} from "../../../src/kernel/index.ts";
import { eraseCommit } from "../../../src/kernel/stores/erasure.ts";
import { agent, setUp, settle, simpleTool, spawnTask, text } from "../runtime-setup.ts";

function folderOf(ctx: Pick<RunContext, "facts" | "taskId">, path = `/trees/${ctx.taskId}`): TaskFolder {
  const { runId } = ctx.facts;
  const branch = `reeve/${runId}/${ctx.taskId}/worker`;
  return {
    runId,
    taskId: ctx.taskId,
    path,
    origin: "/repo",
    branch,
    base: "a1b2",
    mounts: [{ path: "/repo/.git", access: "read" }],
    env: {},
    notes: "Work in this folder.",
  };
}

it("D1: a tool and a check before its call receive the folder that the task uses, and null before it uses one", async () => {
  const { runtime } = await setUp();
  const seen: (readonly [string, string | undefined])[] = [];
  const note = (where: string, folder: TaskFolder | null): void => void seen.push([where, folder?.path]);
  const look = simpleTool({
    name: "look",
    execute: async (_input, { folder }: ToolContext) => (note("tool", folder), text("done")),
  });
  const call = { callId: "1", toolName: "look", input: {} };
  const worker = agent(
    "worker",
    async (ctx) => {
      await ctx.tool(call);
      ctx.useFolder(folderOf(ctx));
      await ctx.parallel({ left: (branch) => branch.tool(call) });
      return ctx.folder?.path;
    },
    {
      tools: [look],
      callPath: {
        tool: { before: [{ name: "gate", decide: ({ folder }) => (note("gate", folder), undefined) }] },
      },
    },
  );
  const { output } = await (await runtime.submit(worker, null)).result();
  expect(output).toBe("/trees/t0");
  expect(seen).toEqual([
    ["gate", undefined],
    ["tool", undefined],
    ["gate", "/trees/t0"],
    ["tool", "/trees/t0"],
  ]);
});

it("D2: a child works in the folder that its parent used at the spawn, also in another process", async () => {
  const { runtime, open } = await setUp();
  const paths: (string | undefined)[] = [];
  const child = agent("child", async (ctx) => {
    paths.push(ctx.folder?.path);
    return (await ctx.waitForSignal("go")) ?? null;
  });
  const lead = agent(
    "lead",
    async (ctx) => {
      const before = await spawnTask(ctx, child, { onParentEnd: "wait" });
      ctx.useFolder(folderOf(ctx));
      await ctx.joinAll([before, await spawnTask(ctx, child, { onParentEnd: "wait" })]);
    },
    { subAgents: [child] },
  );
  const { runId } = await runtime.submit(lead, null);
  await settle();
  expect(paths).toEqual([undefined, "/trees/t0"]);
  await runtime.close();
  const next = await open();
  next.register(lead);
  const run = await next.find(runId);
  await run?.signal("go", null, { taskId: formatTaskId(1) });
  await run?.signal("go", null, { taskId: formatTaskId(2) });
  expect((await run?.result())?.status).toBe("completed");
  expect(paths).toEqual([undefined, "/trees/t0", undefined, "/trees/t0"]);
});

it("D8: a tool of a fork is refused the folder that its task inherited from a task of the origin", async () => {
  const { runtime, events } = await setUp();
  const look = simpleTool({
    name: "look",
    execute: async (_input, { folder }: ToolContext) => text(folder?.path ?? "none"),
  });
  const child = agent(
    "child",
    async (ctx) => {
      await ctx.step("start", async () => null);
      return (await ctx.tool({ callId: "1", toolName: "look", input: {} })).output as unknown as JsonValue;
    },
    { tools: [look] },
  );
  const lead = agent(
    "lead",
    async (ctx) => {
      ctx.useFolder(folderOf(ctx));
      return (await ctx.join(await spawnTask(ctx, child))).output;
    },
    { subAgents: [child] },
  );
  const run = await runtime.submit(lead, null);
  expect((await run.result()).output).toEqual({ type: "text", text: "/trees/t0" });
  const at = (await events(run.runId)).find(({ type }) => type === "step_end")?.seq ?? -1;
  const fork = await run.fork({ at, runId: formatRunId("fork") });
  expect((await fork.result()).output).toEqual({
    type: "text",
    text: `run_fork is a fork of ${run.runId}, in whose folder /trees/t0 it cannot work; start a new run instead`,
  });
});

it("join() returns the work that a child has reported", async () => {
  const { runtime } = await setUp();
  const none = { count: 0, paths: [] };
  const work: FolderWork = {
    path: "/trees/t1",
    branch: "reeve/run_a/t1/child",
    base: "a1",
    commit: "b2",
    changed: { count: 1, paths: ["a.txt"] },
    uncommitted: none,
    overlaps: [],
    state: "kept",
  };
  const child = agent("child", async (ctx) => ctx.report({ work }));
  const lead = agent(
    "lead",
    async (ctx) => (await ctx.join(await spawnTask(ctx, child))).work as unknown as JsonValue,
    { subAgents: [child] },
  );
  expect((await (await runtime.submit(lead, null)).result()).output).toEqual(work);
});

it("an erased task keeps its folder, but not the notes about it, which name files", () => {
  const runId = formatRunId("a");
  const taskId = formatTaskId(1);
  const folder = folderOf({ facts: { runId } as RunContext["facts"], taskId });
  const task = { taskId, agentId: "child", input: "secret", messages: [], metadata: {}, folder };
  const commit = { tasks: [{ type: "create", task: task as unknown as TaskRecord }] } as unknown as Commit;
  const { tasks } = eraseCommit(commit, [{ taskId, agentId: "child" }] as unknown as Parameters<
    typeof eraseCommit
  >[1]);
  expect(tasks?.[0]).toMatchObject({ task: { input: null, folder: { path: "/trees/t1", notes: "" } } });
});
