import { describe, expect, it } from "vitest";
import { priceCatalog } from "../../../src/capabilities/index.ts";
import { Agent, openRuntime as openWithPrices, tool } from "../../../src/index.ts";
import {
  formatTaskId,
  Transcript,
  userMessage,
  type HostedAgent,
  type Event,
  type EventType,
  type PriceTable,
  type RunContext,
} from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/create-runtime.ts";
import { FakeClock, scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { agent, readAll, setUp } from "../runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

removeStoresAfterEach();

const usage = { inputTokens: 40, outputTokens: 10 };
const prices: PriceTable = { find: () => ({ inputUsd: 1e-6, outputUsd: 4e-6 }) };
const request = { transcript: Transcript.of([userMessage("hello")]), maxOutputTokens: 20 };
const look = tool({ name: "look", description: "", inputSchema: { type: "object" }, execute: () => "seen" });

/** Says `more` and looks, so many times, and then `done`. */
function scout(turns: number): { readonly agent: Agent; readonly asked: () => number } {
  const more = Array.from({ length: turns }, (_, turn): ScriptStep => ({
    text: `so far ${turn + 1}`,
    toolCalls: [{ name: "look", input: {} }],
    usage,
  }));
  const model = scriptedModel([...more, { text: "done", usage }]);
  return { agent: new Agent({ name: "scout", model, tools: [look] }), asked: () => model.calls.length };
}

function shown<Type extends EventType>(events: readonly Event[], type: Type): readonly Event<Type>["data"][] {
  return events.filter((event) => event.type === type).map(({ data }) => data as Event<Type>["data"]);
}

describe.each(twoStores)("on %s", (_name, prepare) => {
  it("warns once per dimension before a cap is reached, and again when it was raised (B5)", async () => {
    const store = await (await prepare())();
    const runtime = await createRuntime({ store, prices, pollMs: 10, warnAt: 0.5 });
    const code = async (ctx: RunContext): Promise<string> => {
      for (let call = 0; call < 6; call++) await ctx.llm(request);
      return "done";
    };
    const script = Array.from({ length: 6 }, () => ({ text: "hm", usage }));
    const talker = agent("talker", code, { models: { main: scriptedModel(script) } });
    const budget = { maxTokens: 1_000, maxCostUsd: 320e-6, maxTurns: 4 };
    const run = await runtime.submit(talker, null, { budget });
    expect((await run.result()).status).toBe("budget_exhausted");
    const warned = async (): Promise<unknown> =>
      shown(await readAll(store, run.runId), "budget_warning").map(
        ({ dimension, used }) => `${dimension} ${used}`,
      );
    expect(await warned()).toEqual(["costUsd 0.00016", "turns 2"]);
    const types = (await readAll(store, run.runId)).map(({ type }) => type);
    expect(types.lastIndexOf("budget_warning")).toBeLessThan(types.indexOf("budget_exhausted"));
    await run.topUp({ maxTurns: 2 });
    await run.topUp({ maxCostUsd: 1 });
    expect((await run.result()).status).toBe("completed");
    expect(await warned()).toEqual(["costUsd 0.00016", "turns 2", "turns 5"]);
    await runtime.close();
  });

  it("keeps what there is of an answer, and goes on after a top-up in another process, paying for nothing twice (B5, J5)", async () => {
    const open = await prepare();
    const one = scout(4);
    const first = await createRuntime({ store: await open(), prices, pollMs: 10 });
    const { runId } = await first.submit(one.agent, "go", { budget: { maxTurns: 2 } });
    const stopped = await (await first.find(runId))?.result();
    expect(stopped).toMatchObject({ status: "budget_exhausted", output: "so far 2", turns: 2 });
    expect(stopped?.error).toMatchObject({
      code: "budget_exhausted",
      details: { dimension: "turns", limit: 2, used: 3 },
    });
    expect(one.asked()).toBe(2);
    await first.close();
    const second = await createRuntime({ store: await open(), prices, pollMs: 10 });
    // The script of the second process begins where that of the first was left.
    const rest = scriptedModel([
      { text: "so far 3", toolCalls: [{ name: "look", input: {} }], usage },
      { text: "done", usage },
    ]);
    second.register(new Agent({ name: "scout", model: rest, tools: [look] }));
    const again = await second.find(runId);
    await again?.topUp({ maxTurns: 5 });
    const done = await again?.result();
    expect(done).toMatchObject({
      status: "completed",
      output: "done",
      turns: 4,
      unreported: { tokens: 0, costUsd: 0 },
    });
    expect(done?.costUsd).toBeCloseTo(4 * 80e-6, 12);
    expect(rest.calls).toHaveLength(2);
    await second.close();
  });

  it("gives out the part of an answer that was cut at the end of the money, and never calls it done (B1, B5)", async () => {
    const runtime = await createRuntime({ store: await (await prepare())(), prices, pollMs: 10 });
    const model = scriptedModel([
      { text: "half an ans", stopReason: "length", usage: { inputTokens: 30, outputTokens: 12 } },
      { text: "half an answer", usage },
    ]);
    const run = await runtime.submit(new Agent({ name: "writer", model }), "go", {
      budget: { maxTokens: 120 },
    });
    expect(await run.result()).toMatchObject({ status: "budget_exhausted", output: "half an ans" });
    expect(model.calls[0]?.maxOutputTokens).toBeLessThan(120);
    await run.topUp({ maxTokens: 9_000 });
    expect(await run.result()).toMatchObject({ status: "completed", output: "half an answer" });
    await runtime.close();
  });

  it("shows what was lost apart from what was used (B3)", async () => {
    const clock = new FakeClock();
    const store = await (await prepare())();
    const runtime = await createRuntime({ store, prices, clock, retry: { baseDelayMs: 1 } });
    const model = scriptedModel([{ error: new Error("socket hang up") }, { text: "hi", usage }]);
    const code = async (ctx: RunContext): Promise<string> => (await ctx.llm(request)).stopReason;
    const run = await runtime.submit(agent("talker", code, { models: { main: model } }), null);
    const result = run.result();
    await expect
      .poll(async () => {
        await clock.advance(10);
        return (await readAll(store, run.runId)).at(-1)?.type;
      })
      .toBe("run_end");
    const { unreported: lost, costUsd, usage: used, turns } = await result;
    const [told] = shown(await readAll(store, run.runId), "budget_lost");
    expect(lost).toEqual({ tokens: told?.tokens, costUsd: told?.costUsd });
    expect(used).toMatchObject({ inputTokens: 40, outputTokens: 10, costUsd: 80e-6 });
    expect(costUsd).toBeCloseTo(80e-6 + (lost.costUsd ?? 0), 12);
    expect(turns).toBe(1);
    const { ledger } = await run.snapshot();
    expect(ledger.accounts[formatTaskId(0)]).toMatchObject({
      lost: { tokens: lost.tokens },
      reserved: { tokens: 0 },
    });
    await runtime.close();
  });
});

it.each([{ maxTokens: -1 }, { maxTurns: 0.5 }, { maxCostUsd: Number.NaN }, { tokens: 5 }])(
  "refuses a top-up that is none, and the run is none the worse for it: %j",
  async (bad) => {
    const { runtime } = await setUp();
    const waits = agent("waits", async (ctx) => ctx.waitForSignal("go"));
    const run = await runtime.submit(waits, null);
    await expect(run.topUp(bad)).rejects.toMatchObject({ code: "invalid_argument" });
    await run.signal("go", "gone");
    expect((await run.result()).output).toBe("gone");
  },
);

it.each([0, -1, 1.1, Number.NaN])("refuses a soft threshold of %d", async (warnAt) => {
  await expect(createRuntime({ warnAt })).rejects.toMatchObject({ code: "invalid_argument" });
});

describe("prices", () => {
  const asking = (provider: string, modelId: string): HostedAgent => {
    const model = scriptedModel([{ text: "hi", usage }], { provider, modelId });
    return agent("asking", async (ctx) => (await ctx.llm(request)).stopReason, { models: { main: model } });
  };

  it("come from the list that is installed unless told, and are loaded with the first call (B4)", async () => {
    const runtime = await openWithPrices();
    const run = await runtime.submit(asking("anthropic.messages", "claude-sonnet-4-20250514"), null, {
      budget: { maxCostUsd: 1 },
    });
    expect((await run.result()).costUsd).toBeCloseTo(40 * 3e-6 + 10 * 15e-6, 12);
    await runtime.close();
  });

  it("are not made up: an unknown model under a cap is refused with what to do, and is null without one (B4)", async () => {
    const runtime = await openWithPrices();
    const capped = await runtime.submit(asking("acme", "m1"), null, { budget: { maxCostUsd: 1 } });
    const { error: failure } = await capped.result();
    expect(failure?.code).toBe("unknown_price");
    expect(failure?.message).toContain(
      `priceCatalog({ overrides: [{ provider: "acme", model: "m1", usdPerMillion: { input, output } }] })`,
    );
    await runtime.close();
    const free = await openWithPrices();
    expect((await (await free.submit(asking("acme", "m1"), null)).result()).costUsd).toBeNull();
    await free.close();
  });

  it("of your own count a request, and are those of the moment it was reserved (B1)", async () => {
    const clock = new FakeClock();
    const overrides = [
      { provider: "acme", model: "m*", usdPerMillion: { input: 1, output: 1 }, usdPerRequest: 0.5 },
      { provider: "acme", model: "m*", usdPerMillion: { input: 100, output: 100 }, from: clock.now() + 5 },
    ];
    const runtime = await createRuntime({ clock, prices: priceCatalog({ overrides, bundled: false }) });
    const slow = scriptedModel([{ text: "hi", usage, delayMs: 10 }], {
      provider: "acme",
      modelId: "m1",
      clock,
    });
    const code = async (ctx: RunContext): Promise<string> => (await ctx.llm(request)).stopReason;
    const run = await runtime.submit(agent("slow", code, { models: { main: slow } }), null, {
      budget: { maxCostUsd: 1 },
    });
    await expect.poll(() => slow.calls.length).toBe(1);
    await clock.advance(10);
    expect((await run.result()).costUsd).toBeCloseTo(0.5 + 50e-6, 12);
    await runtime.close();
  });

  it("send the output limit they were reserved for whenever a cap stands (B1)", async () => {
    const { runtime } = await setUp({ prices });
    const model = scriptedModel([
      { text: "hi", usage },
      { text: "hi", usage },
    ]);
    const code = async (ctx: RunContext): Promise<string> =>
      (await ctx.llm({ transcript: request.transcript })).stopReason;
    const plain = agent("plain", code, { models: { main: model } });
    await (await runtime.submit(plain, null)).result();
    await (await runtime.submit(plain, null, { budget: { maxCostUsd: 1 } })).result();
    expect(model.calls.map(({ maxOutputTokens }) => maxOutputTokens)).toEqual([undefined, 8_192]);
  });
});

it("runs out, and does not fail, where a model may write more than can be paid for (B5)", async () => {
  const runtime = await openWithPrices({ prices });
  const model = Object.assign(scriptedModel(["never said"]), { maxOutputTokens: Number.MAX_SAFE_INTEGER });
  const author = new Agent({ name: "author", model, budget: { maxCostUsd: 0 } });
  const run = await runtime.submit(author, "go");
  expect(await run.result()).toMatchObject({ status: "budget_exhausted" });
  await runtime.close();
});
