import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { repository, runNode } from "../gates/run-node.ts";

const { bin } = JSON.parse(await readFile(join(repository, "package.json"), "utf8")) as {
  readonly bin: Readonly<Record<string, string>>;
};
const path = join(repository, bin["reeve"] ?? "");

test("the built command line starts with a shebang for Node", async () => {
  expect((await readFile(path, "utf8")).split("\n")[0]).toBe("#!/usr/bin/env node");
});

test("the built command line prints its help and exits with 0", async () => {
  const { code, stdout } = await runNode([path, "--help"], repository);
  expect({ code, usage: stdout.split("\n")[0] }).toEqual({
    code: 0,
    usage: "Usage: reeve [options] [command]",
  });
});
