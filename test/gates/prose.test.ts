import { expect, test } from "vitest";
import { findPhrases, hitsIn } from "./prose-check.ts";

test("no file contains a phrase that the prose check lists", () => {
  expect(findPhrases().map(({ file, number, phrase }) => `${file}:${number}: ${phrase}`)).toEqual([]);
});

test.each([
  ["a comment", "src/a.ts", "/** 5 unless told. */", "unless told"], // prose-check: ignore
  ["an error message", "src/a.ts", 'throw new Fault("x", "nobody waits");', "nobody"], // prose-check: ignore
  ["a test title", "test/a.test.ts", 'test("whoever asks is answered", () => {', "whoever"], // prose-check: ignore
  ["a paragraph", "docs/a.md", "The run is told to stop.", "told"], // prose-check: ignore
  ["a fragment", "src/a.ts", "/** Of the first. */", "fragment"], // prose-check: ignore
  ["a promise number without words", "src/a.ts", "/** S3. */", "bare promise number"], // prose-check: ignore
])("the prose check finds a phrase in %s", (_what, file, text, phrase) => {
  expect(hitsIn({ file, number: 1, text })).toMatchObject([{ phrase }]);
});

test.each([
  ["an identifier", "src/a.ts", "const nobody = breath;"], // prose-check: ignore
  ["a code span of a document", "docs/a.md", "Call `nobody()`."], // prose-check: ignore
])("the prose check ignores %s", (_what, file, text) => {
  expect(hitsIn({ file, number: 1, text })).toEqual([]);
});
