import { describe, expect, test } from "vitest";
import {
  leafOf,
  messageText,
  contextMessages,
  pathTo,
  userMessage,
  type SessionEntry,
} from "../../../src/kernel/index.ts";

const base = (id: string, parentId: string | null) => ({ id, parentId, at: 0, runId: null, taskId: null });
const said = (id: string, parentId: string | null): SessionEntry => ({
  ...base(id, parentId),
  type: "message",
  message: userMessage(id),
});
const texts = (path: readonly SessionEntry[] | undefined): string[] =>
  contextMessages(path ?? []).map(messageText);

describe("the path of a session", () => {
  test("goes from the root to the last thing said", () => {
    const entries = [said("a", null), said("b", "a"), said("c", "b")];
    expect(leafOf(entries)).toBe("c");
    expect(texts(pathTo(entries, "c"))).toEqual(["a", "b", "c"]);
    expect(texts(pathTo(entries, "b"))).toEqual(["a", "b"]);
  });

  test("goes on where somebody put the leaf; a label or a name moves nothing", () => {
    const entries: SessionEntry[] = [
      said("a", null),
      said("b", "a"),
      { ...base("l", "b"), type: "leaf", targetId: "a" },
      { ...base("n", "a"), type: "session_info", name: "trip" },
      { ...base("m", "a"), type: "label", targetId: "b", label: "there" },
    ];
    expect(leafOf(entries)).toBe("a");
    expect(leafOf([...entries, said("c", "a")])).toBe("c");
    expect(texts(pathTo([...entries, said("c", "a")], "c"))).toEqual(["a", "c"]);
    expect(leafOf([...entries, { ...base("z", "b"), type: "leaf", targetId: null }])).toBeNull();
  });

  test("S3: the last compaction stands for what came before what it kept", () => {
    const compaction = (
      id: string,
      parentId: string,
      summary: string,
      firstKeptEntryId: string,
    ): SessionEntry => ({
      ...base(id, parentId),
      type: "compaction",
      summary,
      firstKeptEntryId,
      tokensBefore: 9,
    });
    const entries = [
      said("a", null),
      said("b", "a"),
      compaction("x", "b", "one", "b"),
      said("c", "x"),
      compaction("y", "c", "two", "c"),
      said("d", "y"),
    ];
    expect(texts(pathTo(entries, "c"))).toEqual([expect.stringContaining("one"), "b", "c"]);
    expect(texts(pathTo(entries, "d"))).toEqual([expect.stringContaining("two"), "c", "d"]);
  });

  test("shows what extensions say to the model and what a left branch came to, and nothing else of them", () => {
    const entries: SessionEntry[] = [
      said("a", null),
      { ...base("s", "a"), type: "branch_summary", summary: "a dead end", fromId: "q" },
      { ...base("d", "s"), type: "custom", customType: "x", data: 1 },
      { ...base("e", "d"), type: "custom_message", customType: "x", message: userMessage("hint") },
    ];
    expect(texts(pathTo(entries, "e"))).toEqual(["a", expect.stringContaining("a dead end"), "hint"]);
  });

  test("is none to a leaf that is not there, and empty to none", () => {
    expect(pathTo([], "gone")).toBeUndefined();
    expect(pathTo([said("a", null)], null)).toEqual([]);
  });
});
