import { describe, expect, it } from "vitest";
import { withSettings } from "../../../src/capabilities/index.ts";
import { fallback } from "../../../src/entries/index.ts";
import {
  messageText,
  Transcript,
  userMessage,
  type ModelRequest,
  type PriceTable,
  type RunContext,
} from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { agent, gate, readAll, setUp } from "../runtime-setup.ts";
import { runWorkload, type Workload } from "../simulated-crash.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

removeStoresAfterEach();

const usage = { inputTokens: 2_000, outputTokens: 300 };
const prices: PriceTable = { find: () => ({ inputUsd: 3e-6, outputUsd: 15e-6 }) };
const callUsd = 2_000 * 3e-6 + 300 * 15e-6;
/** A text of about 2,000 tokens and 10,000 bytes. */
const text = "letters ".repeat(1_250);
const answers = (count: number): ScriptStep[] =>
  Array.from({ length: count }, () => ({ text: "read", usage }));

/** An agent that makes `calls` calls, none of which continues another. Returns how many were answered. */
function reader(calls: number, options: { readonly counts: boolean }) {
  const counted: ModelRequest[] = [];
  const countTokens = (request: ModelRequest): number => {
    counted.push(request);
    return 2_000;
  };
  const model = scriptedModel(answers(calls), options.counts ? { countTokens } : {});
  const code = async (ctx: RunContext): Promise<number> => {
    for (let part = 0; part < calls; part++) {
      await ctx.llm({ transcript: Transcript.of([userMessage(`${part} ${text}`)]) });
      ctx.report({ output: part + 1 });
    }
    return calls;
  };
  return { agent: agent("reader", code, { models: { main: model } }), counted, model };
}

describe.each(twoStores)("a reservation in a %s store", (_name, prepare) => {
  it.each([
    ["dollars", { maxCostUsd: 10 * callUsd }],
    ["tokens", { maxTokens: 10 * 2_300 }],
  ])(
    "B1: at least nine calls complete under a cap worth ten in %s if the model counts tokens, and stay within the cap",
    async (_unit, budget) => {
      const runtime = await createRuntime({ store: await (await prepare())(), prices, pollMs: 10 });
      const { agent: counting, counted } = reader(20, { counts: true });
      const run = await runtime.submit(counting, null, { budget });
      const { status, output, costUsd, usage: used } = await run.result();
      expect(status).toBe("budget_exhausted");
      expect(output).toBeGreaterThanOrEqual(9);
      expect(costUsd).toBeLessThanOrEqual(10 * callUsd);
      expect(used.inputTokens + used.outputTokens).toBeLessThanOrEqual(10 * 2_300);
      expect(counted.length).toBeGreaterThan(0);
      await runtime.close();
    },
  );

  it.each([
    ["application/pdf", "a model that counts", { countTokens: () => 2_000 }, 8_000, "completed"],
    ["application/pdf", "no count", {}, 8_000, "budget_exhausted"],
    ["application/pdf", "no count and a small context window", {}, 2_000, "completed"],
    ["text/csv", "no count", {}, 8_000, "completed"],
  ] as const)(
    "B1: the reservation for a small document of type %s is what the provider may read of it, with %s",
    async (mediaType, _with, options, contextWindow, expected) => {
      const runtime = await createRuntime({ store: await (await prepare())(), prices, pollMs: 10 });
      const model = Object.assign(scriptedModel(answers(1), options), { contextWindow });
      const file = { type: "file", mediaType, source: { kind: "base64", data: "JVBERi0=" } } as const;
      const code = (ctx: RunContext): Promise<unknown> =>
        ctx.llm({ transcript: Transcript.of([{ role: "user", content: [file] }]), maxOutputTokens: 300 });
      const reading = agent("reader", async (ctx) => (await code(ctx)) !== null, { models: { main: model } });
      const run = await runtime.submit(reading, null, { budget: { maxTokens: 3_000 } });
      expect([(await run.result()).status, model.calls.length]).toEqual([
        expected,
        expected === "completed" ? 1 : 0,
      ]);
      await runtime.close();
    },
  );

  it("B1: the tokens of a call whose bound by bytes fits the budget are not counted", async () => {
    const runtime = await createRuntime({ store: await (await prepare())(), prices, pollMs: 10 });
    const { agent: counting, counted } = reader(2, { counts: true });
    const run = await runtime.submit(counting, null, { budget: { maxTokens: 10 * 2_300 } });
    expect(await run.result()).toMatchObject({ status: "completed", output: 2 });
    expect(counted).toEqual([]);
    await runtime.close();
  });

  it("B5: the error of a refused reservation names what is reserved, remaining, spent and unreported", async () => {
    const runtime = await createRuntime({ store: await (await prepare())(), prices, pollMs: 10 });
    const { agent: plain } = reader(1, { counts: false });
    const run = await runtime.submit(plain, null, { budget: { maxCostUsd: 0.01 } });
    const { error, interruptionReason } = await run.result();
    const bound = 0.030165;
    const message = `reservation of ${bound} USD does not fit into the remaining 0.01 USD (spent 0)`;
    expect(error).toMatchObject({
      message,
      details: {
        dimension: "costUsd",
        refused: { reserved: bound, remaining: 0.01, spent: 0, unreported: 0 },
      },
    });
    expect(interruptionReason).toBe(message);
    await runtime.close();
  });
});

/** One call whose tokens must be counted, on a model that never answers in the first process. */
function countedCall(seen: { counts: number; calls: number }): Workload {
  const code = async (ctx: RunContext): Promise<string> =>
    messageText(
      (await ctx.llm({ transcript: Transcript.of([userMessage(text)]), maxOutputTokens: 300 })).message,
    );
  const model = scriptedModel([() => (seen.calls++, { text: "read", usage })], {
    countTokens: () => (seen.counts++, 2_000),
  });
  return {
    agents: () => [agent("reader", code, { models: { main: model } })],
    submit: { budget: { maxTokens: 9_000, maxTurns: 1 } },
  };
}

it("B1, B3: after a crash at any write, the recorded token count is used again, so that a cap of one turn suffices", async () => {
  const { writes } = await runWorkload(countedCall({ counts: 0, calls: 0 }));
  expect(writes).toBeGreaterThan(2);
  for (let at = 2; at <= writes; at++) {
    for (const when of ["before", "after"] as const) {
      const seen = { counts: 0, calls: 0 };
      const workload = countedCall(seen);
      // Each life has its own script.
      const agents = (): ReturnType<Workload["agents"]> => countedCall(seen).agents();
      const { status, output, callsAtCrash } = await runWorkload(
        { ...workload, agents },
        { at, when, countCalls: () => seen.calls },
      );
      expect({ at, when, status, output }).toEqual({ at, when, status: "completed", output: "read" });
      // A model that was called had a durable reservation, and with it a durable count.
      expect(seen.counts).toBeLessThanOrEqual(callsAtCrash > 0 ? 1 : 2);
    }
  }
});

it("S4, B1: a token count that fails or is no integer is recorded, and the bound by bytes decides", async () => {
  for (const countTokens of [() => Promise.reject(new Error("offline")), () => 0.5]) {
    const { runtime, events } = await setUp({ prices });
    const model = scriptedModel(answers(1), { countTokens });
    const code = async (ctx: RunContext): Promise<string> =>
      (await ctx.llm({ transcript: Transcript.of([userMessage(text)]) })).stopReason;
    const run = await runtime.submit(agent("reader", code, { models: { main: model } }), null, {
      budget: { maxTokens: 9_000 },
    });
    expect((await run.result()).status).toBe("budget_exhausted");
    expect(model.calls).toEqual([]);
    const errors = (await events(run.runId)).filter(({ type }) => type === "hook_error");
    expect(errors).toMatchObject([{ data: { hook: "countTokens" } }]);
  }
});

it("C2: a run that is cancelled during a token count that never ends is cancelled, and pays nothing", async () => {
  const { runtime, clock, store } = await setUp({ prices, stopGraceMs: 100 });
  const asked = gate();
  const model = scriptedModel(answers(1), {
    countTokens: () => (asked.resolve(), new Promise<number>(() => {})),
  });
  const code = async (ctx: RunContext): Promise<string> =>
    (await ctx.llm({ transcript: Transcript.of([userMessage(text)]) })).stopReason;
  const run = await runtime.submit(agent("reader", code, { models: { main: model } }), null, {
    budget: { maxTokens: 9_000 },
  });
  await asked.promise;
  await run.cancel("enough");
  await expect
    .poll(async () => {
      await clock.advance(50);
      return (await readAll(store, run.runId)).at(-1)?.type;
    })
    .toBe("run_end");
  expect(await run.result()).toMatchObject({ status: "cancelled", costUsd: 0, turns: 0 });
  expect(model.calls).toEqual([]);
});

it("withSettings() passes requests with its settings to countTokens, and refuses countTokens for a choice of models", async () => {
  const counted: ModelRequest[] = [];
  const countTokens = (request: ModelRequest): number => counted.push(request);
  const model = withSettings(scriptedModel([], { countTokens }), { temperature: 0 });
  expect(await model.countTokens?.({ messages: [] })).toBe(1);
  expect(counted).toEqual([{ messages: [], temperature: 0 }]);
  const own = withSettings(scriptedModel([]), { temperature: 1, countTokens: async () => 7 });
  expect(await own.countTokens?.({ messages: [] })).toBe(7);
  expect(Reflect.get(withSettings(scriptedModel([]), {}), "countTokens")).toBeUndefined();
  const several = fallback([scriptedModel([]), scriptedModel([])]);
  expect(() => withSettings(several, { countTokens: async () => 7 })).toThrow("invalid countTokens");
});
