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
const message = (id: string, parentId: string | null): SessionEntry => ({
  ...base(id, parentId),
  type: "message",
  message: userMessage(id),
});
const texts = (path: readonly SessionEntry[] | undefined): string[] =>
  contextMessages(path ?? []).map(messageText);

describe("the path of a session", () => {
  test("pathTo() returns the entries from the root to the current entry, which is the last message", () => {
    const entries = [message("a", null), message("b", "a"), message("c", "b")];
    expect(leafOf(entries)).toBe("c");
    expect(texts(pathTo(entries, "c"))).toEqual(["a", "b", "c"]);
    expect(texts(pathTo(entries, "b"))).toEqual(["a", "b"]);
  });

  test("leafOf() returns the target of a later `leaf` entry; labels and session names do not change the current entry", () => {
    const entries: SessionEntry[] = [
      message("a", null),
      message("b", "a"),
      { ...base("l", "b"), type: "leaf", targetId: "a" },
      { ...base("n", "a"), type: "session_info", name: "trip" },
      { ...base("m", "a"), type: "label", targetId: "b", label: "there" },
    ];
    expect(leafOf(entries)).toBe("a");
    expect(leafOf([...entries, message("c", "a")])).toBe("c");
    expect(texts(pathTo([...entries, message("c", "a")], "c"))).toEqual(["a", "c"]);
    expect(leafOf([...entries, { ...base("z", "b"), type: "leaf", targetId: null }])).toBeNull();
  });

  test("S3: contextMessages() replaces the entries before the first kept entry by the newest summary", () => {
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
      message("a", null),
      message("b", "a"),
      compaction("x", "b", "one", "b"),
      message("c", "x"),
      compaction("y", "c", "two", "c"),
      message("d", "y"),
    ];
    expect(texts(pathTo(entries, "c"))).toEqual([expect.stringContaining("one"), "b", "c"]);
    expect(texts(pathTo(entries, "d"))).toEqual([expect.stringContaining("two"), "c", "d"]);
  });

  test("contextMessages() includes extension messages and branch summaries, but no extension data", () => {
    const entries: SessionEntry[] = [
      message("a", null),
      { ...base("s", "a"), type: "branch_summary", summary: "a dead end", fromId: "q" },
      { ...base("d", "s"), type: "custom", customType: "x", data: 1 },
      { ...base("e", "d"), type: "custom_message", customType: "x", message: userMessage("hint") },
    ];
    expect(texts(pathTo(entries, "e"))).toEqual(["a", expect.stringContaining("a dead end"), "hint"]);
  });

  test("pathTo() returns undefined for an unknown entry and an empty path for a null leaf", () => {
    expect(pathTo([], "gone")).toBeUndefined();
    expect(pathTo([message("a", null)], null)).toEqual([]);
  });
});
