import { describe, expect, test } from "vitest";
import { Agent, openRuntime, permissions, tool } from "../../../src/entries/index.ts";
import { parseSessionId, type Event, type Model } from "../../../src/kernel/index.ts";
import { scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";
import { converse, textsOf } from "./conversation.ts";

removeStoresAfterEach();

const chat = parseSessionId("chat");

describe.each(twoStores)("settings of a session in a %s store", (_name, prepare) => {
  test("setModel() of a session replaces the main model of later invocations, and the latest entry on the path wins", async () => {
    const others = Object.fromEntries(
      ["large", "small"].map((modelId) => [
        `shop/${modelId}`,
        scriptedModel([`from ${modelId}`, `again ${modelId}`], { provider: "shop", modelId }),
      ]),
    );
    const { runtime, say } = await converse(await (await prepare())(), ["own 1", "own 2"], {
      resolveModel: (name) => others[name],
    });
    expect((await say("one", chat)).output).toBe("own 1");
    const before = (await runtime.sessions.get(chat))?.leafId as string;
    await runtime.sessions.setModel(chat, "shop/large");
    await runtime.sessions.setModel(chat, "shop/small");
    expect((await say("two", chat)).output).toBe("from small");
    expect((await runtime.sessions.path(chat)).at(-1)).toMatchObject({
      model: { provider: "shop", modelId: "small" },
    });
    // A branch that starts before the change uses the agent's own model.
    await runtime.sessions.move(chat, before);
    expect((await say("three", chat)).output).toBe("own 2");
    await runtime.sessions.setModel(chat, "shop/large");
    expect((await say("four", chat)).output).toBe("from large");
    await runtime.close();
  });

  test("a compaction keeps the model and the thinking level of a session, although the path starts after their entries", async () => {
    const large = scriptedModel(["from large", "again", "and again"], { provider: "shop", modelId: "large" });
    const { runtime, say } = await converse(await (await prepare())(), ["own"], {
      resolveModel: (name) => (name === "shop/large" ? large : undefined),
    });
    await say("one", chat);
    await runtime.sessions.setModel(chat, "shop/large");
    await runtime.sessions.setThinkingLevel(chat, "high");
    await say("two", chat);
    const last = (await runtime.sessions.path(chat)).at(-1)?.id as string;
    await runtime.sessions.compact(chat, { summary: "so far", firstKeptEntryId: last });
    const path = await runtime.sessions.path(chat, { from: "compaction" });
    expect(textsOf(path)).toEqual(["from large", "compaction"]);
    expect((await say("three", chat)).output).toBe("again");
    expect(large.calls.map(({ thinkingLevel }) => thinkingLevel)).toEqual(["high", "high"]);
    expect((await runtime.sessions.contextUsage(chat)).model).toBe("shop/large");
    await runtime.close();
  });

  test("an unknown model of a session ends the invocation with model_not_found before any model is called", async () => {
    const { runtime, model, scout, say } = await converse(await (await prepare())(), ["own", "own 2"]);
    await say("one", chat);
    await runtime.sessions.setModel(chat, "nowhere/gone");
    const run = await scout.submit("two", { runtime, sessionId: chat });
    const result = await run.result();
    expect(result).toMatchObject({ status: "failed", error: { code: "model_not_found" }, turns: 0 });
    expect(result.usage.inputTokens).toBe(0);
    expect(model.calls).toHaveLength(1);
    const events: Event[] = [];
    for await (const event of run.events()) if ("seq" in event) events.push(event);
    expect(events.find(({ type }) => type === "agent_error")?.data).toMatchObject({
      kind: "model_not_found",
    });
    expect(events.some(({ type }) => type === "message_start")).toBe(false);
    // The input is kept, and is sent again after another model was set.
    await runtime.sessions.setModel(chat, "scripted/script");
    const [unsent] = await runtime.sessions.unsent(chat);
    const again = await runtime.sessions.resend(unsent?.run.runId as string);
    expect((await again.result()).output).toBe("own 2");
    await runtime.close();
  });

  test("J4: a resumed invocation uses the model and the thinking level of its turn, not those that were set meanwhile", async () => {
    const open = await prepare();
    const look = tool({
      name: "look",
      description: "Looks",
      inputSchema: { type: "object", properties: {} } as const,
      execute: () => "rain",
    });
    const work = async (script: readonly ScriptStep[]) => {
      const large = scriptedModel(script, { provider: "shop", modelId: "large" });
      const small = scriptedModel(["from small"], { provider: "shop", modelId: "small" });
      const resolveModel = (name: string): Model | undefined => (name === "shop/large" ? large : small);
      const runtime = await openRuntime({ store: await open(), unknownPrice: "ignore", resolveModel });
      const onAsk = permissions({ ask: ["look"], onAsk: "wait" });
      const model = scriptedModel(["own"]);
      const scout = new Agent({ name: "scout", model, tools: [look], permissions: onAsk });
      runtime.register(scout);
      return { runtime, scout, large, small };
    };
    const first = await work([{ toolCalls: [{ name: "look", input: {} }] }]);
    await first.scout.invoke("hello", { runtime: first.runtime, sessionId: chat });
    await first.runtime.sessions.setModel(chat, "shop/large");
    await first.runtime.sessions.setThinkingLevel(chat, "low");
    const run = await first.scout.submit("go", { runtime: first.runtime, sessionId: chat });
    let approvalId = "";
    for await (const event of run.events())
      if (event.type === "approval_request") {
        ({ approvalId } = event.data);
        break;
      }
    await first.runtime.sessions.setModel(chat, "shop/small");
    await first.runtime.sessions.setThinkingLevel(chat, "high");
    await first.runtime.close();
    const second = await work(["from large"]);
    const resumed = await second.runtime.find(run.runId);
    await resumed?.approve(approvalId, { decision: "approved" });
    expect((await resumed?.result())?.output).toBe("from large");
    expect(second.large.calls.map(({ thinkingLevel }) => thinkingLevel)).toEqual(["low"]);
    expect(second.small.calls).toEqual([]);
    // The settings apply to the next invocation.
    const next = await second.scout.invoke("next", { runtime: second.runtime, sessionId: chat });
    expect(next.output).toBe("from small");
    expect(second.small.calls[0]?.thinkingLevel).toBe("high");
    await second.runtime.close();
  });
});
