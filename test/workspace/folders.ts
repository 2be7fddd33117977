import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";

/** A temporary home and project of one test. */
export interface TestFolders {
  /** Folder that stands for `~`. */
  readonly user: string;
  /** Folder that stands for `~/.reeve`. */
  readonly home: string;
  readonly project: string;
  /** Writes files; a key is a path below the home (`~/...`) or the project. */
  readonly write: (files: Readonly<Record<string, string>>) => Promise<void>;
  /** Creates a link below the project. */
  readonly link: (path: string, target: string) => Promise<void>;
}

/** Creates a home and a project that are removed when the test ends. The project is a git repository. */
export async function testFolders(): Promise<TestFolders> {
  const root = await realpath(await mkdtemp(join(tmpdir(), "reeve-workspace-")));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  const [user, project] = [join(root, "user"), join(root, "project")];
  const home = join(user, ".reeve");
  await mkdir(join(project, ".git"), { recursive: true });
  await mkdir(home, { recursive: true });
  const at = (path: string): string =>
    path.startsWith("~/") ? join(user, path.slice(2)) : join(project, path);
  return {
    user,
    home,
    project,
    async write(files) {
      const folders = new Set(Object.keys(files).map((path) => dirname(at(path))));
      for (const folder of folders) await mkdir(folder, { recursive: true });
      await Promise.all(Object.entries(files).map(([path, text]) => writeFile(at(path), text)));
    },
    async link(path, target) {
      await mkdir(dirname(at(path)), { recursive: true });
      await symlink(target, at(path));
    },
  };
}
