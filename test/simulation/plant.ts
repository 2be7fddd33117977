import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { plantedBugs } from "./planted-bugs.ts";

/**
 * Plants a bug in a copy of the sources and simulates seeds until one finds the bug: `npm run test:bug NAME`. Ends with
 * 0 if one of the first 2,000 seeds finds it.
 */
const [name] = process.argv.slice(2);
const bugs = plantedBugs();
const bug = bugs.find((each) => each.name === name);
if (bug === undefined)
  throw new Error(
    `unknown bug ${JSON.stringify(name)}: use one of ${bugs.map((each) => each.name).join(", ")}`,
  );

const repository = fileURLToPath(new URL("../..", import.meta.url));
const copy = mkdtempSync(join(tmpdir(), "reeve-bug-"));
try {
  for (const part of ["src", "test", "package.json"])
    cpSync(join(repository, part), join(copy, part), { recursive: true });
  symlinkSync(join(repository, "node_modules"), join(copy, "node_modules"));
  run("git", ["init", "--quiet"]);
  if (run("git", ["apply", bug.path]) !== 0) throw new Error(`${bug.path} does not apply: write it anew`);
  const sweep = ["test/simulation/sweep.ts", "--seeds", "2000", "--workload", bug.workload, "--first-only"];
  const isFound = run(process.execPath, sweep) === 1;
  process.stdout.write(isFound ? `${bug.name} was found\n` : `${bug.name} WAS NOT FOUND\n`);
  process.exitCode = isFound ? 0 : 1;
} finally {
  rmSync(copy, { recursive: true, force: true });
}

function run(command: string, given: readonly string[]): number | null {
  return spawnSync(command, given, { cwd: copy, stdio: "inherit" }).status;
}
