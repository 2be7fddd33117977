// Runs the core of the suite on the oldest supported Node and on the newest: node build/test-on-node.ts
import { spawn } from "node:child_process";

/** Projects of vitest by version of Node. The oldest version is the minimum of `engines` in package.json. */
const projects = { "22.19.0": ["contract"], "26.10.0": ["contract"] };

/** Runs the projects on a version of the package `node`, which npm takes from its configured registry. */
function run(version: string, names: readonly string[]): Promise<number | null> {
  const suite = ["node_modules/vitest/vitest.mjs", "run", ...names.flatMap((name) => ["--project", name])];
  const args = ["exec", "--yes", `--package=node@${version}`, "--", "node", ...suite];
  return new Promise((resolve, reject) => {
    spawn("npm", args, { stdio: "inherit" }).once("error", reject).once("close", resolve);
  });
}

for (const [version, names] of Object.entries(projects)) {
  process.stdout.write(`\nNode ${version}: ${names.join(", ")}\n`);
  if ((await run(version, names)) !== 0) process.exitCode = 1;
}
