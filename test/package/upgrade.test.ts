import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, glob, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { DatabaseSync } from "node:sqlite";
import { expect, inject, onTestFinished, test } from "vitest";
import { firstPromisedFormat, formatSteps } from "../../src/runtime/stores/codec/stored-format.ts";
import { fileOfText } from "../golden/file-text.ts";
import { repository, runNode } from "../gates/run-node.ts";

const { project } = inject("installed");
const newest = firstPromisedFormat + formatSteps.length;
const bin = "dist/surfaces/cli/main.js";
const today = join(project, "node_modules/reeve", bin);

/** Copies the installed package and plants one more stored format in it. Returns its command. */
async function laterPackage(): Promise<string> {
  const folder = await mkdtemp(join(project, "later-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  await cp(join(project, "node_modules/reeve"), folder, { recursive: true });
  const step = `{ changes: "runs have a colour", sqlite: "ALTER TABLE runs ADD COLUMN colour TEXT", postgres: "SELECT 1" }`;
  let planted = 0;
  for await (const file of glob(join(folder, "dist/**/*.js"))) {
    const code = await readFile(file, "utf8");
    const changed = code.replace(/(const formatSteps = \[[^]*?)\];/u, `$1${step}];`);
    if (changed === code) continue;
    await writeFile(file, changed);
    planted++;
  }
  expect(planted).toBe(1);
  return join(folder, bin);
}

/** A folder with the golden store of the newest format. Returns its path and the address of the store. */
async function stored(): Promise<{ readonly folder: string; readonly path: string; readonly store: string }> {
  const folder = await mkdtemp(join(project, "stored-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  const path = join(folder, "reeve.db");
  fileOfText(path, await readFile(join(repository, `test/golden/format-${newest}.sql`), "utf8"));
  return { folder, path, store: `sqlite:${path}` };
}

function formatOf(path: string): unknown {
  const database = new DatabaseSync(path, { readOnly: true });
  const format = database.prepare("PRAGMA user_version").get()?.["user_version"];
  database.close();
  return format;
}

/** Runs an upgrade until it prints something about its stage, and then kills the upgrade. */
async function killAt(words: string, command: string, store: string): Promise<void> {
  const child = spawn(process.execPath, [command, "store", "upgrade", "--store", store], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  const ended = once(child, "exit");
  for await (const line of createInterface({ input: child.stderr }))
    if (line.includes(words)) child.kill("SIGKILL");
  await ended;
}

interface Killed {
  readonly later: string;
  readonly folder: string;
  readonly path: string;
  readonly store: string;
}

/** Expects a store that the earlier version can open, and upgrades it. */
async function upgradeAfterKill({ later, folder, path, store }: Killed): Promise<void> {
  const reeve = (command: string, ...args: string[]) => runNode([command, ...args, "--store", store], folder);
  const listed = await reeve(today, "ps", "--all", "--json");
  expect({ code: listed.code, runs: listed.stdout.split("\n").length > 10 }).toEqual({ code: 0, runs: true });
  expect((await reeve(today, "audit", "verify")).code).toBe(0);
  const planned = await reeve(later, "store", "upgrade", "--dry-run");
  expect(planned.stdout).toContain(`  ${newest + 1}  runs have a colour\n`);
  expect(formatOf(path)).toBe(newest);
  const done = await reeve(later, "store", "upgrade", "--json");
  expect(done.code === 0 || done.stderr).toBe(true);
  expect(JSON.parse(done.stdout)).toMatchObject({ format: newest, newest: newest + 1, isDone: true });
}

test("the packed command upgrades a store, also after kill -9 at any stage, and the previous version opens what is not upgraded", async () => {
  const later = await laterPackage();
  for (const words of ["is copied", "copy is complete"]) {
    const { folder, path, store } = await stored();
    const reeve = (command: string, ...args: string[]) =>
      runNode([command, ...args, "--store", store], folder);
    const refused = await reeve(later, "ps", "--all");
    expect({ code: refused.code, stderr: refused.stderr }).toEqual({
      code: 4,
      stderr: expect.stringMatching(
        new RegExp(`stored format ${newest}, .+ writes format ${newest + 1}; .+ reeve store upgrade`, "u"),
      ) as string,
    });
    await killAt(words, later, store);
    // The kill may come after the commit.
    if (formatOf(path) === newest) await upgradeAfterKill({ later, folder, path, store });
    expect(formatOf(path)).toBe(newest + 1);
    expect((await reeve(later, "audit", "verify")).code).toBe(0);
    expect((await reeve(today, "ps", "--all")).stderr).toContain("of a newer version of Reeve");
  }
});

test("the packed command says that a store of its own format needs no upgrade, and refuses --backed-up for a file", async () => {
  const { folder, store } = await stored();
  const upgrade = (...args: string[]) =>
    runNode([today, "store", "upgrade", "--store", store, ...args], folder);
  const { code, stdout } = await upgrade();
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: expect.stringContaining("There is nothing to upgrade.") as string,
  });
  expect((await upgrade("--backed-up")).code).toBe(2);
  expect((await upgrade("--force")).code).toBe(2);
});
