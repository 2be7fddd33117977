import { describe, expect, test } from "vitest";
import { fallback, route, withSettings } from "../../../src/capabilities/index.ts";
import {
  Fault,
  Transcript,
  userMessage,
  type Event,
  type LlmRequest,
  type Model,
  type ModelStreamPart,
} from "../../../src/kernel/index.ts";
import { scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { agent, setUp, settle } from "../../runtime/runtime-setup.ts";

const hello = { messages: [userMessage("hello")] };
const request: LlmRequest = { transcript: Transcript.of([userMessage("hello")]), maxOutputTokens: 100 };
const usage = { inputTokens: 10, outputTokens: 10 };
const down = Object.assign(new Error("down"), { status: 503 });
const blocked = Object.assign(new Error("blocked due to safety"), { status: 400 });
const reset = Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
/** Prices under which the second model costs a hundred times the first. */
const prices = {
  find: ({ modelId }: { modelId: string }) => {
    const usd = modelId === "dear" ? 1e-4 : 1e-6;
    return { inputUsd: usd, outputUsd: usd };
  },
};

function named(modelId: string, script: readonly ScriptStep[]) {
  return scriptedModel(script, { modelId });
}

function caller(model: Model, role = "main") {
  return agent("caller", async (ctx) => (await ctx.llm({ ...request, role })).model.modelId, {
    models: { [role]: model },
  });
}

async function read(stream: AsyncIterable<ModelStreamPart>): Promise<ModelStreamPart[]> {
  const parts: ModelStreamPart[] = [];
  for await (const part of stream) parts.push(part);
  return parts;
}

function ofType<Type extends Event["type"]>(events: readonly Event[], type: Type): Event<Type>[] {
  return events.filter((event) => event.type === type) as Event<Type>[];
}

describe("fallback() called without a runtime", () => {
  test("fallback() called without a runtime calls the next model if one fails, but not if the content was refused", async () => {
    const answer = await fallback([named("a", [{ error: down }]), named("b", ["yes"])]).generate(hello);
    expect(answer.message.content).toEqual([{ type: "text", text: "yes" }]);
    const second = named("b", ["never"]);
    await expect(fallback([named("a", [{ error: blocked }]), second]).generate(hello)).rejects.toBe(blocked);
    expect(second.calls).toEqual([]);
  });

  test("fallback() called without a runtime does not call the next model after the first part of an answer", async () => {
    const second = named("b", ["never"]);
    const model = fallback([named("a", [{ deltas: ["He"], error: down }]), second]);
    await expect(read(model.stream(hello))).rejects.toBe(down);
    expect(second.calls).toEqual([]);
    const early = fallback([named("a", [{ error: down }]), named("b", ["yes"])]);
    expect((await read(early.stream(hello))).map(({ type }) => type)).toEqual(["text_delta", "finish"]);
  });

  test("fallback() called without a runtime calls the next model for errors that `when` accepts, and throws the last error", async () => {
    const when = ({ kind }: { kind: string }) => kind === "content_blocked";
    const model = fallback(
      [named("a", [{ error: blocked }, { error: down }]), named("b", [{ error: reset }])],
      { when },
    );
    await expect(model.generate(hello)).rejects.toBe(reset);
    await expect(model.generate(hello)).rejects.toBe(down);
    expect(() => fallback([])).toThrow("pass at least one");
  });
});

describe("fallback() in a run", () => {
  test("B1, B3: fallback() in a run calls the next model at once and charges each model at its own price", async () => {
    const { runtime, events } = await setUp({ prices });
    const model = fallback([named("cheap", [{ error: down }]), named("dear", [{ text: "yes", usage }])]);
    const run = await runtime.submit(caller(model), null, { budget: { maxCostUsd: 1 } });
    const { output, costUsd, turns } = await run.result();
    expect({ output, costUsd, turns }).toEqual({ output: "dear", costUsd: 20e-4, turns: 1 });
    expect(ofType(await events(run.runId), "model_fallback").map(({ data }) => data)).toEqual([
      {
        from: { provider: "scripted", modelId: "cheap" },
        to: { provider: "scripted", modelId: "dear" },
        kind: "overloaded",
        message: "down",
      },
    ]);
  });

  test("B3: fallback() in a run charges an unreported call to the model that may have billed it", async () => {
    const { runtime, events } = await setUp({ prices });
    const model = fallback([named("dear", [{ error: reset }]), named("cheap", [{ text: "yes", usage }])]);
    const run = await runtime.submit(caller(model), null, { budget: { maxCostUsd: 1 } });
    const { costUsd } = await run.result();
    const [lost] = ofType(await events(run.runId), "budget_lost");
    expect(lost?.data.costUsd).toBeCloseTo((lost?.data.tokens ?? 0) * 1e-4, 9);
    expect(costUsd).toBeCloseTo((lost?.data.costUsd ?? 0) + 20e-6, 9);
  });

  test("B4: fallback() in a run stops at a model without a known price under a budget in dollars, and calls no other model", async () => {
    const { runtime } = await setUp({
      prices: { find: (query) => (query.modelId === "dear" ? null : prices.find(query)) },
    });
    const dear = named("dear", ["never"]);
    const model = fallback([named("cheap", [{ error: down }]), dear]);
    const run = await runtime.submit(caller(model), null, { budget: { maxCostUsd: 1 } });
    expect((await run.result()).error?.code).toBe("unknown_price");
    expect(dear.calls).toEqual([]);
  });

  test("fallback() in a run waits when all models have failed, then starts again with the first", async () => {
    const { runtime, clock } = await setUp({ retry: { baseDelayMs: 1_000 } });
    const auth = Object.assign(new Error("bad key"), { status: 401 });
    const one = named("a", [{ error: down }, "yes"]);
    const two = named("b", [{ error: auth }]);
    const run = await runtime.submit(caller(fallback([one, two])), null);
    await settle();
    expect([one.calls.length, two.calls.length]).toEqual([1, 1]);
    await clock.advance(1_000);
    expect((await run.result()).output).toBe("a");
    expect([one.calls.length, two.calls.length]).toEqual([2, 1]);
  });

  test("E2: fallback() in a run retries the same model after a pause if a part of its answer was already streamed", async () => {
    const { runtime, clock, events } = await setUp({ retry: { baseDelayMs: 1_000 } });
    const one = named("a", [{ error: down }]);
    const two = named("b", [{ deltas: ["He"], error: reset }, "yes"]);
    const run = await runtime.submit(caller(fallback([one, two, named("c", ["never"])])), null, {
      streaming: true,
    });
    await settle();
    await clock.advance(1_000);
    expect((await run.result()).output).toBe("b");
    expect([one.calls.length, two.calls.length]).toEqual([1, 2]);
    expect(ofType(await events(run.runId), "retry_start")).toHaveLength(1);
  });

  test("fallback() in a run neither retries nor charges a fault of Reeve itself", async () => {
    const { runtime, events } = await setUp({ prices });
    const missing = new Fault("dependency_missing", "npm install it");
    const next = named("b", ["never"]);
    const model = fallback([named("a", [{ error: missing }]), next]);
    const run = await runtime.submit(caller(model), null, { budget: { maxCostUsd: 1 } });
    const { error: failure, costUsd } = await run.result();
    expect({ code: failure?.code, costUsd, asked: next.calls.length }).toEqual({
      code: "dependency_missing",
      costUsd: 0,
      asked: 0,
    });
    expect(ofType(await events(run.runId), "retry_start")).toEqual([]);
  });

  test("fallback() in a run charges nothing for a server that was never reached", async () => {
    const { runtime } = await setUp({ prices });
    const refused = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
    const model = fallback([named("dear", [{ error: refused }]), named("cheap", [{ text: "yes", usage }])]);
    const run = await runtime.submit(caller(model), null, { budget: { maxCostUsd: 1 } });
    expect((await run.result()).costUsd).toBe(20e-6);
  });
});

describe("route()", () => {
  test("route() sends each request to the chosen model, by the request and the role of the call", async () => {
    const [cheap, dear] = [named("cheap", ["a", "b"]), named("dear", ["c"])];
    const model = route({
      models: { cheap, dear },
      choose: ({ messages }, { role }) => (role === "plan" || messages.length > 1 ? "dear" : "cheap"),
    });
    await model.generate(hello);
    const { runtime } = await setUp();
    expect((await (await runtime.submit(caller(model, "plan"), null)).result()).output).toBe("dear");
    expect([cheap.calls.length, dear.calls.length]).toEqual([1, 1]);
  });

  test("route() can be nested in fallback(), and fallback() in route()", async () => {
    const { runtime } = await setUp();
    const inner = route({
      models: { only: fallback([named("a", [{ error: down }]), named("b", [{ error: down }])]) },
      choose: () => "only",
    });
    const run = await runtime.submit(caller(fallback([inner, named("c", ["yes"])])), null);
    expect((await run.result()).output).toBe("c");
  });

  test("route() refuses a name that is not one of its models", async () => {
    const model = route({ models: { a: named("a", ["never"]) }, choose: () => "b" as "a" });
    await expect(model.generate(hello)).rejects.toThrow('choose of route() returned "b": return one of a');
    const { runtime } = await setUp();
    const { error: failure } = await (await runtime.submit(caller(model), null)).result();
    expect(failure?.code).toBe("invalid_argument");
  });
});

describe("withSettings()", () => {
  test("withSettings() adds its settings to every request that does not set them itself, even behind fallback()", async () => {
    const [one, two] = [named("a", [{ error: down }]), named("b", ["yes"])];
    const model = withSettings(fallback([one, two]), {
      maxOutputTokens: 500,
      temperature: 0.2,
      providerOptions: { acme: { effort: "high", cache: true } },
    });
    const { runtime } = await setUp();
    const code = agent(
      "caller",
      async (ctx) => {
        const { maxOutputTokens: _limit, ...rest } = request;
        const reply = await ctx.llm({
          ...rest,
          temperature: 1,
          providerOptions: { acme: { effort: "low" } },
        });
        return reply.model.modelId;
      },
      { models: { main: model } },
    );
    expect((await (await runtime.submit(code, null, { budget: { maxTokens: 1_000 } })).result()).output).toBe(
      "b",
    );
    expect(two.calls[0]).toMatchObject({
      maxOutputTokens: 500,
      temperature: 1,
      providerOptions: { acme: { effort: "low", cache: true } },
    });
  });

  test("withSettings() refuses limits that are not positive integers", () => {
    expect(() => withSettings(named("a", []), { maxOutputTokens: 0 })).toThrow(
      "invalid maxOutputTokens 0 of withSettings(): expected an integer from 1",
    );
  });
});

test("B1: withSettings() sends the output limit that was reserved under a cap, and no limit without a cap", async () => {
  const { runtime } = await setUp();
  const model = named("a", ["one", "two"]);
  const { maxOutputTokens: _limit, ...open } = request;
  const worker = agent("worker", async (ctx) => (await ctx.llm(open)).stopReason, {
    models: { main: model },
  });
  await (await runtime.submit(worker, null)).result();
  await (await runtime.submit(worker, null, { budget: { maxTokens: 100_000 } })).result();
  expect(model.calls.map(({ maxOutputTokens }) => maxOutputTokens)).toEqual([undefined, 8_192]);
});
