import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { memorySchema } from "../../../../src/capabilities/memory/index.ts";
import { openMemory } from "../../../../src/entries/memory.ts";
import { storeSchema } from "../../../../src/runtime/stores/sqlite/db/schema.ts";
import {
  planFileUpgrade,
  upgradeFile,
  type UpgradeStage,
} from "../../../../src/runtime/stores/sqlite/upgrade-file.ts";
import { fileOfText, textOfFile } from "../../../golden/file-text.ts";
import { plantedFormat, plantedSchema, plantedWith } from "./planted-format.ts";
import { startProcess } from "./store-process.ts";
import { newPath, openStore, until } from "./store-files.ts";

const main = fileURLToPath(new URL("upgrade-process-main.ts", import.meta.url));
const golden = new URL(`../../../golden/format-${plantedFormat - 1}.sql`, import.meta.url);

/** Creates the golden store, as a process has left it that had it open. */
async function goldenFile(): Promise<string> {
  const path = await newPath();
  fileOfText(path, readFileSync(golden, "utf8"));
  await (await openStore(path)).close();
  return path;
}

/** Uses a connection of its own, and closes it. An open one would prevent an upgrade. */
function using<Result>(path: string, use: (connection: DatabaseSync) => Result): Result {
  const connection = new DatabaseSync(path);
  try {
    return use(connection);
  } finally {
    connection.close();
  }
}

function execute(path: string, sql: string): void {
  using(path, (connection) => connection.exec(sql));
}

function rowsOf(path: string, sql: string): readonly unknown[] {
  return using(path, (connection) => connection.prepare(sql).all());
}

function formatOf(path: string): unknown {
  return using(path, (connection) => connection.prepare("PRAGMA user_version").get()?.["user_version"]);
}

/** The copies beside a store, complete or not. */
function copiesOf(path: string): readonly string[] {
  return readdirSync(dirname(path)).filter((name) => name.includes(".format-"));
}

/** Expects a store as it was, which today's version opens. */
async function expectUnchanged(path: string, before: string): Promise<void> {
  expect(textOfFile(path)).toBe(before);
  const store = await openStore(path);
  expect(await store.journal.count()).toBeGreaterThan(10);
  await store.close();
}

test("upgradeFile() changes the SQLite tables, keeps all rows, and leaves a complete copy of the old file", async () => {
  const path = await goldenFile();
  chmodSync(path, 0o640);
  const before = textOfFile(path);
  const [titles, stages] = [[] as unknown[], [] as UpgradeStage[]];
  const shout = (): unknown => rowsOf(path, "SELECT title FROM sessions ORDER BY id");
  titles.push(shout());
  const plan = await upgradeFile(path, [plantedSchema], (stage) => stages.push(stage));
  titles.push(shout());
  const backup = `${path}.format-${plantedFormat - 1}.backup`;
  expect(plan).toMatchObject({ format: plantedFormat - 1, newest: plantedFormat, backup });
  expect(plan.changes).toEqual([
    { format: plantedFormat, changes: plantedSchema.migrations.at(-1)?.changes },
  ]);
  expect(stages).toEqual(["locked", "copied", "changed", "committed"]);
  expect(formatOf(path)).toBe(plantedFormat);
  expect(titles[1]).toEqual(
    JSON.parse(JSON.stringify(titles[0]).replaceAll(/(?<=:")[^"]+/gu, (text) => text.toUpperCase())),
  );
  expect(rowsOf(path, "SELECT colour FROM runs").length).toBeGreaterThan(10);
  // SQLite may list tables and triggers in another order.
  expect(textOfFile(backup).split("\n").toSorted()).toEqual(before.split("\n").toSorted());
  expect(statSync(backup).mode & 0o777).toBe(0o640);
  expect(copiesOf(path)).toEqual([basename(backup)]);
  await expect(openStore(path)).rejects.toMatchObject({ code: "version_mismatch" });
});

test("planFileUpgrade() says what would change, and changes no file", async () => {
  const path = await goldenFile();
  const before = readFileSync(path);
  expect(await planFileUpgrade(path, [plantedSchema])).toMatchObject({
    format: plantedFormat - 1,
    newest: plantedFormat,
    changes: [{ format: plantedFormat }],
    backup: `${path}.format-${plantedFormat - 1}.backup`,
    bytes: before.length,
  });
  expect(copiesOf(path)).toEqual([]);
  expect(readFileSync(path).equals(before)).toBe(true);
});

test("upgradeFile() of a SQLite file of the newest format writes no copy and changes nothing", async () => {
  const path = await goldenFile();
  const before = readFileSync(path);
  expect(await upgradeFile(path, [storeSchema])).toMatchObject({ changes: [], backup: null });
  expect(copiesOf(path)).toEqual([]);
  expect(readFileSync(path).equals(before)).toBe(true);
});

test.each(["locked", "copied", "changed"])(
  "a SQLite file is unchanged after kill -9 at the stage %s of its upgrade, and the next upgrade succeeds",
  async (stage) => {
    const path = await goldenFile();
    const before = textOfFile(path);
    const child = spawn(process.execPath, [main, path, stage], { stdio: "ignore" });
    expect(await once(child, "exit")).toEqual([null, "SIGKILL"]);
    await expectUnchanged(path, before);
    const { backup } = await upgradeFile(path, [plantedSchema]);
    expect(basename(backup ?? "")).toBe(
      `store.db.format-${plantedFormat - 1}.backup${stage === "locked" ? "" : "-2"}`,
    );
    expect(formatOf(path)).toBe(plantedFormat);
  },
);

test("a SQLite file has the newest format after kill -9 directly after the commit of its upgrade", async () => {
  const path = await goldenFile();
  const child = spawn(process.execPath, [main, path, "committed"], { stdio: "ignore" });
  expect(await once(child, "exit")).toEqual([null, "SIGKILL"]);
  expect(formatOf(path)).toBe(plantedFormat);
  expect(await upgradeFile(path, [plantedSchema])).toMatchObject({ changes: [], backup: null });
});

test("a SQLite file is unchanged after kill -9 while its copy is written, and the next upgrade replaces the partial copy", async () => {
  const path = await goldenFile();
  execute(
    path,
    "INSERT INTO content_pieces (data) SELECT randomblob(1000000) FROM (SELECT 1 FROM runs LIMIT 20)",
  );
  const [before, partial] = [textOfFile(path), `${path}.format-${plantedFormat - 1}.partial`];
  const child = spawn(process.execPath, [main, path], { stdio: "ignore" });
  const ended = once(child, "exit");
  await until(() => existsSync(partial), "the copy is begun");
  child.kill("SIGKILL");
  await ended;
  expect(textOfFile(path)).toBe(before);
  await upgradeFile(path, [plantedSchema]);
  expect(formatOf(path)).toBe(plantedFormat);
  expect(existsSync(partial)).toBe(false);
});

test("upgradeFile() refuses a file that another process has open, and names the process", async () => {
  const path = await goldenFile();
  const before = textOfFile(path);
  const other = await startProcess(path, "open");
  await expect(upgradeFile(path, [plantedSchema])).rejects.toMatchObject({
    code: "store_unavailable",
    message: expect.stringContaining("end every process that uses it"),
    ...(process.platform === "linux" && { details: { path, pids: [other.pid] } }),
  });
  await other.kill();
  expect(copiesOf(path)).toEqual([]);
  expect(textOfFile(path)).toBe(before);
  await upgradeFile(path, [plantedSchema]);
  expect(formatOf(path)).toBe(plantedFormat);
});

test("of two upgrades of a SQLite file at once, one changes the file, and the other is refused or finds the work done", async () => {
  const path = await goldenFile();
  const run = promisify(execFile);
  const both = await Promise.allSettled([1, 2].map(() => run(process.execPath, [main, path])));
  const ends = both.map((each) =>
    each.status === "fulfilled" ? each.value.stdout.trim() : String(each.reason),
  );
  const changed = ends.filter((end) => end.endsWith(".backup"));
  expect(changed).toHaveLength(1);
  for (const end of ends.filter((each) => !changed.includes(each)))
    expect(end).toMatch(/^null$|in use by|locked/u);
  expect(formatOf(path)).toBe(plantedFormat);
});

test("a SQLite migration that fails, finds a full disk or leaves damage is taken back, and its copy is removed", async () => {
  const path = await goldenFile();
  const before = textOfFile(path);
  const failures = {
    internal: "SELECT no_such_column FROM runs;",
    store_full: "PRAGMA max_page_count = 1; INSERT INTO content_pieces (data) VALUES (zeroblob(3000000));",
    store_corrupt:
      "PRAGMA ignore_check_constraints = ON; UPDATE entries SET session = session + 1; PRAGMA ignore_check_constraints = OFF;",
  };
  for (const [code, statement] of Object.entries(failures)) {
    await expect(upgradeFile(path, [plantedWith(statement)])).rejects.toMatchObject({ code });
    expect(copiesOf(path)).toEqual([]);
    await expectUnchanged(path, before);
  }
});

test("upgradeFile() refuses a newer format, a development format and files that are no SQLite stores, and changes nothing", async () => {
  const path = await goldenFile();
  const edits = {
    "PRAGMA user_version = 999": {
      code: "version_mismatch",
      message: /format 999 of a newer version.+update reeve/u,
    },
    "PRAGMA user_version = 31": { code: "version_mismatch", message: /format 31 of a development version/u },
    "PRAGMA application_id = 7": { code: "invalid_argument", message: /database of another program/u },
  };
  for (const [edit, { code, message }] of Object.entries(edits)) {
    execute(path, edit);
    const before = readFileSync(path);
    await expect(upgradeFile(path, [plantedSchema])).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    });
    expect(readFileSync(path).equals(before)).toBe(true);
  }
  rmSync(path);
  await expect(upgradeFile(path, [plantedSchema])).rejects.toMatchObject({ code: "not_found" });
  writeFileSync(path, "no database ".repeat(1_000));
  await expect(upgradeFile(path, [plantedSchema])).rejects.toMatchObject({ code: "store_corrupt" });
  expect(copiesOf(path)).toEqual([]);
});

test("upgradeFile() upgrades the file of a memory by its own schema", async () => {
  const path = await newPath();
  await using memory = await openMemory({ path });
  await memory.remember({ userId: "ada" }, { type: "episode", id: "e", text: "likes tea" });
  await memory[Symbol.asyncDispose]();
  const later = {
    ...memorySchema,
    migrations: [{ changes: "episodes have moods", script: "ALTER TABLE episodes ADD COLUMN mood TEXT" }],
  };
  const plan = await upgradeFile(path, [plantedSchema, later]);
  expect(plan.changes).toEqual([{ format: 3, changes: "episodes have moods" }]);
  expect(rowsOf(path, "SELECT text, mood FROM episodes")).toEqual([{ text: "likes tea", mood: null }]);
});

test("a SQLite store of the first released format has the tables of a new file after all migrations", async () => {
  const [path, fresh] = [await newPath(), await newPath()];
  const first = new URL(`../../../golden/format-${storeSchema.oldest}.sql`, import.meta.url);
  fileOfText(path, readFileSync(first, "utf8"));
  await upgradeFile(path, [storeSchema]);
  await (await openStore(fresh)).close();
  const schemaOf = (file: string): unknown =>
    rowsOf(file, "SELECT type, name, sql FROM sqlite_schema ORDER BY type, name");
  expect(schemaOf(path)).toEqual(schemaOf(fresh));
});
