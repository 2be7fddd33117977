import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { WorkerLocks } from "../../../../../src/runtime/stores/sqlite/db/worker-lock.ts";
import { newPath } from "../store-files.ts";

async function setup(): Promise<{ path: string; one: WorkerLocks; other: WorkerLocks }> {
  const path = await newPath();
  const [one, other] = [new WorkerLocks(path), new WorkerLocks(path)];
  onTestFinished(() => {
    one.close();
    other.close();
  });
  return { path, one, other };
}

test("isGone() is true for a SQLite worker before it takes its lock, false while the lock is held, and true afterwards", async () => {
  const { one, other } = await setup();
  expect(other.isGone("w")).toBe(true);
  expect(await one.take("w")).toBe(true);
  expect([one.isGone("w"), other.isGone("w"), other.isGone("w")]).toEqual([false, false, false]);
  one.drop("w");
  expect([one.isGone("w"), other.isGone("w")]).toEqual([true, true]);
});

test("only one process at a time can take the lock file of a worker name", async () => {
  const { one, other } = await setup();
  expect(await one.take("w")).toBe(true);
  expect(await one.take("w")).toBe(false);
  await expect(other.take("w")).rejects.toMatchObject({ code: "already_exists" });
  one.drop("w");
  expect(await other.take("w")).toBe(true);
});

test("K1: isGone() notices each time that the lock file of a worker is released and taken again", async () => {
  const { one, other } = await setup();
  for (let round = 0; round < 5; round++) {
    await one.take("w");
    expect(other.isGone("w")).toBe(false);
    one.drop("w");
    await one.take("w");
    expect(other.isGone("w")).toBe(false);
    one.drop("w");
    expect(other.isGone("w")).toBe(true);
  }
});

test("two concurrent take() calls for one worker name take the lock file once", async () => {
  const { one } = await setup();
  expect((await Promise.all([one.take("w"), one.take("w")])).toSorted()).toEqual([false, true]);
});

test("a worker name can be any text, and close() leaves no lock file of the worker behind", async () => {
  const { path, one, other } = await setup();
  const names = ["", "../../up", "a/b", "ü 😀", "x".repeat(5_000)];
  for (const name of names) await one.take(name);
  expect(names.map((name) => other.isGone(name))).toEqual(names.map(() => false));
  one.close();
  expect(names.map((name) => other.isGone(name))).toEqual(names.map(() => true));
  expect(existsSync(`${path}-workers`)).toBe(true);
  expect(readdirSync(`${path}-workers`)).toEqual([]);
});

function lockFiles(path: string): readonly string[] {
  return readdirSync(`${path}-workers`).map((name) => join(`${path}-workers`, name));
}

test("K1: keep() of a worker lock notices a deleted lock file once, and the worker is alive for others again", async () => {
  const { path, one, other } = await setup();
  await one.take("w");
  one.keep("w");
  expect(other.isGone("w")).toBe(false);
  for (const file of lockFiles(path)) rmSync(file);
  const fault = { code: "store_unavailable", message: expect.stringContaining("was deleted") };
  expect(() => one.keep("w")).toThrow(expect.objectContaining(fault));
  one.keep("w");
  expect([other.isGone("w"), new WorkerLocks(path).isGone("w")]).toEqual([false, false]);
  one.drop("w");
  expect(other.isGone("w")).toBe(true);
});

test("K1: keep() of a worker lock notices a deleted folder of lock files", async () => {
  const { path, one, other } = await setup();
  await one.take("w");
  rmSync(`${path}-workers`, { recursive: true });
  expect(other.isGone("w")).toBe(true);
  expect(() => one.keep("w")).toThrow("was deleted");
  expect(other.isGone("w")).toBe(false);
});

test("K1: a worker whose lock file another worker of the same name has replaced is refused and leaves the new file", async () => {
  const { path, one, other } = await setup();
  await one.take("w");
  for (const file of lockFiles(path)) rmSync(file);
  expect(await other.take("w")).toBe(true);
  expect(() => one.keep("w")).toThrow(expect.objectContaining({ code: "already_exists" }));
  one.drop("w");
  expect(lockFiles(path)).toHaveLength(1);
  expect(one.isGone("w")).toBe(false);
});
