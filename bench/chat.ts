import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { withBundledPackage } from "./bundled-package.ts";
import { terminalRows } from "./chat-terminal.ts";
import { median, type Row } from "./row.ts";

/** Number of processes of each kind. They take turns, so that a busy machine slows both. */
const processes = 9;

/** A module that prints the processor time of its process at the exit, as the last line on stderr. */
const reporter = `data:text/javascript,process.on("exit", () => {
  const { user, system } = process.cpuUsage();
  process.stderr.write("\\n" + (user + system));
});`;

/** Milliseconds of processor time of a process that runs a program of Node to its end. */
async function processMs(folder: string, args: readonly string[]): Promise<number> {
  const { stderr } = await promisify(execFile)(process.execPath, ["--import", reporter, ...args], {
    cwd: folder,
  });
  return Number(stderr.split("\n").at(-1)) / 1_000;
}

/** What a person notices in a terminal: how long `reeve --help` takes, and how `reeve chat` answers to keys. */
export function rows(): AsyncIterable<Row> {
  return withBundledPackage(async function* (folder) {
    const empty = join(folder, "empty.mjs");
    await writeFile(empty, "");
    const main = join(folder, "dist/surfaces/cli/main.js");
    const [floors, helps]: [number[], number[]] = [[], []];
    for (let each = 0; each < processes; each++) {
      floors.push(await processMs(folder, [empty]));
      helps.push(await processMs(folder, [main, "--help"]));
    }
    yield {
      name: "reeve --help, against 1.2 empty processes and 60 ms",
      value: median(helps),
      unit: "cpu ms",
      against: 1.2 * median(floors) + 60,
      goal: { atMost: 1 },
    };
    yield* terminalRows(folder);
  });
}
