import { expect, test } from "vitest";
import { repository, runNode } from "../gates/run-node.ts";

test("counts of the work of a turn, a tool call, a delta, a spawn and a run are at most those of bench/counts.json", async () => {
  const { code, stdout } = await runNode(["bench/main.ts", "counts", "--gate"], repository);
  const grown = stdout.split("\n").filter((line) => line.includes("MISSED"));
  expect(grown, "remove the work, or add a line to `growth` in bench/counts.json that says why").toEqual([]);
  expect(code).toBe(0);
});
