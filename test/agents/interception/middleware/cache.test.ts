import { describe, expect, test } from "vitest";
import { cache } from "../../../../src/agents/interception/middleware/index.ts";
import { sha256 } from "../../../../src/entries/index.ts";
import { FakeClock } from "../../../../src/testing/index.ts";
import { simpleTool, text } from "../../../runtime/runtime-setup.ts";
import {
  answerText,
  chatScene,
  httpError,
  resultText,
  toolScene,
  type ToolAnswer,
  type ToolSceneOptions,
} from "./contexts.ts";

const tool = simpleTool({ name: "look", execute: async () => text("unused") });

function setUp(options: Partial<Parameters<typeof cache>[0]> = {}) {
  const clock = new FakeClock();
  const layer = cache({ clock, hash: sha256, ...options });
  const ask = async (answer: ToolAnswer, more: ToolSceneOptions = {}) => {
    const scene = toolScene([answer], { tool, ...more });
    const result = await scene.call([layer]);
    return { said: resultText(result), called: scene.calls.length, note: scene.context.metadata["cache"] };
  };
  return { clock, layer, ask };
}

describe("cache() of tool results", () => {
  test("cache() answers a repeated tool call with equal arguments from the cache, in any key order", async () => {
    const { ask } = setUp();
    expect(await ask("rain", { input: { town: "Sens", day: 1 } })).toEqual({
      said: "rain",
      called: 1,
      note: "miss",
    });
    expect(await ask("sun", { input: { day: 1, town: "Sens" } })).toEqual({
      said: "rain",
      called: 0,
      note: "hit",
    });
    expect(await ask("sun", { input: { day: 2, town: "Sens" } })).toMatchObject({ called: 1 });
  });

  test.for([
    { whose: "another tenant", who: { tenantId: "b", userId: "ann" } },
    { whose: "another user", who: { tenantId: "a", userId: "bob" } },
    { whose: "a run without a user", who: { tenantId: "a", userId: null } },
    { whose: "a user whose id is the text null", who: { tenantId: "a", userId: "null" } },
    { whose: "a run without a tenant", who: { tenantId: null, userId: "ann" } },
  ])("cache() does not give a cached result to $whose", async ({ who }) => {
    const { ask } = setUp();
    await ask("ann's", { tenantId: "a", userId: "ann" });
    expect(await ask("theirs", who)).toMatchObject({ said: "theirs", called: 1 });
    expect(await ask("other", { tenantId: "a", userId: "ann" })).toMatchObject({ said: "ann's", called: 0 });
  });

  test("cache() keeps the results of two tools with the same name apart", async () => {
    const { ask } = setUp();
    await ask("one's");
    const other = simpleTool({ name: "look", execute: async () => text("unused") });
    expect(await ask("other's", { tool: other })).toMatchObject({ said: "other's", called: 1 });
  });

  test("a cached result expires after ttlMs by the injected clock", async () => {
    const { clock, ask } = setUp({ ttlMs: 1_000 });
    await ask("old");
    await clock.advance(999);
    expect(await ask("new")).toMatchObject({ said: "old" });
    await clock.advance(1);
    expect(await ask("new")).toMatchObject({ said: "new" });
  });

  test("cache() drops the least recently used result beyond maxEntries", async () => {
    const { ask } = setUp({ maxEntries: 2 });
    await ask("a", { input: { n: 1 } });
    await ask("b", { input: { n: 2 } });
    await ask("", { input: { n: 1 } });
    await ask("c", { input: { n: 3 } });
    expect(await ask("again", { input: { n: 1 } })).toMatchObject({ said: "a" });
    expect(await ask("again", { input: { n: 2 } })).toMatchObject({ said: "again" });
  });

  test("cache() stores neither error results nor thrown errors", async () => {
    const { ask } = setUp();
    await ask({ ...text("broken"), isError: true });
    await expect(ask(httpError(500))).rejects.toThrow("it failed");
    expect(await ask("fine")).toMatchObject({ said: "fine", called: 1 });
  });

  test("cache() skips destructive and suspending tools unless the tools option names them", async () => {
    const changing = { ...tool, destructive: true };
    const waiting = { ...tool, suspends: true };
    for (const one of [changing, waiting]) {
      const { ask } = setUp();
      await ask("once", { tool: one });
      expect(await ask("twice", { tool: one })).toMatchObject({ said: "twice" });
      const named = setUp({ tools: ["look"] });
      await named.ask("once", { tool: one });
      expect(await named.ask("twice", { tool: one })).toMatchObject({ said: "once" });
    }
  });

  test("F1: cache() with maxEntries: 0 adds no middleware", () => {
    expect(Object.keys(setUp({ maxEntries: 0 }).layer)).toEqual(["name"]);
  });
});

describe("cache() of model calls", () => {
  test("cache() does not cache model calls by default", () => {
    expect(setUp().layer.chat).toBeUndefined();
  });

  test.for([false, true])(
    "a cached model answer costs nothing and makes no model call (streaming: %s)",
    async (streaming) => {
      const { layer } = setUp({ chat: true });
      await chatScene(["first"], { streaming }).call([layer]);
      const again = chatScene(["second"], { streaming });
      const hit = await again.call([layer]);
      expect(answerText(hit)).toBe("first");
      expect(hit?.usage).toMatchObject({ inputTokens: 0, outputTokens: 0, costUsd: 0 });
      expect(again.model.calls).toHaveLength(0);
    },
  );

  test("cache() calls the model for another request or tenant, and after a failed or truncated answer", async () => {
    const { layer } = setUp({ chat: true });
    await chatScene([{ text: "cut", stopReason: "length" }]).call([layer]);
    await expect(chatScene([{ error: httpError(500) }]).call([layer])).rejects.toThrow("it failed");
    expect(answerText(await chatScene(["whole"]).call([layer]))).toBe("whole");
    const warmer = chatScene(["warm"]);
    warmer.context.request = { ...warmer.context.request, temperature: 1 };
    expect(answerText(await warmer.call([layer]))).toBe("warm");
    const other = chatScene(["other"], { tenantId: "b" });
    expect(answerText(await other.call([layer]))).toBe("other");
  });
});
