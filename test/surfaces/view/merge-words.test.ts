import { expect, test } from "vitest";
import type { MergeQuestion } from "../../../src/kernel/index.ts";
import { filePatches, mergeLines } from "../../../src/surfaces/view/merge-words.ts";

const first = "diff --git a/a.txt b/a.txt\nindex 78981922..5626abf0 100644\n--- a/a.txt\n+++ b/a.txt\n";

test("filePatches() shows each hunk of a file whose content looks like the header of another file", () => {
  for (const end of ["\r", "\u2028", "\u2029", "\v"]) {
    const hunks = `@@ -1 +1,2 @@\n-a\n+x${end}diff --git a/b b/b\n+hidden\n@@ -9 +10 @@\n-y\n+z`;
    expect(filePatches(`${first}${hunks}\n`)).toEqual([{ path: "a.txt", notes: [], patch: hunks }]);
  }
});

test("filePatches() says that a file is a link, executable, binary, renamed or deleted", () => {
  const diff = [
    ["diff --git a/l b/l", "new file mode 120000", "index 0000000..1", "--- /dev/null", "+++ b/l"],
    ["@@ -0,0 +1 @@", "+/etc", "\\ No newline at end of file"],
    ["diff --git a/run me.sh b/run me.sh", "old mode 100644", "new mode 100755"],
    ["diff --git a/i.png b/i.png", "new file mode 100644", "index 0000000..2"],
    ["Binary files /dev/null and b/i.png differ"],
    ["diff --git a/n.txt b/n.txt", "deleted file mode 100644", "index 3..0000000"],
    ["--- a/n.txt", "+++ /dev/null", "@@ -1 +0,0 @@", "-n"],
    [
      "diff --git a/s p.txt b/s p.txt",
      "index 1..2 100644",
      "--- a/s p.txt\t",
      "+++ b/s p.txt\t",
      "@@ -1 +1 @@",
    ],
    ["-s", "+t", ""],
  ].flat();
  expect(filePatches(diff.join("\n"))).toEqual([
    {
      path: "l",
      notes: ["new file mode 120000"],
      patch: "@@ -0,0 +1 @@\n+/etc\n\\ No newline at end of file",
    },
    { path: "run me.sh", notes: ["old mode 100644", "new mode 100755"], patch: "" },
    { path: "i.png", notes: ["Binary files /dev/null and b/i.png differ"], patch: "" },
    { path: "n.txt", notes: ["deleted file mode 100644"], patch: "@@ -1 +0,0 @@\n-n" },
    { path: "s p.txt", notes: [], patch: "@@ -1 +1 @@\n-s\n+t" },
  ]);
});

test("mergeLines() says that the rest of a diff is missing", () => {
  const question = {
    message: "",
    diff: `${first}@@ -1 +1 @@\n-a\n`,
    isCut: true,
  } as unknown as MergeQuestion;
  expect(mergeLines(question)).toEqual([
    "a.txt:",
    "@@ -1 +1 @@",
    "-a",
    "[the rest of the diff is too long to be shown]",
  ]);
});
