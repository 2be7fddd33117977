import { describe, expect, it } from "vitest";
import { priceCatalog } from "../../../src/capabilities/index.ts";
import { Agent, openRuntime as openWithPrices, tool } from "../../../src/entries/index.ts";
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
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { FakeClock, scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { agent, readAll, setUp } from "../runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

removeStoresAfterEach();

const usage = { inputTokens: 40, outputTokens: 10 };
const prices: PriceTable = { find: () => ({ inputUsd: 1e-6, outputUsd: 4e-6 }) };
const request = { transcript: Transcript.of([userMessage("hello")]), maxOutputTokens: 20 };
const look = tool({ name: "look", description: "", inputSchema: { type: "object" }, execute: () => "seen" });

/** An agent that calls its tool `turns` times and then answers `done`. */
function scout(turns: number): { readonly agent: Agent; readonly modelCalls: () => number } {
  const toolTurns = Array.from({ length: turns }, (_, turn): ScriptStep => ({
    text: `so far ${turn + 1}`,
    toolCalls: [{ name: "look", input: {} }],
    usage,
  }));
  const model = scriptedModel([...toolTurns, { text: "done", usage }]);
  return { agent: new Agent({ name: "scout", model, tools: [look] }), modelCalls: () => model.calls.length };
}

function dataOf<Type extends EventType>(
  events: readonly Event[],
  type: Type,
): readonly Event<Type>["data"][] {
  return events.filter((event) => event.type === type).map(({ data }) => data as Event<Type>["data"]);
}

describe.each(twoStores)("the budget of a run in a %s store", (_name, prepare) => {
  it("B5: a run emits one budget_warning per dimension before a cap is reached, and another one after a top-up", async () => {
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
    const warnings = async (): Promise<unknown> =>
      dataOf(await readAll(store, run.runId), "budget_warning").map(
        ({ dimension, used }) => `${dimension} ${used}`,
      );
    expect(await warnings()).toEqual(["costUsd 0.00016", "turns 2"]);
    const types = (await readAll(store, run.runId)).map(({ type }) => type);
    expect(types.lastIndexOf("budget_warning")).toBeLessThan(types.indexOf("budget_exhausted"));
    await run.topUp({ maxTurns: 2 });
    await run.topUp({ maxCostUsd: 1 });
    expect((await run.result()).status).toBe("completed");
    expect(await warnings()).toEqual(["costUsd 0.00016", "turns 2", "turns 5"]);
    await runtime.close();
  });

  it("B5, J5: an exhausted run keeps its partial output, and another process completes it after a top-up and repeats no call", async () => {
    const open = await prepare();
    const interrupted = scout(4);
    const first = await createRuntime({ store: await open(), prices, pollMs: 10 });
    const { runId } = await first.submit(interrupted.agent, "go", { budget: { maxTurns: 2 } });
    const stopped = await (await first.find(runId))?.result();
    expect(stopped).toMatchObject({ status: "budget_exhausted", output: "so far 2", turns: 2 });
    expect(stopped?.error).toMatchObject({
      code: "budget_exhausted",
      details: { dimension: "turns", limit: 2, used: 3 },
    });
    expect(interrupted.modelCalls()).toBe(2);
    await first.close();
    const second = await createRuntime({ store: await open(), prices, pollMs: 10 });
    // The second process continues where the model script of the first one stopped.
    const remaining = scriptedModel([
      { text: "so far 3", toolCalls: [{ name: "look", input: {} }], usage },
      { text: "done", usage },
    ]);
    second.register(new Agent({ name: "scout", model: remaining, tools: [look] }));
    const resumed = await second.find(runId);
    await resumed?.topUp({ maxTurns: 5 });
    const done = await resumed?.result();
    expect(done).toMatchObject({
      status: "completed",
      output: "done",
      turns: 4,
      unreported: { tokens: 0, costUsd: 0 },
    });
    expect(done?.costUsd).toBeCloseTo(4 * 80e-6, 12);
    expect(remaining.calls).toHaveLength(2);
    await second.close();
  });

  it("B1, B5: an answer that the budget cuts short ends the run as budget_exhausted, with the partial text as output", async () => {
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

  it("B3: the result reports the cost of a call without reported usage as unreported, apart from the usage", async () => {
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
    const { unreported, costUsd, usage: used, turns } = await result;
    const [lost] = dataOf(await readAll(store, run.runId), "budget_lost");
    expect(unreported).toEqual({ tokens: lost?.tokens, costUsd: lost?.costUsd, likelyUsd: 80e-6 });
    expect(used).toMatchObject({ inputTokens: 40, outputTokens: 10, costUsd: 80e-6 });
    expect(costUsd).toBeCloseTo(80e-6 + (unreported.costUsd ?? 0), 12);
    expect(turns).toBe(1);
    const { ledger } = await run.snapshot();
    expect(ledger.accounts[formatTaskId(0)]).toMatchObject({
      lost: { tokens: unreported.tokens },
      reserved: { tokens: 0 },
    });
    await runtime.close();
  });
});

it.each([{ maxTokens: -1 }, { maxTurns: 0.5 }, { maxCostUsd: Number.NaN }, { tokens: 5 }])(
  "topUp refuses the invalid amount %j, and the run continues unchanged",
  async (invalid) => {
    const { runtime } = await setUp();
    const waits = agent("waits", async (ctx) => ctx.waitForSignal("go"));
    const run = await runtime.submit(waits, null);
    await expect(run.topUp(invalid)).rejects.toMatchObject({ code: "invalid_argument" });
    await run.signal("go", "signalled");
    expect((await run.result()).output).toBe("signalled");
  },
);

it.each([0, -1, 1.1, Number.NaN])("createRuntime refuses warnAt: %d", async (warnAt) => {
  await expect(createRuntime({ warnAt })).rejects.toMatchObject({ code: "invalid_argument" });
});

describe("the price of a model call", () => {
  const pricedAgent = (provider: string, modelId: string): HostedAgent => {
    const model = scriptedModel([{ text: "hi", usage }], { provider, modelId });
    return agent("asking", async (ctx) => (await ctx.llm(request)).stopReason, { models: { main: model } });
  };

  it("B4: the price of a model call comes by default from the bundled price list, which is loaded with the first call", async () => {
    const runtime = await openWithPrices();
    const run = await runtime.submit(pricedAgent("anthropic.messages", "claude-sonnet-4-20250514"), null, {
      budget: { maxCostUsd: 1 },
    });
    expect((await run.result()).costUsd).toBeCloseTo(40 * 3e-6 + 10 * 15e-6, 12);
    await runtime.close();
  });

  it("B4: an unknown model has the price null, and a budget in dollars refuses its call with advice to set a price", async () => {
    const runtime = await openWithPrices();
    const capped = await runtime.submit(pricedAgent("acme", "m1"), null, { budget: { maxCostUsd: 1 } });
    const { error } = await capped.result();
    expect(error?.code).toBe("unknown_price");
    expect(error?.message).toContain(
      `priceCatalog({ overrides: [{ provider: "acme", model: "m1", usdPerMillion: { input, output } }] })`,
    );
    await runtime.close();
    const uncapped = await openWithPrices();
    expect((await (await uncapped.submit(pricedAgent("acme", "m1"), null)).result()).costUsd).toBeNull();
    await uncapped.close();
  });

  it("B1: the price of a call with a price override includes the price per request, as at the time of the reservation", async () => {
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

  it("B1: the cost of a model call is limited by an output limit that the request sends whenever the task has a cap", async () => {
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

it("B5: a run whose model has an output limit above any budget ends as budget_exhausted, not as failed", async () => {
  const runtime = await openWithPrices({ prices });
  const model = Object.assign(scriptedModel(["not reached"]), { maxOutputTokens: Number.MAX_SAFE_INTEGER });
  const author = new Agent({ name: "author", model, budget: { maxCostUsd: 0 } });
  const run = await runtime.submit(author, "go");
  expect(await run.result()).toMatchObject({ status: "budget_exhausted" });
  await runtime.close();
});
