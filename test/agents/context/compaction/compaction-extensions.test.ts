import { describe, expect, it } from "vitest";
import { openRuntime } from "../../../../src/entries/index.ts";
import type { Extension, ExtensionResult } from "../../../../src/kernel/index.ts";
import {
  chat,
  chatModel,
  eventsOf,
  fill,
  hasCompaction,
  isSummary,
  long,
  sessionId,
  typesIn,
} from "./compacted-session.ts";

function answering(answer: (messages: number) => ExtensionResult<"session_before_compact">): Extension {
  return {
    name: "keeper",
    setup: (api) => {
      api.on("session_before_compact", ({ messages }) => answer(messages.length));
    },
  };
}

describe("an extension that handles session_before_compact", () => {
  it("an extension that handles session_before_compact cancels the compaction, without a model call", async () => {
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    const model = chatModel();
    const agent = chat(model, { extensions: [answering(() => ({ cancel: true }))] });
    const { compaction } = await fill(agent, { runtime, sessionId });
    expect(await compaction.result()).toMatchObject({
      status: "completed",
      output: { skipped: "cancelled" },
    });
    expect(model.calls.some(isSummary)).toBe(false);
    expect(await hasCompaction(runtime)).toBe(false);
    const types = typesIn(await eventsOf(runtime, compaction.runId), ["compaction_skipped", "settled"]);
    expect(types).toEqual(["compaction_skipped", "settled"]);
  });

  it("an extension that handles session_before_compact provides the summary and the first entry that is kept", async () => {
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    const model = chatModel();
    let kept = "";
    const extension = answering(() => ({ summary: "As I say.", firstKeptEntryId: kept }));
    const agent = chat(model, { extensions: [extension] });
    await agent.invoke("one ".repeat(100), { runtime, sessionId });
    kept = (await runtime.sessions.path(sessionId)).at(-1)?.id ?? "";
    const run = await runtime.sessions.compact(sessionId);
    expect((await run.result()).output).toMatchObject({ entryId: expect.any(String) });
    expect((await runtime.sessions.path(sessionId)).at(-1)).toMatchObject({ summary: "As I say." });
    expect(model.calls.some(isSummary)).toBe(false);
  });

  it("a compaction summary that is longer than what it replaces is not stored, and the run reports this", async () => {
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    const agent = chat(chatModel(() => `Not short: ${long.repeat(3)}`));
    const { compaction } = await fill(agent, { runtime, sessionId });
    expect(await compaction.result()).toMatchObject({
      status: "completed",
      output: { skipped: "longer_summary" },
    });
    expect(await hasCompaction(runtime)).toBe(false);
    const skipped = (await eventsOf(runtime, compaction.runId)).filter(
      ({ type }) => type === "compaction_skipped",
    );
    expect(skipped).toMatchObject([{ data: { reason: "longer_summary" } }]);
  });

  it("an extension that handles session_before_compact and keeps an entry that does not exist writes none, with an error", async () => {
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    const extension = answering(() => ({ summary: "As I say.", firstKeptEntryId: "nowhere" }));
    const agent = chat(chatModel(), { extensions: [extension] });
    const { compaction } = await fill(agent, { runtime, sessionId });
    expect(await compaction.result()).toMatchObject({
      status: "failed",
      output: { skipped: "no_summary", failure: { code: "invalid_argument" } },
    });
    const log = await eventsOf(runtime, compaction.runId);
    const error = {
      extension: "keeper",
      event: "session_before_compact",
      failure: { code: "invalid_argument" },
    };
    expect(log.filter(({ type }) => type === "extension_error")).toMatchObject([{ data: error }]);
    expect(runtime.extensionErrors()).toMatchObject([error]);
    expect(await hasCompaction(runtime)).toBe(false);
  });

  it("an extension that handles session_before_compact makes the summary itself if the handler throws", async () => {
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    const extension = answering(() => {
      throw new Error("broken");
    });
    const agent = chat(chatModel(), { extensions: [extension] });
    const { compaction } = await fill(agent, { runtime, sessionId });
    expect((await compaction.result()).status).toBe("completed");
    expect(typesIn(await eventsOf(runtime, compaction.runId), ["extension_error"])).toHaveLength(1);
    expect(await hasCompaction(runtime)).toBe(true);
  });
});
