// Runs the modules of a list one after another in this process: node module-runner.ts LIST
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { inspect } from "node:util";
import type { ModuleList } from "./run-offline.ts";

const list = readFileSync(process.argv[2] ?? "", "utf8");
const { start, failure, modules } = JSON.parse(list) as ModuleList;
let hasFailed = false;
for (const { file, folder } of modules) {
  process.chdir(folder);
  process.stdout.write(start);
  try {
    await import(pathToFileURL(file).href);
  } catch (error) {
    process.stdout.write(`${failure}${inspect(error)}`);
    hasFailed = true;
  }
}
// A module that failed may have left a server open, which keeps the process alive.
if (hasFailed) process.exit();
