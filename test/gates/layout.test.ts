import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { repository } from "./run-node.ts";

const limit = 40;

test(`no folder of src holds more than ${limit} files`, async () => {
  const files = await readdir(join(repository, "src"), { recursive: true });
  const counts = new Map<string, number>();
  for (const file of files.filter((each) => each.endsWith(".ts")))
    counts.set(dirname(file), (counts.get(dirname(file)) ?? 0) + 1);
  expect(counts.size).toBeGreaterThan(30);
  expect([...counts].filter(([, count]) => count > limit)).toEqual([]);
});
