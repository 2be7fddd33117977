import { existsSync, readdirSync } from "node:fs";
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

test("a worker is gone that never was, lives while its lock is held, and is gone again after", async () => {
  const { one, other } = await setup();
  expect(other.isGone("w")).toBe(true);
  expect(await one.take("w")).toBe(true);
  expect([one.isGone("w"), other.isGone("w"), other.isGone("w")]).toEqual([false, false, false]);
  one.drop("w");
  expect([one.isGone("w"), other.isGone("w")]).toEqual([true, true]);
});

test("a name is held once", async () => {
  const { one, other } = await setup();
  expect(await one.take("w")).toBe(true);
  expect(await one.take("w")).toBe(false);
  await expect(other.take("w")).rejects.toMatchObject({ code: "already_exists" });
  one.drop("w");
  expect(await other.take("w")).toBe(true);
});

test("K1: one who looked when the name was another's finds out that it was taken anew", async () => {
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

test("a name that is taken twice at once is taken once", async () => {
  const { one } = await setup();
  expect((await Promise.all([one.take("w"), one.take("w")])).toSorted()).toEqual([false, true]);
});

test("any text will do for a name, and no file stays behind", async () => {
  const { path, one, other } = await setup();
  const names = ["", "../../up", "a/b", "ü 😀", "x".repeat(5_000)];
  for (const name of names) await one.take(name);
  expect(names.map((name) => other.isGone(name))).toEqual(names.map(() => false));
  one.close();
  expect(names.map((name) => other.isGone(name))).toEqual(names.map(() => true));
  expect(existsSync(`${path}-workers`)).toBe(true);
  expect(readdirSync(`${path}-workers`)).toEqual([]);
});
