// Runs the core of the suite on the oldest supported Node and on the newest, or with --this on the Node that starts it:
// node build/test-on-node.ts [--this]
import { spawn } from "node:child_process";

/**
 * The oldest version is the minimum of `engines` in package.json. npm has no Node 22.19.0 for ARM64, so the next one takes
 * its place there.
 */
const versions = [process.arch === "arm64" ? "22.20.0" : "22.19.0", "26.10.0"];

/** The tests of the SQLite store, which depends on `node:sqlite`, and of the golden journals. */
const files = ["test/contract/sqlite-store.test.ts", "test/golden", "test/runtime/stores/sqlite"];

/**
 * Runs the tests on a version of the package `node`, which npm takes from its configured registry, or on this Node. `npm test` runs
 * them beside all others, so they use one worker.
 */
function run(version: string): Promise<number | null> {
  const suite = [
    "node_modules/vitest/vitest.mjs",
    "run",
    "--project",
    "contract",
    "--maxWorkers=1",
    ...files,
  ];
  const [program, args] =
    version === process.versions.node
      ? [process.execPath, suite]
      : ["npm", ["exec", "--yes", `--package=node@${version}`, "--", "node", ...suite]];
  return new Promise((resolve, reject) => {
    spawn(program, args, { stdio: "inherit" }).once("error", reject).once("close", resolve);
  });
}

for (const version of process.argv.includes("--this") ? [process.versions.node] : versions) {
  process.stdout.write(`\nNode ${version}: ${files.join(", ")}\n`);
  if ((await run(version)) !== 0) process.exitCode = 1;
}
