import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { unsupportedNode } from "../../src/assembly/node-version.ts";

test.each(["22.19.0", "22.30.1", "24.5.0", "24.21.0", "25.0.0", "26.10.0"])(
  "the installed command runs on Node %s",
  (version) => {
    expect(unsupportedNode(version)).toBeUndefined();
  },
);

test.each(["18.20.0", "20.20.2", "22.13.0", "22.18.9", "23.11.0", "24.4.1"])(
  "the installed command says which Node it needs on Node %s",
  (version) => {
    expect(unsupportedNode(version)).toBe(
      `Reeve needs Node 22.19 or a later 22, or Node 24.5 or newer, and this is Node ${version}; install one of these`,
    );
  },
);

test("engines of package.json names the same versions as unsupportedNode()", () => {
  const manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
    readonly engines: { readonly node: string };
  };
  expect(manifest.engines.node).toBe("^22.19.0 || >=24.5.0");
});
