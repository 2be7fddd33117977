import { expect, onTestFinished, test } from "vitest";
import {
  Transcript,
  userMessage,
  type ChatMiddleware,
  type JsonValue,
  type Model,
} from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { agent } from "../runtime-setup.ts";
import { newPath } from "../stores/sqlite/store-files.ts";

function deep(levels: number): JsonValue {
  let value: JsonValue = 0;
  for (let level = 0; level < levels; level++) value = [value];
  return value;
}

/** A model that an application has written. */
function modelOf(part: { readonly input?: JsonValue; readonly providerMetadata?: JsonValue }): Model {
  const call = { type: "tool_call", callId: "c", toolName: "t", input: {}, ...part };
  return {
    provider: "own",
    modelId: "deep",
    generate: async () => ({
      message: { role: "assistant", content: [call] },
      stopReason: "tool_calls",
      usage: { inputTokens: 1, outputTokens: 1 },
    }),
  } as unknown as Model;
}

test.each([
  ["arguments", { input: deep(5_000) }],
  ["metadata", { providerMetadata: { own: deep(5_000) } }],
])("a model reply with deep %s fails its call, and the run ends", async (_what, part) => {
  const runtime = await createRuntime({ store: `sqlite:${await newPath()}`, onError: () => undefined });
  onTestFinished(() => runtime.close());
  const request = { transcript: Transcript.of([userMessage("hello")]), maxOutputTokens: 20 };
  const caller = agent("caller", async (ctx) => (await ctx.llm(request)).stopReason, {
    models: { main: modelOf(part) },
  });
  const run = await runtime.submit(caller, null);
  const { status, error } = await run.result();
  expect(status).toBe("failed");
  expect(error).toMatchObject({
    code: "not_json",
    message: expect.stringContaining("the reply of the model is nested deeper than 1000 levels"),
  });
  // The call is charged with what the model reported.
  const { ledger } = await run.snapshot();
  expect(ledger.accounts).toMatchObject({ t0: { spent: { tokens: 2 } } });
});

test("a deeply nested reply that middleware makes fails its call, and the run ends", async () => {
  const runtime = await createRuntime({ store: `sqlite:${await newPath()}`, onError: () => undefined });
  onTestFinished(() => runtime.close());
  const request = { transcript: Transcript.of([userMessage("hello")]), maxOutputTokens: 20 };
  const deepens: ChatMiddleware = {
    process: async (context, next) => {
      await next();
      context.result = await modelOf({ input: deep(5_000) }).generate(context.request);
    },
  };
  const caller = agent("caller", async (ctx) => (await ctx.llm(request)).stopReason, {
    models: { main: modelOf({}) },
    callPath: { model: { around: deepens } },
  });
  const { status, error } = await (await runtime.submit(caller, null)).result();
  expect([status, error]).toMatchObject(["failed", { code: "not_json" }]);
});
