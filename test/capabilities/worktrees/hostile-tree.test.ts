import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { worktreeIsolation } from "../../../src/capabilities/index.ts";
import { git as runGit } from "../../../src/capabilities/worktrees/git.ts";
import { Leftovers } from "../../../src/capabilities/worktrees/leftovers.ts";
import type { TaskFolder } from "../../../src/kernel/index.ts";
import { inTree } from "./opened-tree.ts";
import { testRepository, type TestRepository } from "./repository.ts";

// What a sandboxed agent can write of the repository: its own git folder, and the folder of its own branch.
function writableOf(
  { path, git }: TestRepository,
  folder: TaskFolder,
): Record<"gitDir" | "branch" | "log", string> {
  const gitDir = git("rev-parse --git-dir", folder.path);
  const branch = join(path, ".git", "refs", "heads", folder.branch);
  return { gitDir, branch, log: join(path, ".git", "logs", "refs", "heads", folder.branch) };
}

test("D5: a branch that an agent has made a name of another one is deleted without that one", async () => {
  const repository = testRepository();
  const { git, path, trees } = repository;
  git("branch dev");
  git("checkout --quiet dev");
  const work = repository.commit({ "a.txt": "not yet pushed\n" });
  git("checkout --quiet main");
  const isolation = worktreeIsolation({ repository: path, folder: trees });
  const { state } = await inTree(repository, (folder, ctx) => {
    const { gitDir, branch } = writableOf(repository, folder);
    writeFileSync(branch, "ref: refs/heads/dev\n");
    writeFileSync(join(gitDir, "HEAD"), `${folder.base}\n`);
    return isolation.finish(ctx, folder);
  });
  expect(state).toBe("removed");
  expect(git("rev-parse dev")).toBe(work);
  expect(git("branch --list --format=%(refname:short)").split("\n")).toEqual(["dev", "main"]);
});

test("D5: the branch at which an agent has left its tree does not move when its work is kept", async () => {
  const repository = testRepository();
  const { git, path, trees } = repository;
  const base = git("rev-parse main");
  git("branch dev");
  const isolation = worktreeIsolation({ repository: path, folder: trees });
  const { commit } = await inTree(repository, async (folder, ctx) => {
    writeFileSync(join(writableOf(repository, folder).gitDir, "HEAD"), "ref: refs/heads/dev\n");
    writeFileSync(join(folder.path, "a.txt"), "work\n");
    return isolation.finish(ctx, folder);
  });
  const [leftover] = await new Leftovers(trees).list();
  await new Leftovers(trees).remove(leftover?.name ?? "", { commit: true });
  expect([git("rev-parse dev"), git("rev-parse main")]).toEqual([base, base]);
  expect(git("for-each-ref --format=%(tree) refs/reeve")).toBe(git(`rev-parse ${commit}^{tree}`));
});

test("D5: a link in the place of a log leads Reeve to no file outside of the repository", async () => {
  const repository = testRepository();
  const { path, trees } = repository;
  const victim = join(trees, "..", "victim.txt");
  writeFileSync(victim, "untouched\n");
  const isolation = worktreeIsolation({ repository: path, folder: trees });
  const gitDir = await inTree(repository, async (folder, ctx) => {
    const own = writableOf(repository, folder);
    writeFileSync(join(folder.path, "a.txt"), "work\n");
    for (const place of [own.log, join(own.gitDir, "logs", "HEAD"), join(own.gitDir, "COMMIT_EDITMSG")]) {
      rmSync(place, { force: true });
      mkdirSync(dirname(place), { recursive: true });
      symlinkSync(victim, place);
    }
    await isolation.finish(ctx, folder);
    return own.gitDir;
  });
  expect(existsSync(join(gitDir, "COMMIT_EDITMSG"))).toBe(false);
  const [leftover] = await new Leftovers(trees).list();
  await new Leftovers(trees).remove(leftover?.name ?? "", { commit: true });
  expect(readFileSync(victim, "utf8")).toBe("untouched\n");
});

test("D5: a pipe in the place of a file does not keep git forever", async () => {
  const { path } = testRepository();
  execFileSync("/usr/bin/env", ["mkfifo", join(path, ".gitattributes")]);
  await expect(runGit({ path }, ["status"], { longestMs: 500 })).rejects.toThrow(
    "it was ended after 1 s; look for named pipes",
  );
});
