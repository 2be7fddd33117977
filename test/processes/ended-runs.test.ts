import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const script = fileURLToPath(new URL("ended-runs-process.ts", import.meta.url));

test("minor garbage collections free the memory of runs that have ended", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ["--expose-gc", script]);
  // About 4 KB survive. A run that stays in memory as a whole has 18 KB or more.
  expect(Number(stdout)).toBeLessThan(9);
});
