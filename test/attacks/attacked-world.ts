import {
  chown,
  link,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  realpath,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";

/** A workspace and what lies outside it. Attacks start in the workspace and must not reach anything else. */
export interface World {
  /** Folder that contains everything. */
  readonly folder: string;
  /** The workspace of the tools. */
  readonly inside: string;
  /** A folder beside the workspace, with a secret. */
  readonly outside: string;
}

/** Text of the secret outside the workspace. No tool may return it. */
export const outsideSecret = "OUTSIDE-SECRET-4711";

/** Text that every control file of the world contains. */
const original = "original\n";

/** Control files of the world, relative to the workspace. */
const controlFiles = [
  ".git/config",
  ".git/hooks/pre-commit.sample",
  ".git/modules/m/config",
  ".git/modules/m/hooks/post-checkout",
  ".git/worktrees/w/commondir",
  ".git/worktrees/w/gitdir",
  "sub/.git/config",
  "sub/.git/hooks/update",
  "bare.git/config",
  "bare.git/hooks/update",
  "wt/.git",
  ".vscode/tasks.json",
  ".idea/workspace.xml",
  ".reeve/reeve.db",
  ".bashrc",
  ".profile",
  ".envrc",
  "sub/.envrc",
  ".husky/pre-commit",
] as const;

/** Other files of the world, relative to the workspace. */
const plainFiles = [
  "file",
  "sub/file",
  ".git/HEAD",
  ".git/index",
  ".git/objects/pack/keep",
  ".git/refs/heads/main",
  ".git/modules/m/HEAD",
  ".git/modules/m/objects/x",
  ".git/modules/m/refs/x",
  ".git/worktrees/w/HEAD",
  "sub/.git/HEAD",
  "sub/.git/objects/x",
  "sub/.git/refs/x",
  "bare.git/HEAD",
  "bare.git/objects/x",
  "bare.git/refs/x",
  "half/config",
  "half/objects/x",
  "half/refs/x",
  "dotfiles/aliases",
  "tools/hooks/pre-push",
  "tools/git-settings",
] as const;

/** Links of the world, relative to the workspace. */
const links: Readonly<Record<string, string>> = {
  out: "../outside",
  leak: "../outside/secret",
  chain: "sub/chain",
  "sub/chain": "../out/secret",
  dangling: "../outside/new",
  loop: "loop",
  root: "/",
  g: ".git",
  "link-to-config": ".git/config",
  "sub/hooks": "../.git/hooks",
  ".bash_aliases": "dotfiles/aliases",
};

/** Creates a world that is deleted when the test ends. With `owner`, everything belongs to that user. */
export async function attackedWorld(owner?: number): Promise<World> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "reeve-attack-")));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const [inside, outside] = [join(folder, "inside"), join(folder, "outside")];
  await mkdir(outside);
  await writeFile(join(outside, "secret"), outsideSecret);
  for (const path of [...controlFiles, ...plainFiles]) {
    await mkdir(dirname(join(inside, path)), { recursive: true });
    await writeFile(join(inside, path), original);
  }
  await writeFile(
    join(inside, ".git/config"),
    "[core]\n\tbare = false\n\thooksPath = tools/hooks\n[include]\n\tpath = ../tools/git-settings\n",
  );
  await writeFile(join(inside, ".git/HEAD"), "ref: refs/heads/none\n");
  await rm(join(inside, ".git/index"));
  await rm(join(inside, ".git/refs/heads/main"));
  for (const [path, target] of Object.entries(links)) await symlink(target, join(inside, path));
  await link(join(inside, ".envrc"), join(inside, "alias-of-envrc"));
  if (owner !== undefined)
    for (const path of [folder, ...(await pathsIn(folder))]) await chownLink(path, owner);
  return { folder, inside, outside };
}

async function chownLink(path: string, owner: number): Promise<void> {
  if (!(await lstat(path)).isSymbolicLink()) await chown(path, owner, owner);
}

/** Returns a description of every file, folder and link: path, kind and content. */
export async function snapshot(folder: string): Promise<readonly string[]> {
  const lines: string[] = [];
  for (const path of await pathsIn(folder)) {
    const stats = await lstat(path);
    const name = path.slice(folder.length + 1);
    const mode = (stats.mode & 0o777).toString(8);
    if (stats.isSymbolicLink()) lines.push(`${name} -> ${await readlink(path)}`);
    else if (stats.isFile()) lines.push(`${name} ${mode} ${await contentOf(path, stats.size)}`);
    else lines.push(`${name} ${mode}`);
  }
  return lines;
}

/** Returns the lines of a snapshot of the world's control files, and of everything outside the workspace. */
export async function guardedSnapshot({ folder }: World): Promise<readonly string[]> {
  const guarded = [
    ...controlFiles,
    "dotfiles/aliases",
    "tools/hooks",
    "tools/git-settings",
    ".bash_aliases",
  ].map((path) => `inside/${path}`);
  return (await snapshot(folder)).filter(
    (line) =>
      !line.startsWith("inside/") ||
      guarded.some((path) => line.startsWith(`${path} `) || line.startsWith(`${path}/`)),
  );
}

async function contentOf(path: string, size: number): Promise<string> {
  return size > 100_000 ? `${size} bytes` : JSON.stringify(await readFile(path, "latin1"));
}

async function pathsIn(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.map(({ parentPath, name }) => join(parentPath, name)).toSorted();
}
