import {
  lchownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
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

/**
 * The attacked worlds of one test file. A test reuses the world of an earlier test if that test has changed nothing in
 * it, because most attacks change nothing and creating a world takes longer than an attack.
 */
export class Worlds {
  readonly #owner: number | undefined;
  readonly #unchanged: { readonly world: World; readonly snapshot: readonly string[] }[] = [];

  /** With `owner`, everything in the worlds belongs to that user. */
  constructor(owner?: number) {
    this.#owner = owner;
  }

  /** Returns a world in its initial state. No other test uses the world at the same time. */
  take(): World {
    const found = this.#unchanged.pop();
    const world = found?.world ?? createWorld(this.#owner);
    const before = found?.snapshot ?? snapshot(world.folder);
    onTestFinished(() => {
      if (isDeepStrictEqual(snapshot(world.folder), before))
        this.#unchanged.push({ world, snapshot: before });
      else rmSync(world.folder, { recursive: true, force: true, maxRetries: 10 });
    });
    return world;
  }

  /** Deletes the worlds. */
  close(): void {
    for (const { world } of this.#unchanged)
      rmSync(world.folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

function createWorld(owner: number | undefined): World {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "reeve-attack-")));
  const [inside, outside] = [join(folder, "inside"), join(folder, "outside")];
  mkdirSync(outside);
  writeFileSync(join(outside, "secret"), outsideSecret);
  for (const path of [...controlFiles, ...plainFiles]) {
    mkdirSync(dirname(join(inside, path)), { recursive: true });
    writeFileSync(join(inside, path), original);
  }
  writeFileSync(
    join(inside, ".git/config"),
    "[core]\n\tbare = false\n\thooksPath = tools/hooks\n[include]\n\tpath = ../tools/git-settings\n",
  );
  writeFileSync(join(inside, ".git/HEAD"), "ref: refs/heads/none\n");
  rmSync(join(inside, ".git/index"));
  rmSync(join(inside, ".git/refs/heads/main"));
  for (const [path, target] of Object.entries(links)) symlinkSync(target, join(inside, path));
  linkSync(join(inside, ".envrc"), join(inside, "alias-of-envrc"));
  if (owner !== undefined) for (const path of [folder, ...pathsIn(folder)]) lchownSync(path, owner, owner);
  return { folder, inside, outside };
}

/** Returns a description of every file, folder and link: path, mode, owner and content. */
export function snapshot(folder: string): readonly string[] {
  return pathsIn(folder)
    .toSorted()
    .map((path) => {
      const stats = lstatSync(path);
      const name = path.slice(folder.length + 1);
      const mode = `${(stats.mode & 0o777).toString(8)} ${stats.uid}`;
      if (stats.isSymbolicLink()) return `${name} -> ${readlinkSync(path)}`;
      if (!stats.isFile()) return `${name} ${mode}`;
      const content =
        stats.size > 100_000 ? `${stats.size} bytes` : JSON.stringify(readFileSync(path, "latin1"));
      return `${name} ${mode} ${content}`;
    });
}

/** Returns the lines of a snapshot of the world's control files, and of everything outside the workspace. */
export function guardedSnapshot({ folder }: World): readonly string[] {
  const guarded = [
    ...controlFiles,
    "dotfiles/aliases",
    "tools/hooks",
    "tools/git-settings",
    ".bash_aliases",
  ].map((path) => `inside/${path}`);
  return snapshot(folder).filter(
    (line) =>
      !line.startsWith("inside/") ||
      guarded.some((path) => line.startsWith(`${path} `) || line.startsWith(`${path}/`)),
  );
}

/** Returns the paths in a folder. `readdirSync` with `recursive` would follow links, which lead out of the world. */
function pathsIn(folder: string): readonly string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? [path, ...pathsIn(path)] : [path];
  });
}
