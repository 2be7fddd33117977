import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Leftover } from "../../../src/capabilities/index.ts";
import { Agent, openRuntime } from "../../../src/entries/index.ts";
import { askHumanTool, fileTools } from "../../../src/entries/tools.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { tempFolder, testRepository } from "../../capabilities/worktrees/repository.ts";
import { reeve } from "./reeve-process.ts";

test("reeve worktrees lists, shows, removes and restores worktrees, and loses no work", async () => {
  const { path, trees, git } = testRepository();
  const store = `sqlite:${join(tempFolder("store"), "reeve.db")}` as const;
  const runtime = await openRuntime({ store });
  onTestFinished(() => runtime.close());
  const write = { toolCalls: [{ name: "write", input: { path: "a.txt", content: "agent\n" } }] };
  const coder = new Agent({
    name: "coder",
    model: scriptedModel([write, "done", write]),
    tools: fileTools({ root: path }),
    isolation: { worktree: { repository: path, folder: trees } },
  });
  const { runId } = await coder.invoke("Work.", { runtime });
  const name = `${runId}/t0`;
  const cli = (...args: string[]): ReturnType<typeof reeve> =>
    reeve(["worktrees", ...args, "--folder", trees, "--store", store]);

  const listed = await cli("list", "--json");
  const [found] = listed.out.map((line) => JSON.parse(line) as Leftover & { runStatus: string });
  if (found === undefined) throw new Error(listed.talk);
  expect(found).toMatchObject({
    name,
    agentId: "coder",
    state: "finished",
    runStatus: "completed",
    branch: `reeve/${name}/coder`,
  });
  const shown = await cli("show", name);
  expect(shown.out).toContain(`merge        git -C ${path} merge ${found.commit}`);
  expect(shown.out).toContain("uncommitted  a.txt");

  const refused = await cli("remove", name);
  expect([refused.code, refused.talk]).toEqual([
    8,
    expect.stringContaining(
      `${name} was not removed: it has changes that are not committed: a.txt; commit them, or use --commit`,
    ),
  ]);
  writeFileSync(join(found.path, ".env"), "KEY=1\n");
  expect((await cli("remove", name, "--commit")).talk).toContain("it has ignored files: .env");
  const removed = await cli("remove", name, "--commit", "--ignored", "--json");
  expect([removed.code, removed.out.map((line) => JSON.parse(line))]).toEqual([
    0,
    [{ name, branch: "kept" }],
  ]);
  expect([existsSync(found.path), git(`show ${found.branch}:a.txt`)]).toEqual([false, "agent"]);
  expect((await cli()).out).toEqual([
    expect.stringMatching(new RegExp(`^${name} +coder +branch +completed`, "u")),
  ]);

  git(`merge --quiet --ff-only ${found.branch}`);
  const none = await cli();
  expect([none.code, none.out, none.talk]).toEqual([
    0,
    [],
    expect.stringContaining(`No worktree found in ${trees}`),
  ]);
  expect(git("branch --list reeve/*")).toBe("");
  expect((await cli("show", name)).code).toBe(3);
});

test("reeve worktrees remove refuses the worktree of a run that has not ended or that the store does not know", async () => {
  const { path, trees, git } = testRepository();
  const store = `sqlite:${join(tempFolder("store"), "reeve.db")}` as const;
  const runtime = await openRuntime({ store });
  onTestFinished(() => runtime.close());
  const coder = new Agent({
    name: "coder",
    model: scriptedModel([{ toolCalls: [{ name: "ask_human", input: { question: "Go on?" } }] }, "done"]),
    tools: [askHumanTool()],
    isolation: { worktree: { repository: path, folder: trees } },
  });
  const run = await coder.submit("Work.", { runtime });
  for await (const { type } of run.events({ types: ["approval_request"] }))
    if (type === "approval_request") break;
  const name = `${run.runId}/t0`;
  const cli = (...args: string[]): ReturnType<typeof reeve> =>
    reeve(["worktrees", ...args, "--folder", trees]);
  const busy = await cli("remove", name, "--store", store);
  expect([busy.code, busy.talk]).toEqual([6, expect.stringContaining(`${run.runId} is waiting`)]);
  const unknown = await cli("remove", name);
  expect([unknown.code, unknown.talk]).toEqual([
    8,
    expect.stringContaining("or --ended if the run has ended"),
  ]);
  const tree = git("worktree list --porcelain").match(/^worktree (.*-t0)$/mu)?.[1] ?? "";
  rmSync(tree, { recursive: true });
  const restored = await cli("restore", name);
  expect([restored.code, restored.out, existsSync(join(tree, "a.txt"))]).toEqual([0, [tree], true]);
  await run.cancel("enough");
  await run.result();
  expect((await cli("remove", name, "--store", store)).code).toBe(0);
  expect([existsSync(tree), git("branch --list reeve/*")]).toEqual([false, ""]);
});
