import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, inject, test } from "vitest";
import { runOffline } from "./run-offline.ts";

const folder = join(inject("builtPackage"), "examples");
const examples = (await readdir(folder)).filter((file) => file.endsWith(".ts"));

test("the repository has examples", () => {
  expect(examples).toContain("01-hello.ts");
});

test.for(examples)("the example %s runs to its end without a network", async (example) => {
  const { code, stderr } = await runOffline([join(folder, example)]);
  expect(code === 0 || stderr).toBe(true);
});

test.for([
  { way: "fetch", source: `await fetch("http://192.0.2.1/");` },
  { way: "https", source: `(await import("node:https")).get("https://192.0.2.1/");` },
  { way: "a socket", source: `(await import("node:net")).connect(80, "192.0.2.1");` },
])("a program that uses the network by $way fails in the offline runner", async ({ source }) => {
  const { code, stderr } = await runOffline(["--input-type=module", "--eval", source]);
  expect(code).toBe(1);
  expect(stderr).toContain("no network here: 192.0.2.1");
});
