import { describe, expect, it } from "vitest";
import { fallback } from "../../../src/entries/index.ts";
import { Transcript, userMessage, type LlmRequest, type Model } from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { agent, setUp, settle } from "../runtime-setup.ts";

const request: LlmRequest = { transcript: Transcript.of([userMessage("hello")]), maxOutputTokens: 100 };

function httpError(status: number, message: string): Error {
  return Object.assign(new Error(message), { status });
}

function caller(model: Model) {
  return agent("caller", async (ctx) => (await ctx.llm(request)).stopReason, { models: { main: model } });
}

describe("the error of a run whose model call failed", () => {
  it("the error of a run whose model call failed names the provider, the model and the HTTP status", async () => {
    const { runtime, events } = await setUp();
    const model = scriptedModel([{ error: httpError(401, "Incorrect API key provided") }]);
    const run = await runtime.submit(caller(model), null);
    const { error, interruptionReason } = await run.result();
    const message = "scripted/script failed with HTTP 401: Incorrect API key provided";
    expect(error).toMatchObject({
      code: "model_auth",
      message,
      details: { provider: "scripted", modelId: "script", status: 401 },
    });
    expect(interruptionReason).toBe(message);
    const shown = (await events(run.runId)).find(({ type }) => type === "agent_error");
    expect(shown).toMatchObject({ data: { failure: { message } } });
  });

  it("the error of a run whose model call failed names no status if the provider was not reached", async () => {
    const { runtime } = await setUp({ retry: { enabled: false } });
    const refused = Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:9"), { code: "ECONNREFUSED" });
    const run = await runtime.submit(caller(scriptedModel([{ error: refused }])), null);
    expect((await run.result()).error?.message).toBe(
      "scripted/script failed: connect ECONNREFUSED 127.0.0.1:9",
    );
  });

  it("the error of a run whose model call failed names the model that was called, if it is a fallback of the agent's model", async () => {
    const { runtime } = await setUp({ retry: { enabled: false } });
    const first = scriptedModel([{ error: httpError(401, "Incorrect API key provided") }], {
      modelId: "first",
    });
    const second = scriptedModel([{ error: httpError(503, "no capacity") }], { modelId: "second" });
    const run = await runtime.submit(caller(fallback([first, second])), null);
    expect((await run.result()).error?.message).toBe("scripted/second failed with HTTP 503: no capacity");
  });

  it("the error of a run whose model call failed names the model if the answer was withheld", async () => {
    const { runtime } = await setUp();
    const model = scriptedModel([{ text: "no", stopReason: "content_blocked" }]);
    const run = await runtime.submit(caller(model), null);
    expect((await run.result()).error).toMatchObject({
      code: "model_content_blocked",
      message: expect.stringMatching(/^scripted\/script withheld the answer/u) as unknown,
      details: { provider: "scripted", modelId: "script" },
    });
  });

  it("the event retry_start has the provider, the model and the HTTP status of the failed model call", async () => {
    const { runtime, clock, events } = await setUp({ retry: { baseDelayMs: 10 } });
    const model = scriptedModel([{ error: httpError(503, "no capacity") }, "hello"]);
    const run = await runtime.submit(caller(model), null);
    await settle();
    await clock.advance(10);
    await run.result();
    const retry = (await events(run.runId)).find(({ type }) => type === "retry_start");
    expect(retry).toMatchObject({ data: { message: "scripted/script failed with HTTP 503: no capacity" } });
  });
});

describe("a deadline that passes after a failed attempt of a model", () => {
  it.each([
    { when: "while the run waits for the next attempt", delayMs: 60_000 },
    { when: "while the next attempt is in flight", delayMs: 10 },
  ])(
    "a deadline that passes after a failed attempt of a model names the last error, $when",
    async ({ delayMs }) => {
      const { runtime, clock } = await setUp({ retry: { baseDelayMs: delayMs } });
      const script = [{ error: httpError(503, "no capacity") }, { text: "late", delayMs: 60_000 }];
      const model = scriptedModel(script, { clock });
      const run = await runtime.submit(caller(model), null, { budget: { deadlineMs: 1_000 } });
      await settle();
      await clock.advance(20);
      await clock.advance(1_000);
      await clock.advance(10_000);
      const { status, interruptionReason } = await run.result();
      expect({ status, interruptionReason }).toEqual({
        status: "deadline_exceeded",
        interruptionReason:
          "deadline exceeded; the last error was: scripted/script failed with HTTP 503: no capacity",
      });
    },
  );
});
