import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { removePrivateHome } from "../../src/capabilities/hire/private-home.ts";
import { HistoryRetention } from "../../src/kernel/index.ts";
import { hireWorld } from "./hire-world.ts";

function homes(): Promise<string[]> {
  return readdir(join(process.env["REEVE_HOME"] ?? "", "homes"));
}

test("the private home of a hired agent outlives its run, and is deleted with the session", async () => {
  const world = await hireWorld([{ say: "Blue." }]);
  const agent = world.hire();
  const run = await world.runtime.submit(agent, "Which colour?", { sessionId: "colours" });
  expect((await run.result()).output).toBe("Blue.");
  expect(await homes()).toEqual([expect.stringMatching(/^coder-/u)]);
  await world.runtime.collect({ endedBefore: Number.MAX_SAFE_INTEGER });
  expect(await homes()).toHaveLength(1);
  await world.runtime.sessions.delete("colours");
  expect(await homes()).toEqual([]);
});

test("the private home of a hired agent is deleted at the end of a run without history", async () => {
  const world = await hireWorld([{ say: "Blue." }]);
  const run = await world.runtime.submit(world.hire(), "Which colour?", { retention: HistoryRetention.NONE });
  expect((await run.result()).output).toBe("Blue.");
  await expect.poll(homes).toEqual([]);
});

test("removePrivateHome() refuses a name that leads out of the homes", async () => {
  const root = process.env["REEVE_HOME"] ?? "";
  await mkdir(join(root, "homes", "coder-1"), { recursive: true });
  await writeFile(join(root, "keep.txt"), "");
  for (const name of ["../keep.txt", "..", "", "a/b"])
    await expect(removePrivateHome(name)).rejects.toThrow("expected letters, digits, - and _");
  expect(await readdir(root)).toContain("keep.txt");
  await removePrivateHome("coder-1");
  await removePrivateHome("coder-1");
  expect(await homes()).toEqual([]);
  await rm(join(root, "keep.txt"));
});
