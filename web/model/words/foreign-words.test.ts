import { expect, test } from "vitest";
import { callPlaces, canBeAllowed, optionWords } from "./foreign-words.ts";

test("the page names each path of a hired program's call once, and first the paths outside the folder", () => {
  const view = {
    locations: [
      { path: "/project/a.txt", isOutside: false },
      { path: "/etc/passwd", isOutside: true, line: 3 },
    ],
    diffs: [
      { path: "/project/a.txt", isOutside: false, diff: "" },
      { path: "/project/link", isOutside: true, diff: "" },
    ],
  };
  expect(callPlaces(view)).toEqual([
    { path: "/etc/passwd", isOutside: true },
    { path: "/project/link", isOutside: true },
    { path: "/project/a.txt", isOutside: false },
  ]);
  expect(callPlaces({})).toEqual([]);
});

test("the page explains a permission option by its kind, and offers no approval if only lasting ones exist", () => {
  expect(
    ["allow_once", "allow_always", "reject_once", "reject_always", "allow\u202Eforever"].map(optionWords),
  ).toEqual([
    "given if you allow it",
    "never given: Reeve remembers by itself",
    "given if you deny it",
    "never given: Reeve remembers by itself",
    String.raw`allow\u202eforever, which Reeve does not know: never given`,
  ]);
  expect(canBeAllowed({})).toBe(true);
  expect(canBeAllowed({ options: [{ kind: "allow_once", name: "Yes" }] })).toBe(true);
  expect(canBeAllowed({ options: [{ kind: "allow_always", name: "Always" }] })).toBe(false);
});
