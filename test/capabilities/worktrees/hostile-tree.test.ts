import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { deflateSync } from "node:zlib";
import { expect, test, vi } from "vitest";
import { worktreeIsolation } from "../../../src/capabilities/index.ts";
import { git as runGit } from "../../../src/capabilities/worktrees/git.ts";
import { Leftovers } from "../../../src/capabilities/worktrees/leftovers.ts";
import { packObjects } from "../../../src/capabilities/worktrees/packed-objects.ts";
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

test("D5: if an agent makes its worktree branch an alias of another branch, removal deletes the alias and keeps the other", async () => {
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

test("D5: a branch that an agent has checked out in its worktree does not move when the work is kept", async () => {
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

test("D5: a link that an agent puts in the place of a git log leads Reeve to no file outside of the repository", async () => {
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

test("D5: a pipe that an agent puts in the place of a file does not block git forever", async () => {
  const { path } = testRepository({ "a.txt": "a\n" });
  // Git reads the attributes only if it has to compare the contents of a file.
  utimesSync(join(path, "a.txt"), 1, 1);
  execFileSync("/usr/bin/env", ["mkfifo", join(path, ".gitattributes")]);
  await expect(runGit({ path }, ["status"], { longestMs: 500 })).rejects.toThrow(
    "it was ended after 1 s; look for named pipes",
  );
});

test("D5: a git filter of the user executes no file that an agent has written in its worktree", async () => {
  const repository = testRepository({
    "a.txt": "a\n",
    "clean.sh": "cat\n",
    ".gitattributes": "*.txt filter=own\n",
  });
  const { path, trees, git } = repository;
  execFileSync("git", ["config", "filter.own.clean", "sh clean.sh"], { cwd: path });
  const marker = join(trees, "..", "executed");
  const isolation = worktreeIsolation({ repository: path, folder: trees });
  const { commit, changed } = await inTree(repository, (folder, ctx) => {
    writeFileSync(join(folder.path, "clean.sh"), `touch ${marker}; cat`);
    writeFileSync(join(folder.path, "a.txt"), "work\n");
    return isolation.finish(ctx, folder);
  });
  expect(existsSync(marker)).toBe(false);
  expect(changed.paths).toEqual(["a.txt", "clean.sh"]);
  expect(git(`show ${commit}:a.txt`)).toBe("work");
});

test("D5: a program named git that an agent has written is not executed", async () => {
  const repository = testRepository();
  const { path, trees } = repository;
  const marker = join(trees, "..", "executed");
  const program = `#!/bin/sh\ntouch ${marker}\nPATH="$REAL" exec git "$@"\n`;
  const packages = join(path, "node_modules", ".bin");
  const isolation = worktreeIsolation({ repository: path, folder: trees });
  const real = process.env["PATH"] ?? "";
  const { changed } = await inTree(repository, (folder, ctx) => {
    for (const place of [folder.path, packages]) {
      mkdirSync(place, { recursive: true });
      writeFileSync(join(place, "git"), program, { mode: 0o755 });
    }
    vi.stubEnv("REAL", real);
    vi.stubEnv("PATH", [".", packages, real].join(delimiter));
    return isolation.finish(ctx, folder);
  });
  vi.unstubAllEnvs();
  expect(changed.paths).toEqual(["git"]);
  expect(existsSync(marker)).toBe(false);
});

test("D5: the filter of Git LFS is used in worktrees", async () => {
  const repository = testRepository({ "a.bin": "a\n" });
  const { path, trees, git } = repository;
  const programs = join(trees, "..", "programs");
  mkdirSync(programs);
  writeFileSync(join(programs, "git-lfs"), "#!/bin/sh\necho pointer\n", { mode: 0o755 });
  repository.commit({ ".gitattributes": "*.bin filter=lfs\n" });
  execFileSync("git", ["config", "filter.lfs.clean", `${programs}/git-lfs clean -- %f`], { cwd: path });
  const isolation = worktreeIsolation({ repository: path, folder: trees });
  const { commit } = await inTree(repository, (folder, ctx) => {
    writeFileSync(join(folder.path, "a.bin"), "work\n");
    return isolation.finish(ctx, folder);
  });
  expect(git(`show ${commit}:a.bin`)).toBe("pointer");
});

test("D5: an agent that replaces loose git objects changes no commit of the user, and none of its own recorded commits", async () => {
  const repository = testRepository();
  const { path, trees, git } = repository;
  const objects = join(path, ".git", "objects");
  const forge = (id: string): void => {
    const file = join(objects, id.slice(0, 2), id.slice(2));
    rmSync(file, { force: true });
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, deflateSync("blob 5\0evil\n"));
  };
  const isolation = worktreeIsolation({ repository: path, folder: trees });
  const { commit } = await inTree(repository, async (folder, ctx) => {
    forge(git("rev-parse main:a.txt"));
    forge(git("rev-parse main:b.txt"));
    writeFileSync(join(folder.path, "new.txt"), "work\n");
    return isolation.finish(ctx, folder);
  });
  forge(git(`rev-parse ${commit}:new.txt`));
  expect([git("show main:a.txt"), git("show main:b.txt"), git(`show ${commit}:new.txt`)]).toEqual([
    "a",
    "b",
    "work",
  ]);
  expect(git("fsck --connectivity-only")).not.toContain("missing");
});

test("a loose git object that an agent has forged or damaged does not get into a pack", async () => {
  const { path, git } = testRepository();
  const id = git("rev-parse main:a.txt");
  const file = join(path, ".git", "objects", id.slice(0, 2), id.slice(2));
  const own = readFileSync(file);
  rmSync(file);
  writeFileSync(file, deflateSync("blob 5\0evil\n"));
  mkdirSync(join(path, ".git", "objects", "ff"), { recursive: true });
  writeFileSync(join(path, ".git", "objects", "ff", "f".repeat(38)), "damaged");
  await packObjects(join(path, ".git"));
  rmSync(file);
  writeFileSync(file, own);
  expect(git("show main:a.txt")).toBe("a");
  expect(readdirSync(join(path, ".git", "objects", "pack")).filter((name) => name.startsWith("tmp"))).toEqual(
    [],
  );
});
