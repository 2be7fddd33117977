import { mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, inject, onTestFinished, test } from "vitest";
import { copyBenches } from "../../bench/packed-source.ts";
import { pairRow, readArguments } from "../../bench/pairs.ts";
import { quartilesOf } from "../../bench/row.ts";
import { isFull } from "../effort.ts";
import { repository, runNode } from "../gates/run-node.ts";

test("quartiles() returns values between their neighbours if no value is at the place of a quartile", () => {
  expect(quartilesOf([4, 1, 3, 2])).toEqual({ lower: 1.75, median: 2.5, upper: 3.25 });
  expect(quartilesOf([7])).toEqual({ lower: 7, median: 7, upper: 7 });
});

test("the benchmark pairs reads its rows, rounds and warm-up, and measures all rows by default", () => {
  const args = ["delta", "--against", "v1", "--rounds", "3", "--warm-up", "0"];
  expect(readArguments(args)).toEqual({ against: "v1", rounds: 3, warmUpMs: 0, rows: ["delta"] });
  expect(readArguments(["--against", "v1"]).rows).toContain("first-run");
});

test.for([
  [[], "missing --against"],
  [["--against", "v1", "--rounds", "1"], 'invalid --rounds "1": expected an integer from 2'],
  [["--against", "v1", "--warm-up", "soon"], 'invalid --warm-up "soon": expected an integer from 0'],
  [["--against", "v1", "delta", "speed"], 'unknown row "speed"'],
  [["--against", "v1", "--fast"], "Unknown option '--fast'"],
] as const)("the benchmark pairs refuses %j", ([args, problem]) => {
  expect(() => readArguments(args)).toThrow(problem);
});

test("the benchmark pairs refuses a commit that the repository does not have", async () => {
  const args = ["bench/main.ts", "pairs", "--against", "no-such-commit"];
  const { code, stderr } = await runNode(args, repository);
  expect(stderr).toContain('invalid --against "no-such-commit": expected a commit of this repository');
  expect(code).toBe(2);
});

test("the benchmark pairs measures two packages in alternating processes, and a script that a package lacks fails its row", async () => {
  // Outside node_modules, where Node runs no TypeScript.
  const folder = await mkdtemp(join(tmpdir(), "reeve-pairs-test-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  for (const part of ["package.json", "dist"])
    await symlink(join(inject("builtPackage"), part), join(folder, part));
  await copyBenches(folder);
  const options = { ours: folder, theirs: folder, rounds: 2, warmUpMs: 0, measuredMs: 1 };
  for (const name of isFull ? ["delta", "first-run"] : ["delta"]) {
    const row = await pairRow(name, options);
    expect(row).not.toHaveProperty("failure");
    expect(row.value).toBeGreaterThan(0);
    expect(row.pairs?.ratio.median).toBeGreaterThan(0);
  }
  await rm(join(folder, "bench/scripts.ts"));
  expect(await pairRow("delta", options)).toHaveProperty("failure", expect.stringContaining("scripts.ts"));
});
