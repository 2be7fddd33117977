import { execFile } from "node:child_process";
import { cp, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { writePublished } from "../build/bundle.ts";

const repository = fileURLToPath(new URL("../", import.meta.url));

/** Calls `use` with the folder of a bundled copy of the package, as it is published, and deletes the copy. */
export async function* withBundledPackage<Value>(
  use: (folder: string) => AsyncIterable<Value>,
): AsyncIterable<Value> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-import-"));
  try {
    await cp(join(repository, "package.json"), join(folder, "package.json"));
    await symlink(join(repository, "node_modules"), join(folder, "node_modules"));
    await writePublished(repository, join(folder, "dist"));
    yield* use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Runs a module given as text in a new Node process, and returns what the process printed. */
export async function runEval(cwd: string, code: string, argument: string): Promise<string> {
  const args = ["--input-type=module", "--eval", code, "--", argument];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd });
  return stdout;
}
