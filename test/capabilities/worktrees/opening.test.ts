import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { worktreeIsolation } from "../../../src/capabilities/index.ts";
import { TreeRecords } from "../../../src/capabilities/worktrees/tree-records.ts";
import { Agent } from "../../../src/entries/index.ts";
import { callTool, textOf } from "../tools/call-tool.ts";
import { readTool } from "../../../src/entries/tools.ts";
import { inTree } from "./opened-tree.ts";
import { repositoryAt, tempFolder, testRepository } from "./repository.ts";

/** Sets a variable of this process until the test ends. */
function setVariable(name: string, value: string): void {
  const before = process.env[name];
  process.env[name] = value;
  onTestFinished(() => {
    if (before === undefined) delete process.env[name];
    else process.env[name] = before;
  });
}

test("opening worktrees says what to do if there is no repository, no commit, or no checkout", async () => {
  const folder = tempFolder("place");
  const trees = join(folder, "trees");
  const none = { path: join(folder, "none"), trees };
  mkdirSync(none.path);
  await expect(inTree(none, async () => null)).rejects.toThrow(
    `${none.path} is not in a git repository: run git init and commit the files; or remove isolation from the agent`,
  );
  const absent = { path: join(folder, "absent"), trees };
  await expect(inTree(absent, async () => null)).rejects.toThrow(`the folder ${absent.path} does not exist`);
  execFileSync("git", ["init", "--quiet", "--bare", join(folder, "bare")]);
  await expect(inTree({ path: join(folder, "bare"), trees }, async () => null)).rejects.toThrow(
    "is not in a checkout but in a bare repository or a git folder",
  );
  const empty = testRepository({});
  await expect(inTree(empty, async () => null)).rejects.toThrow(
    "has no commit, from which a worktree could start",
  );
  const broken = { path: join(folder, "new\nline"), trees };
  execFileSync("git", ["init", "--quiet", broken.path]);
  await expect(inTree(broken, async () => null)).rejects.toThrow("has a line break");
  expect(existsSync(empty.trees)).toBe(false);
});

test("opening worktrees refuses a folder for them inside the checkout, also through a link", async () => {
  const repository = testRepository();
  const { path, git } = repository;
  const link = join(tempFolder("link"), "project");
  symlinkSync(path, link);
  for (const trees of [join(path, "trees"), join(link, "trees")])
    await expect(inTree({ path, trees }, async () => null)).rejects.toThrow(`is inside the checkout ${path}`);
  expect(git("worktree list").split("\n")).toHaveLength(1);
});

test("opening worktrees needs git 2.38, and says so if git is missing or older", async () => {
  const repository = testRepository();
  const bin = tempFolder("bin");
  setVariable("PATH", bin);
  await expect(inTree(repository, async () => null)).rejects.toMatchObject({
    code: "dependency_missing",
    message: expect.stringMatching(/^git cannot be started in .*: install git 2\.38 or newer/u),
  });
  writeFileSync(join(bin, "git"), "#!/bin/sh\necho git version 2.30.1\n", { mode: 0o755 });
  await expect(inTree(repository, async () => null)).rejects.toMatchObject({
    code: "dependency_missing",
    message: expect.stringMatching(/^git version 2\.30\.1 is too old for worktrees: install git 2\.38/u),
  });
});

test("D3: the base of a worktree is the commit from which a person starts, also with a HEAD without a branch", async () => {
  const { path, trees, git, commit } = testRepository();
  const own = join(path, "..", "own");
  git(`worktree add --quiet -b own ${own}`);
  const place = repositoryAt(own, trees);
  const head = place.commit({ "own.txt": "own\n" });
  commit({ "main.txt": "main\n" });
  await inTree({ path: join(own, "src"), trees }, async ({ base, origin, path: tree }) => {
    expect([base, origin, existsSync(join(tree, "own.txt")), existsSync(join(tree, "main.txt"))]).toEqual([
      head,
      own,
      true,
      false,
    ]);
  });
  place.git("checkout --quiet --detach HEAD~1");
  await inTree({ path: own, trees }, async ({ base, notes }) => {
    expect(base).toBe(place.git("rev-parse HEAD"));
    expect(notes).toContain(`which started from commit ${base.slice(0, 12)} of ${own}. Other agents`);
  });
  expect(git("symbolic-ref HEAD")).toBe("refs/heads/main");
});

test("worktrees of a shallow clone work, and submodules are reported as missing", async () => {
  const { path, trees, git, commit } = testRepository();
  const part = testRepository({ "part.txt": "part\n" });
  git(`-c protocol.file.allow=always submodule --quiet add ${part.path} lib`);
  commit({ "a.txt": "second\n" });
  const clone = join(path, "..", "clone");
  git(`clone --quiet --depth 1 file://${path} ${clone}`);
  await inTree({ path: clone, trees }, async ({ path: tree, notes }) => {
    expect(readFileSync(join(tree, "a.txt"), "utf8")).toBe("second\n");
    expect(notes).toContain("the content of submodules: lib.");
    expect(existsSync(join(tree, "lib", "part.txt"))).toBe(false);
  });
});

test("D4: a worktree does not take over an existing branch or folder, and nothing is created beside it", async () => {
  const repository = testRepository();
  const { trees, git } = repository;
  const [first, second] = await inTree(repository, async ({ branch, path }) => {
    git(`branch ${branch.replace("tree", "taken")}`);
    mkdirSync(path.replace("run_tree", "run_empty"));
    return [
      branch.replace(/.*run_tree(.*)\/t0.*/u, "taken$1"),
      path.replace(/.*run_tree(.*)-t0/u, "empty$1"),
    ];
  });
  const open = (runId: string | undefined): Promise<null> => inTree(repository, async () => null, {}, runId);
  await expect(open(first)).rejects.toMatchObject({
    code: "already_exists",
    message: expect.stringContaining(`the branch reeve/run_${first}/t0/worker exists already`),
  });
  await expect(open(second)).rejects.toMatchObject({
    code: "already_exists",
    message: expect.stringMatching(
      new RegExp(`run_${second}-t0 exists already; look at it with reeve worktrees`, "u"),
    ),
  });
  expect(git("worktree list").split("\n")).toHaveLength(2);
  expect(await new TreeRecords(trees).list()).toHaveLength(1);
});

test("the option copy of worktrees copies ignored files, and refuses files that git does not ignore or that are outside", async () => {
  const repository = testRepository();
  const { path, trees, write } = repository;
  write(".env", "KEY=1\n");
  write("node_modules/x.js", "x\n");
  const copy = [".env", "node_modules/x.js", "absent.env"];
  await inTree(
    repository,
    async ({ path: tree, notes }) => {
      expect(readFileSync(join(tree, ".env"), "utf8")).toBe("KEY=1\n");
      expect(notes).toContain("Copied into your folder: .env, node_modules/x.js.");
    },
    { copy },
  );
  await expect(inTree(repository, async () => null, { copy: ["a.txt"] })).rejects.toThrow(
    'invalid copy "a.txt": git does not ignore the file',
  );
  await expect(inTree(repository, async () => null, { copy: ["node_modules"] })).rejects.toThrow(
    "is not a file",
  );
  rmSync(join(path, ".env"));
  symlinkSync("/etc/hostname", join(path, ".env"));
  await expect(inTree(repository, async () => null, { copy: [".env"] })).rejects.toThrow("is outside");
  for (const wrong of ["/etc/passwd", "../x", ""])
    expect(() => worktreeIsolation({ repository: path, folder: trees, copy: [wrong] })).toThrow(
      `invalid copy ${JSON.stringify(wrong)}`,
    );
});

test("D1: no path, link or root leads a file tool from its worktree to the checkout or past the worktree", async () => {
  const repository = testRepository();
  const { path, trees, commit } = repository;
  symlinkSync(join(path, "a.txt"), join(path, "link.txt"));
  symlinkSync("src/c.txt", join(path, "inside.txt"));
  commit({ "deep/d.txt": "d\n" });
  await inTree(repository, async (folder) => {
    const read = async (root: string, file: string, folders: readonly string[] = []): Promise<string> =>
      textOf(await callTool(readTool({ root, folders }), { path: file }, { folder }));
    expect(await read(path, "inside.txt")).toBe("c");
    expect(await read(join(path, "deep"), "d.txt")).toBe("d");
    expect(await read(path, join(folder.path, "a.txt"))).toBe("a");
    expect(await read(path, "link.txt")).toContain("from which this task is isolated: use a.txt");
    expect(await read(path, "../../x")).toContain("is outside the workspace");
    expect(await read(join(path, "deep"), join(folder.path, "a.txt"))).toContain("is outside the workspace");
    expect(await read(trees, "x")).toContain(`is outside ${path}, for which this task has the folder`);
    expect(await read(path, "x", [join(path, "..")])).toContain(
      "contains files from which this task is isolated",
    );
    writeFileSync(join(trees, "note.txt"), "note\n");
    const elsewhere = tempFolder("elsewhere");
    writeFileSync(join(elsewhere, "e.txt"), "e\n");
    expect(await read(path, join(elsewhere, "e.txt"), [elsewhere])).toBe("e");
    repository.write("node_modules/y.js", "y\n");
    expect(await read(join(path, "node_modules"), "y.js")).toContain("is not in the folder");
    rmSync(folder.path, { recursive: true });
    expect(await read(path, "a.txt")).toContain(
      `was deleted; restore it with reeve worktrees restore ${folder.runId}/t0`,
    );
  });
});

test("environment variables that redirect git have no effect on worktrees, as in a git hook that started Reeve", async () => {
  const repository = testRepository();
  const other = testRepository();
  setVariable("GIT_DIR", join(other.path, ".git"));
  setVariable("GIT_INDEX_FILE", join(other.path, "index"));
  const base = await inTree(repository, async (folder) => folder.base);
  delete process.env["GIT_DIR"];
  expect(base).toBe(repository.git("rev-parse main"));
});

test("an agent refuses an unknown value of isolation", () => {
  const make = (isolation: unknown) => () => new Agent({ name: "coder", isolation } as never);
  expect(make("container")).toThrow(
    'invalid isolation "container" of agent coder: expected "worktree", or { worktree: { copy: [".env"] } }',
  );
  expect(make({ worktree: { copies: [] } })).toThrow(
    'unknown option "copies" of isolation of agent coder: expected one of repository, folder, copy',
  );
  expect(make({ tree: {} })).toThrow('unknown option "tree" of isolation of agent coder');
});
