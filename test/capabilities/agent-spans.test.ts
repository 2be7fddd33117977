import { context, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
} from "@opentelemetry/sdk-trace-base";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Agent, openRuntime, openTelemetry, tool } from "../../src/entries/index.ts";
import type { JsonValue, RunResult } from "../../src/kernel/index.ts";
import { tracing, type Layer } from "../../src/assembly/middleware.ts";
import { scriptedModel } from "../../src/testing/index.ts";

const spans = new InMemorySpanExporter();

beforeEach(() => {
  spans.reset();
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(
    new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }),
  );
});

afterEach(() => {
  for (const api of [context, trace]) api.disable();
});

const prices = { find: () => ({ inputUsd: 1e-3, outputUsd: 2e-3 }) };
const usage = { inputTokens: 100, outputTokens: 10, cacheReadTokens: 40 };

async function run(agent: Agent): Promise<{ readonly result: RunResult<JsonValue> }> {
  const runtime = await openRuntime({ prices });
  const handle = await runtime.submit(agent, "go");
  const result = await handle.result();
  await runtime.close();
  return { result };
}

function named(name: string): ReadableSpan {
  const found = spans.getFinishedSpans().filter((span) => span.name === name);
  expect(found).toHaveLength(1);
  return found[0] as ReadableSpan;
}

function parentOf({ parentSpanContext }: ReadableSpan): string | undefined {
  return spans.getFinishedSpans().find((other) => other.spanContext().spanId === parentSpanContext?.spanId)
    ?.name;
}

describe("spans of an agent", () => {
  test("the span invoke_agent describes the agent and its model, and sums the tokens of the agent's own calls", async () => {
    const telemetry = await openTelemetry();
    const middleware = [tracing({ telemetry, prices })];
    const scout = new Agent({ name: "scout", model: scriptedModel([{ text: "rain", usage }]), middleware });
    const lead = new Agent({
      name: "lead",
      description: "Leads the others",
      version: "7",
      model: scriptedModel(
        [
          { toolCalls: [{ name: "handoff_scout", input: { task: "look" } }], usage },
          { text: "It rains.", usage },
        ],
        { modelId: "big" },
      ),
      middleware,
      subAgents: [{ agent: scout }],
    });
    const { result } = await run(lead);
    expect(named("invoke_agent lead")).toMatchObject({
      kind: 0,
      attributes: {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "big",
        "gen_ai.agent.id": "lead",
        "gen_ai.agent.name": "lead",
        "gen_ai.agent.description": "Leads the others",
        "gen_ai.agent.version": "7",
        "gen_ai.conversation.id": result.sessionId,
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": 200,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.usage.cache_read.input_tokens": 80,
        "reeve.cost_usd": expect.closeTo(0.24),
      },
    });
    expect(named("invoke_agent scout").attributes).toMatchObject({ "gen_ai.usage.input_tokens": 100 });
    expect(named("invoke_agent scout").attributes).not.toHaveProperty("error.type");
  });

  test("the spans of an agent keep their attributes if the call fails", async () => {
    const telemetry = await openTelemetry();
    const failing = tool({
      name: "dig",
      description: "Digs",
      inputSchema: { type: "object" },
      execute: () => {
        throw new Error("rock");
      },
    });
    const model = scriptedModel([
      { toolCalls: [{ name: "dig", input: { deep: true } }], usage },
      { error: Object.assign(new Error("bad key"), { status: 401 }) },
    ]);
    const settings: Layer = {
      name: "settings",
      chat: async (call, next) => {
        call.request = {
          ...call.request,
          temperature: 0.5,
          maxOutputTokens: 99,
          stopSequences: ["END"],
        };
        await next();
      },
    };
    const middleware = [settings, tracing({ telemetry, content: true })];
    const { result } = await run(
      new Agent({ name: "scout", instructions: "Dig.", model, tools: [failing], middleware }),
    );
    expect(result.status).toBe("failed");
    expect(named("execute_tool dig").attributes).toMatchObject({
      "error.type": "tool_failed",
      "gen_ai.tool.call.id": expect.any(String),
      "gen_ai.tool.type": "function",
      "gen_ai.tool.description": "Digs",
      "gen_ai.tool.call.arguments": '{"deep":true}',
    });
    const failed = spans
      .getFinishedSpans()
      .find(({ attributes }) => attributes["error.type"] === "model_auth");
    expect(failed).toMatchObject({
      name: "chat script",
      attributes: {
        "gen_ai.request.model": "script",
        "gen_ai.request.stream": false,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 99,
        "gen_ai.request.stop_sequences": ["END"],
        "gen_ai.system_instructions": JSON.stringify([{ type: "text", content: "Dig." }]),
        "gen_ai.input.messages": expect.stringContaining("go") as string,
      },
    });
    expect(named("invoke_agent scout").attributes).toMatchObject({
      "error.type": "model_auth",
      "gen_ai.request.model": "script",
      "gen_ai.usage.input_tokens": 100,
    });
  });

  test("the option telemetry of an agent makes each span once, also together with the middleware tracing", async () => {
    const telemetry = await openTelemetry();
    const scout = (middleware: readonly Layer[]): Agent =>
      new Agent({ name: "scout", model: scriptedModel(["rain"]), telemetry, middleware });
    for (const middleware of [[], [tracing({ telemetry })]]) {
      spans.reset();
      await run(scout(middleware));
      const tree = spans.getFinishedSpans().map((span) => `${parentOf(span) ?? "-"} > ${span.name}`);
      expect(tree).toEqual(["invoke_agent scout > chat script", "- > invoke_agent scout"]);
    }
  });
});
