import { cpSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { openStore } from "../../../src/runtime/index.ts";
import {
  acceptStore,
  disownStore,
  openOwnStore,
  whyForeign,
} from "../../../src/surfaces/cli/setup/own-store.ts";

afterEach(() => void vi.unstubAllEnvs());

/** A folder with a home of its own for the list of stores. */
async function place() {
  const root = await realpath(await mkdtemp(join(tmpdir(), "reeve-own-")));
  onTestFinished(() => rm(root, { recursive: true, force: true, maxRetries: 10 }));
  const home = join(root, "home");
  vi.stubEnv("REEVE_HOME", home);
  const path = join(root, "project/.reeve/reeve.db");
  return { root, home, path, listed: () => (existsSync(home) ? readdirSync(join(home, "stores")) : []) };
}

/** Opens a store as a command that executes runs does. */
async function drive(path: string, onWarning?: (text: string) => void): Promise<void> {
  const store = await openOwnStore(`sqlite:${path}`, onWarning === undefined ? {} : { onWarning });
  await store.close();
}

/** Creates a store as another program, or another person, does. */
async function createElsewhere(path: string, id?: string): Promise<void> {
  mkdirSync(dirname(path), { recursive: true });
  const store = await openStore(`sqlite:${path}`);
  if (id !== undefined)
    await store.records.put({ namespace: "store-identity", key: "id", value: id }, "absent");
  await store.close();
}

describe("a SQLite store that the command line created", () => {
  test("a store of the command line that a command created belongs to the user, also for later commands", async () => {
    const { path, listed } = await place();
    await drive(path);
    await drive(path);
    expect(listed()).toHaveLength(1);
    expect(readdirSync(dirname(path))).toEqual(["reeve.db"]);
  });

  test("a store of the command line that another user created is refused, and the error says how to accept it", async () => {
    const { path } = await place();
    await createElsewhere(path);
    await expect(drive(path)).rejects.toMatchObject({
      code: "permission_denied",
      message: expect.stringMatching(
        /no command of yours created it.*reeve ps --all.*reeve trust --store sqlite:.*--store sqlite:PATH/u,
      ) as string,
    });
    const readable = await openOwnStore(`sqlite:${path}`, { allowForeign: true });
    await readable.close();
    await acceptStore(`sqlite:${path}`);
    await drive(path);
    expect(await disownStore(`sqlite:${path}`)).toBe(true);
    await expect(drive(path)).rejects.toMatchObject({ code: "permission_denied" });
  });

  test.for(["../../trust", "", "x".repeat(36), "0f0f0f0f-0000-4000-8000-000000000000"])(
    "a store of the command line that another user created with the id %j is refused",
    async (id) => {
      const { path, home } = await place();
      mkdirSync(join(home, "stores"), { recursive: true });
      writeFileSync(join(home, "trust.json"), JSON.stringify({ path }));
      await createElsewhere(path, id);
      await expect(drive(path)).rejects.toMatchObject({ code: "permission_denied" });
    },
  );

  test("a store of the command line that was moved with its project belongs to the user at its new place", async () => {
    const { path, root, listed } = await place();
    await drive(path);
    renameSync(join(root, "project"), join(root, "moved"));
    const moved = join(root, "moved/.reeve/reeve.db");
    await drive(moved);
    await drive(moved);
    expect(listed()).toHaveLength(1);
  });

  test("a copy of a store of the command line is refused until it is accepted, and then both stores belong to the user", async () => {
    const { path, root } = await place();
    await drive(path);
    const copy = join(root, "copy/.reeve/reeve.db");
    cpSync(join(root, "project"), join(root, "copy"), { recursive: true });
    await expect(drive(copy)).rejects.toThrow(`it is a copy of ${path}`);
    await acceptStore(`sqlite:${copy}`);
    await drive(copy);
    await drive(path);
  });

  test("a store of the command line is refused after the home folder was deleted, until it is accepted", async () => {
    const { path, home } = await place();
    await drive(path);
    rmSync(home, { recursive: true });
    expect(await whyForeign(`sqlite:${path}`)).toContain("no command of yours created it");
    await expect(drive(path)).rejects.toMatchObject({ code: "permission_denied" });
    await acceptStore(`sqlite:${path}`);
    await drive(path);
  });

  test("a store of the command line is created with a warning if the home folder cannot be written", async () => {
    const { path, root } = await place();
    writeFileSync(join(root, "file"), "");
    vi.stubEnv("REEVE_HOME", join(root, "file/home"));
    const warnings: string[] = [];
    await drive(path, (text) => warnings.push(text)).catch(() => undefined);
    expect(existsSync(path)).toBe(true);
    expect(warnings).toEqual([expect.stringContaining("set REEVE_HOME to a folder that can be written")]);
  });

  test.for(["project", "project/.reeve"])(
    "a store of the command line is refused with advice if its folder %s is a file",
    async (name) => {
      const { root, path } = await place();
      const file = join(root, name);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, "");
      await expect(drive(path)).rejects.toMatchObject({
        code: "invalid_argument",
        message: `${file} is a file, and the store ${path} needs a folder of this name; move the file, or use another store with --store sqlite:PATH`,
      });
    },
  );

  test("a store of the command line is refused before a file is created if its address has options, and a folder may contain a ?", async () => {
    const { root } = await place();
    mkdirSync(join(root, "why?"));
    await expect(drive(join(root, "why?/reeve.db?mode=ro"))).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining(`use "sqlite:${root}/why?/reeve.db", or sqliteStore({ path })`),
    });
    expect(readdirSync(join(root, "why?"))).toEqual([]);
    await drive(join(root, "why?/reeve.db"));
  });

  test("a store of the command line belongs to the user if a command that created it was killed before it had ended", async () => {
    const { path, home } = await place();
    // The two traces of a killed command: an id without a store, and a store without its name.
    mkdirSync(join(home, "stores"), { recursive: true });
    writeFileSync(join(home, "stores/0f0f0f0f-0000-4000-8000-000000000000.json"), JSON.stringify({ path }));
    await createElsewhere(`${path}-new-0f0f0f0f`, "0f0f0f0f-0000-4000-8000-000000000000");
    await drive(path);
    expect(await whyForeign(`sqlite:${path}`)).toBeUndefined();
  });

  test("a store of the command line is created once if several commands start at the same time", async () => {
    const { path, listed } = await place();
    await Promise.all([drive(path), drive(path), drive(path)]);
    await drive(path);
    expect(listed()).toHaveLength(1);
    expect(readdirSync(dirname(path))).toEqual(["reeve.db"]);
  });

  test("a store of the command line is created in an empty file", async () => {
    const { path } = await place();
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, "");
    await drive(path);
    expect(await whyForeign(`sqlite:${path}`)).toBeUndefined();
  });

  test.for(["-wal", "-journal"])(
    "a store of the command line is not created beside a file %s of another store",
    async (ending) => {
      const { path } = await place();
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path + ending, "x");
      await expect(drive(path)).rejects.toThrow(`${path}${ending} belongs to a store that does not exist`);
      expect(existsSync(path)).toBe(false);
    },
  );
});
