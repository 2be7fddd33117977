import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Event, MergeQuestion } from "../../../src/kernel/index.ts";
import { setUp, type Bench } from "../../runtime/runtime-setup.ts";
import { asked, ended, resultsOf, teamOf } from "./merged-team.ts";
import { testRepository } from "./repository.ts";

async function mergeEvents(
  bench: Bench,
  runId: Event["runId"],
): Promise<readonly Event<"worktree_merge">["data"][]> {
  return (await bench.events(runId))
    .filter((event): event is Event<"worktree_merge"> => event.type === "worktree_merge")
    .map(({ data }) => data);
}

const noConflict = { one: { "a.txt": "one\n" }, two: { "new/d.txt": "two\n" } };

test("D9: an approved merge of worktrees moves the branch of the person forward, and removes the merged worktrees", async () => {
  const repository = testRepository();
  const { path, trees, git, read } = repository;
  const bench = await setUp();
  const run = await bench.runtime.submit(teamOf(repository, noConflict, [["t1", "t2"]]), "Work.");
  const question = await asked(run);
  const { merge, diff, message } = question.input as unknown as MergeQuestion;
  expect(question).toMatchObject({ kind: "merge", toolName: "merge_worktrees" });
  expect(message).toBe("Merge the work of t1, t2 into main: 2 changed files");
  expect(merge).toMatchObject({ path, branch: "main", changed: { paths: ["a.txt", "new/d.txt"] } });
  expect(diff).toMatch(/-a\n\+one\n.*\+two$/su);
  expect(git("rev-parse main")).toBe(merge.head);
  await run.approve(question.approvalId, { decision: "approved" });
  expect((await run.result()).output).toBe("done");
  expect(git("rev-parse main")).toBe(merge.commit);
  expect([read("a.txt"), read("new/d.txt"), git("status --porcelain")]).toEqual(["one\n", "two\n", ""]);
  expect(git("log --format=%an:%s -1")).toBe(`Ann:Merge the work of two (${run.runId}/t2)`);
  expect((await resultsOf(bench, run, "worktrees"))[0]).toContain("No file was changed by several of them.");
  expect((await resultsOf(bench, run, "merge_worktrees"))[0]).toBe(
    `merged the work of t1, t2 as ${merge.commit}: a.txt, new/d.txt`,
  );
  expect((await mergeEvents(bench, run.runId)).map(({ status }) => status)).toEqual(["merged"]);
  expect(git("branch --list reeve/*")).toBe("");
  expect(git("for-each-ref refs/reeve")).toBe("");
  expect(git("worktree list").split("\n")).toHaveLength(1);
  const [folder = ""] = readdirSync(trees);
  expect(readdirSync(join(trees, folder)).filter((name) => !name.endsWith(".json"))).toEqual([]);
});

test("D9: the recorded work of an employee is merged although its worktree was deleted by hand", async () => {
  const repository = testRepository();
  const { trees, git, read } = repository;
  const bench = await setUp();
  const run = await bench.runtime.submit(teamOf(repository, noConflict, [["t2"], ["t1"]]), "Work.");
  const { approvalId } = await asked(run);
  await run.approve(approvalId, { decision: "denied" });
  await ended(bench, run, approvalId);
  const [folder = ""] = readdirSync(trees);
  rmSync(join(trees, folder, `${run.runId}-t1`), { recursive: true });
  await run.approve((await asked(run)).approvalId, { decision: "approved" });
  await run.result();
  expect([read("a.txt"), git("status --porcelain")]).toEqual(["one\n", ""]);
  expect(git("branch --list reeve/* --format=%(refname:short)")).toBe(`reeve/${run.runId}/t2/two`);
});

test("D9: a merge conflict is reported by file before a person is asked, and changes nothing", async () => {
  const repository = testRepository();
  const { git } = repository;
  const bench = await setUp();
  const work = { one: { "a.txt": "one\n", "b.txt": "b\n" }, two: { "a.txt": "two\n" } };
  const head = git("rev-parse main");
  const run = await bench.runtime.submit(teamOf(repository, work, [["t1", "t2"]]), "Work.");
  expect((await run.result()).output).toBe("done");
  expect((await resultsOf(bench, run, "worktrees"))[0]).toContain(
    "Changed by several of them: a.txt by t1 and t2.",
  );
  expect((await resultsOf(bench, run, "merge_worktrees"))[0]).toContain("because of conflicts in a.txt;");
  expect(await mergeEvents(bench, run.runId)).toMatchObject([
    { status: "conflict", commit: null, conflicts: { count: 1, paths: ["a.txt"] } },
  ]);
  expect([git("rev-parse main"), git("status --porcelain")]).toEqual([head, ""]);
  expect(git("worktree list").split("\n")).toHaveLength(3);
});

test("D9: a merge of worktrees that a person denies changes nothing, and the lead agent reads the reason", async () => {
  const repository = testRepository();
  const { git } = repository;
  const bench = await setUp();
  const head = git("rev-parse main");
  const run = await bench.runtime.submit(teamOf(repository, noConflict, [["t1"]]), "Work.");
  await run.approve((await asked(run)).approvalId, { decision: "denied", reason: "not today" });
  await run.result();
  expect(await resultsOf(bench, run, "merge_worktrees")).toEqual([
    "the person did not approve the merge: not today",
  ]);
  expect([git("rev-parse main"), git("worktree list").split("\n").length]).toEqual([head, 3]);
});

test("D9: an approved merge is not executed if a folder or a branch has changed meanwhile, and succeeds later", async () => {
  const repository = testRepository();
  const { trees, git, write, read, commit } = repository;
  const bench = await setUp();
  const work = { one: { "a.txt": "one\n", "late.txt": "late\n" } };
  const merges = Array.from({ length: 5 }, () => ["t1"]);
  const run = await bench.runtime.submit(teamOf(repository, work, merges), "Work.");
  const inTree = (text: string): void => {
    const [folder = ""] = readdirSync(trees);
    writeFileSync(join(trees, folder, `${run.runId}-t1`, "a.txt"), text);
  };
  const obstacles = [
    ["is at", () => void commit({ "c.txt": "person\n" }), () => undefined],
    ["the files of t1 have changed", () => inTree("later\n"), () => inTree("one\n")],
    ["git refused: Your local changes", () => write("a.txt", "person\n"), () => git("checkout -- a.txt")],
    [
      "git refused:",
      () => {
        write(".gitignore", "late.txt\n");
        write("late.txt", "of the person\n");
      },
      () => undefined,
    ],
  ] as const;
  for (const [, meet, remove] of obstacles) {
    const { approvalId } = await asked(run);
    meet();
    const before = [git("rev-parse main"), git("status --porcelain")];
    await run.approve(approvalId, { decision: "approved" });
    await ended(bench, run, approvalId);
    expect([git("rev-parse main"), git("status --porcelain")]).toEqual(before);
    remove();
  }
  expect(read("late.txt")).toBe("of the person\n");
  rmSync(join(repository.path, "late.txt"));
  const { approvalId } = await asked(run);
  await run.approve(approvalId, { decision: "approved" });
  expect((await run.result()).output).toBe("done");
  const results = await resultsOf(bench, run, "merge_worktrees");
  expect(results.slice(0, 4)).toEqual(obstacles.map(([words]) => expect.stringContaining(words)));
  expect(results[4]).toMatch(/^merged the work of t1 as/u);
  const statuses = (await mergeEvents(bench, run.runId)).map(({ status }) => status);
  expect(statuses).toEqual(["changed", "changed", "changed", "changed", "merged"]);
});

test("a merge into files with uncommitted changes is refused before the person is asked", async () => {
  const repository = testRepository();
  const { path, git, write } = repository;
  const bench = await setUp();
  write("a.txt", "person\n");
  write("new/e.txt", "person\n");
  const run = await bench.runtime.submit(teamOf(repository, noConflict, [["t1"], ["t2"]]), "Work.");
  await run.result();
  const results = await resultsOf(bench, run, "merge_worktrees");
  expect(results[0]).toBe(
    `nothing was merged, because ${path} has changes in a.txt that are not committed; they have to be committed first`,
  );
  expect(results[1]).toContain("has changes in new/d.txt");
  expect(git("status --porcelain")).toBe("M a.txt\n?? new/");
});

test("the work of employees is merged into the worktree of their lead, and the checkout does not change", async () => {
  const repository = testRepository();
  const { git, write } = repository;
  write("a.txt", "person\n");
  const bench = await setUp();
  const team = teamOf(repository, noConflict, [["t1", "t2"]], { isolatedLead: true });
  const head = git("rev-parse main");
  const run = await bench.runtime.submit(team, "Work.");
  const question = await asked(run);
  const { merge } = question.input as unknown as MergeQuestion;
  expect(merge).toMatchObject({ branch: `reeve/${run.runId}/t0/lead`, head });
  await run.approve(question.approvalId, { decision: "approved" });
  await run.result();
  expect([git("rev-parse main"), git("status --porcelain")]).toEqual([head, "M a.txt"]);
  expect(git(`show ${merge.branch}:new/d.txt`)).toBe("two");
  expect(git("branch --list reeve/* --format=%(refname:short)")).toBe(merge.branch);
});

test("merge_worktrees refuses a task without a worktree and names those that have one", async () => {
  const repository = testRepository();
  const bench = await setUp();
  const run = await bench.runtime.submit(teamOf(repository, noConflict, [["t9"]]), "Work.");
  await run.result();
  expect(await resultsOf(bench, run, "merge_worktrees")).toEqual([
    'there is no worktree of a task "t9"; your employees with worktrees are t1, t2',
  ]);
});
