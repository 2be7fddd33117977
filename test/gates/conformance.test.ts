import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { pageFile, pageOf, readResults, worseCases } from "../conformance/results.ts";

test("the page of the conformance suites says what the recorded results say", async () => {
  expect(await readFile(pageFile, "utf8")).toBe(pageOf(await readResults()));
});

test("a result is worse if a case does not pass that has passed before, and not if a case is new", () => {
  const before = {
    version: "1",
    cases: [
      { id: "a", status: "passed" },
      { id: "b", status: "failed" },
    ],
  } as const;
  const better = {
    version: "2",
    cases: [
      { id: "a", status: "passed" },
      { id: "c", status: "failed" },
    ],
  } as const;
  const worse = { version: "2", cases: [{ id: "a", status: "skipped" }] } as const;
  expect([worseCases(before, better), worseCases(before, worse), worseCases(undefined, worse)]).toEqual([
    [],
    ["a"],
    [],
  ]);
});
