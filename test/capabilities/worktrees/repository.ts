import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";

/** A repository of a test, with a folder for worktrees beside it. */
export interface TestRepository {
  /** The checkout of the person, at the branch `main`. */
  readonly path: string;
  /** Folder for worktrees. */
  readonly trees: string;
  /** Runs git in the checkout, or in another folder, and returns what it printed. */
  readonly git: (args: string, cwd?: string) => string;
  /** Writes a file of the checkout. */
  readonly write: (path: string, text: string) => void;
  readonly read: (path: string) => string;
  /** Writes files and commits them. Returns the id of the commit. */
  readonly commit: (files: Readonly<Record<string, string>>) => string;
}

/** Creates a folder that is deleted after the test. */
export function tempFolder(name: string): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), `reeve-${name}-`)));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }));
  return folder;
}

/** Creates a repository with the files `a.txt`, `b.txt` and `src/c.txt`, which ignores `.env` and `node_modules/`. */
export function testRepository(
  files: Readonly<Record<string, string>> = {
    "a.txt": "a\n",
    "b.txt": "b\n",
    "src/c.txt": "c\n",
    ".gitignore": ".env\nnode_modules/\n",
  },
): TestRepository {
  const folder = tempFolder("repository");
  const repository = repositoryAt(join(folder, "project"), join(folder, "trees"));
  mkdirSync(repository.path);
  repository.git("init --quiet --initial-branch main .");
  repository.git("config user.name Ann");
  repository.git("config user.email ann@example.com");
  if (Object.keys(files).length > 0) repository.commit(files);
  return repository;
}

/** Uses an existing checkout. */
export function repositoryAt(path: string, trees: string): TestRepository {
  const git = (args: string, cwd = path): string =>
    execFileSync("git", args.split(" "), { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] }).trim();
  const write = (name: string, text: string): void => {
    mkdirSync(dirname(join(path, name)), { recursive: true });
    writeFileSync(join(path, name), text);
  };
  return {
    path,
    trees,
    git,
    write,
    read: (name) => readFileSync(join(path, name), "utf8"),
    commit: (files) => {
      for (const [name, text] of Object.entries(files)) write(name, text);
      git("add --all");
      git("commit --quiet --message more");
      return git("rev-parse HEAD");
    },
  };
}
