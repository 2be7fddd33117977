import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { repository, runNode, type Finished } from "../gates/run-node.ts";

const folder = join(repository, "examples");
const examples = (await readdir(folder)).filter((file) => file.endsWith(".ts"));

test("there are examples", () => {
  expect(examples).toContain("01-hello.ts");
});

test.for(examples)("%s runs to its end without a network", async (example) => {
  const { code, stderr } = await runOffline([join(folder, example)]);
  expect(code === 0 || stderr).toBe(true);
});

test.for([
  { way: "fetch", source: `await fetch("http://192.0.2.1/");` },
  { way: "https", source: `(await import("node:https")).get("https://192.0.2.1/");` },
  { way: "a socket", source: `(await import("node:net")).connect(80, "192.0.2.1");` },
])("an example that reaches for the network by $way fails", async ({ source }) => {
  const { code, stderr } = await runOffline(["--input-type=module", "--eval", source]);
  expect(code).toBe(1);
  expect(stderr).toContain("no network here: 192.0.2.1");
});

/** In a folder of its own, so that what an example writes does not stay. */
async function runOffline(args: readonly string[]): Promise<Finished> {
  const cwd = await mkdtemp(join(tmpdir(), "reeve-example-"));
  try {
    return await runNode(["--import", import.meta.resolve("./no-network.ts"), ...args], cwd);
  } finally {
    await rm(cwd, { recursive: true, force: true });
  }
}
