import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { plantedBugs } from "../simulation/planted-bugs.ts";
import { repository } from "./run-node.ts";

test("every planted bug of test/simulation/bugs can be applied to the sources", () => {
  const bugs = plantedBugs();
  expect(bugs.length).toBeGreaterThan(0);
  const stale = bugs.filter(
    ({ path }) => spawnSync("git", ["apply", "--check", path], { cwd: repository }).status !== 0,
  );
  expect(stale.map(({ name }) => name)).toEqual([]);
});
