import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  contextMessages,
  sessionCompaction,
  summarizeEach,
  summaryMessage,
  type SummaryRequest,
} from "../../../../src/entries/index.ts";
import {
  assistantMessage,
  deepFreeze,
  toolMessage,
  userMessage,
  type ChatMessage,
  type CompactionResult,
  type SessionEntry,
} from "../../../../src/kernel/index.ts";
import { histories } from "./histories.ts";
import { orphans, placeOf } from "./window-promises.ts";
import { propertyRuns } from "../../../effort.ts";

function pathOf(messages: readonly ChatMessage[]): SessionEntry[] {
  return messages.map((message, index) => ({
    type: "message",
    id: `e${index}`,
    parentId: index === 0 ? null : `e${index - 1}`,
    at: index,
    runId: null,
    taskId: null,
    message,
  }));
}

function appended(path: readonly SessionEntry[], result: CompactionResult): SessionEntry[] {
  const parentId = path.at(-1)?.id ?? null;
  return [
    ...path,
    {
      type: "compaction",
      id: `c${path.length}`,
      parentId,
      at: 0,
      runId: null,
      taskId: null,
      tokensBefore: 0,
      ...result,
    },
  ];
}

function setUp({ keepRecentTokens = 100 } = {}) {
  const requests: SummaryRequest[] = [];
  const compaction = sessionCompaction({
    keepRecentTokens,
    summarize: summarizeEach(async (request) => {
      requests.push(request);
      return `${request.part} ${requests.length}`;
    }),
  });
  return { compaction, requests };
}

const file = (toolName: string, path: string, isError = false): readonly ChatMessage[] => [
  assistantMessage([{ type: "tool_call", callId: "a", toolName, input: { path } }]),
  toolMessage([
    { type: "tool_result", callId: "a", toolName, output: { type: "text", text: "x".repeat(40) }, isError },
  ]),
];
const spoken = histories.filter(({ length }) => length > 0);
const long = "x".repeat(600);

describe("sessionCompaction()", () => {
  test("shouldCompact() is true once the context exceeds the window minus the reserve", () => {
    const { compaction } = setUp();
    expect(compaction.shouldCompact({ tokens: 91_808, contextWindow: 100_000 })).toBe(false);
    expect(compaction.shouldCompact({ tokens: 91_809, contextWindow: 100_000 })).toBe(true);
  });

  test("sessionCompaction() keeps the newest turns and replaces older messages by a summary", async () => {
    const { compaction, requests } = setUp();
    const messages = [userMessage(long), assistantMessage(long), userMessage("now"), assistantMessage("yes")];
    const path = pathOf(messages);
    const result = await compaction.compact({ path, instructions: "mind the prices" });
    expect(result).toEqual({ summary: "history 1", firstKeptEntryId: "e2" });
    expect(requests).toEqual([
      { messages: messages.slice(0, 2), previous: null, part: "history", instructions: "mind the prices" },
    ]);
    if (result === null) return;
    expect(contextMessages(appended(path, result))).toEqual([
      summaryMessage("history 1"),
      ...messages.slice(2),
    ]);
  });

  test("a compaction cut inside a turn produces two summaries, joined by a divider", async () => {
    const { compaction, requests } = setUp();
    const before = [userMessage(long), assistantMessage(long)];
    const beginning = [userMessage("read them all"), ...file("read", "a.ts"), ...file("read", long)];
    const messages = [...before, ...beginning, ...file("read", "b.ts")];
    const result = await compaction.compact({ path: pathOf(messages) });
    expect(requests.map(({ part, messages: asked }) => [part, asked])).toEqual([
      ["history", before],
      ["turn", beginning],
    ]);
    expect(result?.firstKeptEntryId).toBe("e7");
    expect(result?.summary).toMatch(/^history 1\n\n---\n\nThe turn under way began like this:\n\nturn 2\n\n/);
  });

  test("a later compaction of a session updates the earlier summary, and keeps it if no complete turn was added", async () => {
    const { compaction, requests } = setUp();
    let path = pathOf([userMessage(long), assistantMessage(long), userMessage("now")]);
    const first = await compaction.compact({ path });
    if (first === null) throw new Error("nothing was compacted");
    path = appended(path, first);
    const more = pathOf([
      userMessage("x"),
      assistantMessage(long),
      userMessage("next"),
      assistantMessage("ok"),
    ]);
    const second = await compaction.compact({
      path: [...path, ...more.map((e) => ({ ...e, id: `m${e.id}` }))],
    });
    expect(requests.map(({ previous }) => previous)).toEqual([null, "history 1"]);
    expect(second).toEqual({ summary: "history 2", firstKeptEntryId: "me2" });

    const rounds = pathOf([...file("read", "a.ts"), ...file("read", long), ...file("read", "b.ts")]);
    const third = await compaction.compact({
      path: [...path, ...rounds.map((e) => ({ ...e, id: `r${e.id}` }))],
    });
    expect(third?.summary).toMatch(/^history 1\n\n---\n\nThe turn under way began like this:\n\nturn 3\n\n/);
  });

  test("a compaction summary lists read and modified files, including those of earlier compactions", async () => {
    const { compaction } = setUp();
    let path = pathOf([
      userMessage("fix it!"),
      ...file("read", "a.ts"),
      ...file("read", "b.ts"),
      ...file("edit", "b.ts"),
      ...file("write", "lost.ts", true),
      userMessage(long),
    ]);
    const first = await compaction.compact({ path });
    expect(first?.summary).toBe(
      "history 1\n\n<read-files>\na.ts\n</read-files>\n\n<modified-files>\nb.ts\n</modified-files>",
    );
    if (first === null) return;
    path = appended(path, first);
    const more = pathOf([...file("edit", "a.ts"), ...file("read", "c.ts"), userMessage(long)]);
    const second = await compaction.compact({
      path: [...path, ...more.map((e) => ({ ...e, id: `m${e.id}` }))],
    });
    expect(second?.summary).toBe(
      "history 2\n\n<read-files>\nc.ts\n</read-files>\n\n<modified-files>\nb.ts\na.ts\n</modified-files>",
    );
  });

  test.for([
    { why: "an empty path", path: [] },
    { why: "a path that fits", path: pathOf([userMessage("hi"), assistantMessage("hello")]) },
    { why: "a path of one turn that cannot be cut", path: pathOf([userMessage("x".repeat(9_000))]) },
    {
      why: "a path that ends in a compaction",
      path: appended(pathOf([userMessage(long), userMessage(long)]), {
        summary: "s",
        firstKeptEntryId: "e1",
      }),
    },
  ])("sessionCompaction() returns null without a summary call for $why", async ({ path }) => {
    const { compaction, requests } = setUp();
    expect(await compaction.compact({ path })).toBeNull();
    expect(requests).toEqual([]);
  });

  test.for([{ summarize: async () => [""] }, { summarize: () => Promise.reject(new Error("down")) }])(
    "a failed or empty summary of sessionCompaction() changes nothing and calls onFailure",
    async ({ summarize }) => {
      const told: string[] = [];
      const onFailure = (fault: Error): void => void told.push(fault.message);
      const compaction = sessionCompaction({ keepRecentTokens: 10, summarize, onFailure });
      expect(await compaction.compact({ path: pathOf([userMessage(long), userMessage(long)]) })).toBeNull();
      expect(told).toHaveLength(1);
    },
  );

  test("S3: for random sessions, compaction separates no call from its result, and a second compaction finds no work", async () => {
    await fc.assert(
      fc.asyncProperty(histories, fc.integer({ min: 1, max: 3_000 }), async (history, keepRecentTokens) => {
        const { compaction } = setUp({ keepRecentTokens });
        const path = deepFreeze(pathOf(history));
        const result = await compaction.compact({ path });
        if (result === null) return;
        const [summary, ...kept] = contextMessages(appended(path, result));
        expect(summary).toEqual(summaryMessage(result.summary));
        expect(orphans(kept)).toEqual([]);
        expect(kept).toEqual(history.slice(-kept.length));
        expect(kept.length).toBeGreaterThan(0);
        expect(kept.length).toBeLessThan(history.length);
        expect(["user", "assistant", "system"]).toContain(kept[0]?.role);
        expect(await compaction.compact({ path: appended(path, result) })).toBeNull();
      }),
      { numRuns: propertyRuns(1_000) },
    );
  });

  test("S3: a session that is compacted whenever it grows keeps its newest entry, and every call with its result", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(spoken, { minLength: 1, maxLength: 4 }), async (parts) => {
        const { compaction, requests } = setUp({ keepRecentTokens: 300 });
        let path: SessionEntry[] = [];
        for (const [part, messages] of parts.entries()) {
          path = [...path, ...pathOf(messages).map((entry) => ({ ...entry, id: `p${part}${entry.id}` }))];
          const result = await compaction.compact({ path });
          if (result !== null) path = appended(path, result);
          const shown = contextMessages(path);
          expect(orphans(shown)).toEqual([]);
          expect(shown.slice(-1).map(placeOf)).toEqual(messages.slice(-1).map(placeOf));
        }
        // Each message is in at most one summary request.
        const summed = requests.flatMap(({ messages }) => messages);
        expect(new Set(summed).size).toBe(summed.length);
      }),
    );
  });
});
