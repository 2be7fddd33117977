import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Leftovers, worktreeIsolation } from "../../../src/capabilities/index.ts";
import { TreeRecords, type TreeRecord } from "../../../src/capabilities/worktrees/tree-records.ts";
import { createTree } from "../../../src/capabilities/worktrees/worktree.ts";
import { Agent } from "../../../src/entries/index.ts";
import { fileTools } from "../../../src/entries/tools.ts";
import { formatRunId, type FolderWork, type RunId, type TaskFolder } from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { agent, setUp, spawnTask } from "../../runtime/runtime-setup.ts";
import { inTree } from "./opened-tree.ts";
import { testRepository, type TestRepository } from "./repository.ts";

/** Opens a worktree, lets code change it, and finishes it. */
function finished(
  repository: TestRepository,
  work: (folder: TaskFolder) => void,
  copy: readonly string[] = [],
): Promise<FolderWork> {
  const { path, trees } = repository;
  return inTree(
    repository,
    async (folder, ctx) => {
      work(folder);
      return worktreeIsolation({ repository: path, folder: trees }).finish(ctx, folder);
    },
    { copy },
  );
}

test("D4: createTree() completes a worktree whose creation ended in the middle, at any point", async () => {
  const repository = testRepository();
  const { path, trees, git } = repository;
  const records = new TreeRecords(trees);
  const made = await inTree(repository, async (folder) => records.find(folder.path));
  if (made === undefined) throw new Error("no record");
  const { gitDir: _gitDir, ...plan } = made;
  let number = 0;
  /**
   * Writes the record of an attempt to create a worktree, calls `leave` to leave some files behind, and completes the
   * attempt.
   */
  const completed = async (leave: (record: TreeRecord) => void): Promise<void> => {
    const runId = formatRunId(`part${++number}`);
    const record: TreeRecord = {
      ...plan,
      runId,
      path: plan.path.replace(/run_[^/]*-t0$/u, `${runId}-t0`),
      branch: plan.branch.replace(plan.runId, runId),
      state: "creating",
    };
    await records.write(record);
    leave(record);
    const ready = await createTree(records, record, { copy: [], now: 0 });
    expect(ready.state).toBe("ready");
    expect(git("status --porcelain", record.path)).toBe("");
    expect(git("symbolic-ref HEAD", record.path)).toBe(`refs/heads/${record.branch}`);
    expect(readFileSync(join(record.path, "src", "c.txt"), "utf8")).toBe("c\n");
  };
  const add = ({ path: tree, branch }: TreeRecord, options = ""): void =>
    void git(`worktree add ${options}--quiet --no-checkout -b ${branch} ${tree} ${plan.base}`);
  await completed(() => undefined);
  await completed(({ branch }) => git(`branch ${branch} ${plan.base}`));
  await completed((record) => add(record));
  await completed((record) => {
    add(record, "--lock ");
    git("reset --quiet --hard", record.path);
    rmSync(join(record.path, "src"), { recursive: true });
    writeFileSync(join(record.path, "a.txt"), "half");
  });
  await completed((record) => {
    add(record, "--lock ");
    rmSync(join(record.path, ".git"));
  });
  await completed((record) => {
    add(record);
    rmSync(record.path, { recursive: true });
  });
  expect(git("status --porcelain")).toBe("");
  expect(existsSync(path)).toBe(true);
});

test("D4: creating a worktree again keeps what an agent has changed in it meanwhile", async () => {
  const repository = testRepository();
  const { trees } = repository;
  await inTree(repository, async (folder) => {
    writeFileSync(join(folder.path, "a.txt"), "agent\n");
    const records = new TreeRecords(trees);
    const record = await records.find(folder.path);
    if (record === undefined) throw new Error("no record");
    expect(await createTree(records, record, { copy: [], now: 0 })).toEqual(record);
    await expect(
      createTree(records, { ...record, base: "f".repeat(40) }, { copy: [], now: 0 }),
    ).rejects.toThrow("belongs to another task");
    expect(readFileSync(join(folder.path, "a.txt"), "utf8")).toBe("agent\n");
  });
});

test("D5: finish() keeps the staged, deleted and new files of a worktree, and changes neither index nor branch", async () => {
  const repository = testRepository();
  const { git } = repository;
  let tree = "";
  const work = await finished(repository, ({ path }) => {
    tree = path;
    writeFileSync(join(path, "a.txt"), "staged\n");
    git("add a.txt", path);
    writeFileSync(join(path, "a.txt"), "written\n");
    rmSync(join(path, "b.txt"));
    writeFileSync(join(path, "new file.txt"), "new\n");
  });
  expect(work.changed).toEqual({ count: 3, paths: ["a.txt", "b.txt", "new file.txt"] });
  expect(git(`show ${work.commit}:a.txt`)).toBe("written");
  expect(git(`show ${work.commit}^2:a.txt`)).toBe("staged");
  expect(git("status --porcelain", tree)).toBe('MM a.txt\n D b.txt\n?? "new file.txt"');
  expect(git("rev-parse HEAD", tree)).toBe(work.base);
  git("gc --quiet --prune=now");
  expect(git(`cat-file -t ${work.commit}`)).toBe("commit");
});

test("D5: finish() keeps a worktree with ignored files, and removes one that only has unchanged copies", async () => {
  const repository = testRepository();
  repository.write(".env", "KEY=1\n");
  repository.write("node_modules/x.js", "x\n");
  const copy = [".env", "node_modules/x.js"];
  const built = await finished(repository, ({ path }) => {
    mkdirSync(join(path, "node_modules"));
    writeFileSync(join(path, "node_modules", "y.js"), "y\n");
  });
  expect(built).toMatchObject({ state: "kept", reason: "it has ignored files: node_modules/" });
  const changed = await finished(
    repository,
    ({ path }) => writeFileSync(join(path, ".env"), "KEY=2\n"),
    copy,
  );
  expect(changed).toMatchObject({ state: "kept", reason: "it has ignored files: .env" });
  const unchanged = await finished(repository, () => undefined, copy);
  expect([unchanged.state, existsSync(unchanged.path)]).toEqual(["removed", false]);
});

test("D5: finish() keeps a worktree with a repository in it, whose settings have no effect", async () => {
  const repository = testRepository();
  const { git } = repository;
  const work = await finished(repository, ({ path }) => {
    const inner = join(path, "inner");
    mkdirSync(inner);
    git("init --quiet .", inner);
    git(`config filter.evil.clean ${join(path, "evil")}`, inner);
    writeFileSync(join(inner, ".gitattributes"), "i.txt filter=evil\n");
    writeFileSync(join(path, "evil"), `#!/bin/sh\ntouch ${join(path, "executed")}\ncat\n`, { mode: 0o755 });
    writeFileSync(join(inner, "i.txt"), "inner\n");
    git("add i.txt", inner);
    git("-c user.name=x -c user.email=x@x commit --quiet -m inner", inner);
    git("add inner", path);
    git("commit --quiet -m inner", path);
    writeFileSync(join(inner, "i.txt"), "INNER\n");
    rmSync(join(path, "executed"), { force: true });
  });
  expect(existsSync(join(work.path, "executed"))).toBe(false);
  expect(work.state).toBe("kept");
  const leftovers = new Leftovers(repository.trees);
  const name = (await leftovers.list())[0]?.name ?? "";
  await expect(leftovers.remove(name, { commit: true })).rejects.toThrow(
    "does not report (submodules, or marks of git update-index): inner/",
  );
  expect(readFileSync(join(work.path, "inner", "i.txt"), "utf8")).toBe("INNER\n");
});

test("D5: finish() keeps a worktree with changes that git does not report", async () => {
  const [repository, library] = [testRepository(), testRepository()];
  const { git } = repository;
  git(`-c protocol.file.allow=always submodule add --quiet ${library.path} lib`);
  git("commit --quiet --message submodule");
  const change = (name: string, mark?: string): Promise<FolderWork> =>
    finished(repository, ({ path }) => {
      if (mark !== undefined) git(`update-index ${mark} ${name}`, path);
      writeFileSync(join(path, name), "agent\n");
    });
  const kept = [
    ["lib/", await change("lib/new.txt")],
    ["a.txt", await change("a.txt", "--assume-unchanged")],
    ["src/c.txt", await change("src/c.txt", "--skip-worktree")],
  ] as const;
  for (const [name, { state, reason, path }] of kept) {
    expect([state, reason]).toEqual([
      "kept",
      expect.stringMatching(new RegExp(`not report .*: ${name}$`, "u")),
    ]);
    expect(existsSync(path)).toBe(true);
  }
  expect((await finished(repository, () => undefined)).state).toBe("removed");
});

test("D5: the work of an agent that has left its branch survives the removal or deletion of its worktree", async () => {
  const repository = testRepository();
  const { git, trees } = repository;
  const commit = (text: string, path: string): string => {
    writeFileSync(join(path, "a.txt"), text);
    git("commit --quiet --all --message detached", path);
    return git("rev-parse HEAD", path);
  };
  const { path } = await finished(repository, (folder) => {
    git("checkout --quiet --detach", folder.path);
    commit("one\n", folder.path);
  });
  const last = commit("two\n", path);
  const leftovers = new Leftovers(trees);
  expect(await leftovers.remove(path)).toMatchObject({ branch: "kept" });
  expect(await leftovers.find(path)).toMatchObject({ state: "branch", commit: last });
  const deleted = await finished(repository, (folder) => {
    git("checkout --quiet --detach", folder.path);
    commit("three\n", folder.path);
  });
  rmSync(deleted.path, { recursive: true });
  git("worktree prune");
  git("gc --quiet --prune=now");
  expect(git(`show ${deleted.commit}:a.txt`)).toBe("three");
  expect(git(`show ${last}:a.txt`)).toBe("two");
});

test("D5: removing a worktree refuses a commit that no branch has, if the work of the task would be lost", async () => {
  const repository = testRepository();
  const { git, trees } = repository;
  const { path } = await finished(repository, (folder) => writeFileSync(join(folder.path, "a.txt"), "one\n"));
  git("checkout --quiet --detach", path);
  git("commit --quiet --all --message other", path);
  await expect(new Leftovers(trees).remove(path)).rejects.toThrow("no branch has its commit");
  expect(existsSync(join(path, "a.txt"))).toBe(true);
});

test("a restored worktree has the files that were not committed when its task ended", async () => {
  const repository = testRepository();
  const { git, trees } = repository;
  const { path, base } = await finished(repository, (folder) => {
    writeFileSync(join(folder.path, "new.txt"), "new\n");
    rmSync(join(folder.path, "b.txt"));
  });
  rmSync(path, { recursive: true });
  expect(await new Leftovers(trees).restore(path)).toMatchObject({
    state: "finished",
    uncommitted: { paths: ["b.txt", "new.txt"] },
  });
  expect([git("status --porcelain", path), git("rev-parse HEAD", path)]).toEqual([
    "D b.txt\n?? new.txt",
    base,
  ]);
});

test("a resumed task fails if its worktree was deleted, names the branch, and continues in the restored one", async () => {
  const repository = testRepository();
  const { path, trees, git } = repository;
  const bench = await setUp();
  const coder = new Agent({
    name: "coder",
    model: scriptedModel([
      { toolCalls: [{ name: "write", input: { path: "a.txt", content: "one\n" } }] },
      { toolCalls: [{ name: "write", input: { path: "b.txt", content: "two\n" } }] },
      "done",
    ]),
    tools: fileTools({ root: path }),
    budget: { maxTurns: 1 },
    isolation: { worktree: { repository: path, folder: trees } },
  });
  const run = await bench.runtime.submit(coder, "Work.");
  expect((await run.result()).status).toBe("budget_exhausted");
  const leftovers = new Leftovers(trees);
  const [leftover] = await leftovers.list();
  expect(leftover).toMatchObject({
    name: `${run.runId}/t0`,
    state: "open",
    uncommitted: { paths: ["a.txt"] },
  });
  const tree = leftover?.path ?? "";
  git("commit --quiet --all --message one", tree);
  rmSync(tree, { recursive: true });
  expect(await leftovers.find(tree)).toMatchObject({ state: "missing", changed: { paths: ["a.txt"] } });
  await run.topUp({ maxTurns: 5 });
  const failed = await run.result();
  expect([failed.status, failed.error?.code]).toEqual(["failed", "not_found"]);
  expect(failed.error?.message).toContain(
    `was deleted or replaced; what was committed is at the branch reeve/${run.runId}/t0/coder: restore it with reeve worktrees restore ${run.runId}/t0`,
  );
  expect(await leftovers.restore(`${run.runId}/t0`)).toMatchObject({ state: "open", path: tree });
  await run.resume();
  expect((await run.result()).status).toBe("completed");
  expect([readFileSync(join(tree, "a.txt"), "utf8"), readFileSync(join(tree, "b.txt"), "utf8")]).toEqual([
    "one\n",
    "two\n",
  ]);
});

test("D8: a fork works in a worktree of its own from the same base, and the worktree of its origin stays unchanged", async () => {
  const repository = testRepository();
  const { path, trees, commit } = repository;
  const bench = await setUp();
  const write = (content: string): { readonly toolCalls: readonly object[] } => ({
    toolCalls: [{ name: "write", input: { path: "a.txt", content } }],
  });
  const coder = new Agent({
    name: "coder",
    model: scriptedModel([write("origin\n"), "done", write("fork\n"), "done"] as never),
    tools: fileTools({ root: path }),
    isolation: { worktree: { repository: path, folder: trees } },
  });
  const run = await bench.runtime.submit(coder, "Work.");
  await run.result();
  commit({ "later.txt": "later\n" });
  const at = (await bench.events(run.runId)).find(({ type }) => type === "agent_start")?.seq ?? 0;
  const fork = await run.fork({ at });
  expect((await fork.result()).error).toBeNull();
  const treeOf = async (runId: RunId): Promise<TreeRecord> => {
    const [record] = await new TreeRecords(trees).ofRun(runId);
    if (record === undefined) throw new Error(`${runId} has no worktree`);
    return record;
  };
  const [origin, own] = [await treeOf(run.runId), await treeOf(fork.runId)];
  expect([own.base, own.branch]).toEqual([origin.base, `reeve/${fork.runId}/t0/coder`]);
  expect(readFileSync(join(origin.path, "a.txt"), "utf8")).toBe("origin\n");
  expect(readFileSync(join(own.path, "a.txt"), "utf8")).toBe("fork\n");
});

test("D2, D3: a child without isolation works in its parent's worktree; one with isolation starts from the parent's HEAD", async () => {
  const repository = testRepository();
  const { path, trees, git } = repository;
  const isolation = worktreeIsolation({ repository: path, folder: trees });
  const bench = await setUp();
  const own = agent("own", async (ctx) => {
    const folder = await isolation.open(ctx);
    return [folder.origin, folder.base, existsSync(join(folder.path, "lead.txt")), folder.notes];
  });
  const shared = agent("shared", async (ctx) => ctx.folder?.path ?? null);
  const lead = agent(
    "lead",
    async (ctx) => {
      const folder = await isolation.open(ctx);
      ctx.useFolder(folder);
      writeFileSync(join(folder.path, "lead.txt"), "lead\n");
      git("add lead.txt", folder.path);
      git("commit --quiet --message lead", folder.path);
      writeFileSync(join(folder.path, "open.txt"), "open\n");
      const first = await ctx.join(await spawnTask(ctx, own));
      const second = await ctx.join(await spawnTask(ctx, shared));
      return [folder.path, git("rev-parse HEAD", folder.path), first.output, second.output];
    },
    { subAgents: [own, shared] },
  );
  const { output, error } = await (await bench.runtime.submit(lead, null)).result();
  expect(error).toBeNull();
  const [tree, head, first, second] = output as unknown as [string, string, unknown[], string];
  expect(first.slice(0, 3)).toEqual([path, head, true]);
  expect(first[3]).toContain(`changes that are not committed: open.txt`);
  expect(second).toBe(tree);
});
