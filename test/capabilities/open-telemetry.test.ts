import { context, metrics, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
  type HistogramMetricData,
} from "@opentelemetry/sdk-metrics";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
} from "@opentelemetry/sdk-trace-base";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Agent, openRuntime, openTelemetry, tool } from "../../src/entries/index.ts";
import {
  Fault,
  Transcript,
  userMessage,
  type HostedAgent,
  type JsonValue,
  type RunContext,
  type Telemetry,
} from "../../src/kernel/index.ts";
import { MiddlewarePipeline, tracing, type TracingOptions } from "../../src/assembly/middleware.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { repository, runNode } from "../gates/run-node.ts";
import { agent, agentId, setUp, settle } from "../runtime/runtime-setup.ts";

const spans = new InMemorySpanExporter();
let measured: InMemoryMetricExporter;
let reader: PeriodicExportingMetricReader;

beforeEach(() => {
  spans.reset();
  measured = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  reader = new PeriodicExportingMetricReader({ exporter: measured, exportIntervalMillis: 2 ** 30 });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(
    new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }),
  );
  metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
});

afterEach(async () => {
  await reader.shutdown();
  for (const api of [context, trace, metrics]) api.disable();
});

const prices = { find: () => ({ inputUsd: 1e-3, outputUsd: 2e-3 }) };
const usage = { inputTokens: 100, outputTokens: 10, cacheReadTokens: 40 };

async function run(worker: HostedAgent, input: JsonValue = "go", streaming = false) {
  const runtime = await openRuntime({ prices });
  const handle = await runtime.submit(worker, input, { streaming, tenantId: "acme" });
  const result = await handle.result();
  const events: string[] = [];
  for await (const event of handle.events()) events.push(event.type);
  await runtime.close();
  return { result, events };
}

function named(name: string): ReadableSpan {
  const found = spans.getFinishedSpans().filter((span) => span.name === name);
  expect(found).toHaveLength(1);
  return found[0] as ReadableSpan;
}

function parentOf(span: ReadableSpan): string | undefined {
  const { parentSpanContext } = span;
  return spans.getFinishedSpans().find((other) => other.spanContext().spanId === parentSpanContext?.spanId)
    ?.name;
}

/** Runs a lead whose tool spawns a scout. */
async function company(options: Partial<TracingOptions> = {}) {
  const telemetry = await openTelemetry();
  const middleware = [tracing({ telemetry, prices, ...options })];
  const scout = new Agent({ name: "scout", model: scriptedModel([{ text: "rain", usage }]), middleware });
  const hire = tool({
    name: "hire",
    description: "Has the scout look",
    inputSchema: { type: "object" },
    execute: async (_input, { ctx }) => {
      trace.getTracer("test").startSpan("GET weather").end();
      const spawned = await ctx.spawn(agentId("scout"), "look");
      if (spawned.kind !== "spawned") return "no seat free";
      return (await ctx.join(spawned.handle)).output;
    },
  });
  const model = scriptedModel(
    [
      { toolCalls: [{ name: "hire", input: {} }], usage },
      { text: "It rains.", usage },
    ],
    {
      modelId: "big",
    },
  );
  return new Agent({ name: "lead", model, tools: [hire], middleware, subAgents: [scout] });
}

describe("openTelemetry() spans with the real SDK", () => {
  test.for([false, true])(
    "openTelemetry() spans with the real SDK are nested across agents (streaming: %s)",
    async (streaming) => {
      const { result } = await run(await company(), "go", streaming);
      expect(result.output).toBe("It rains.");
      const tree = spans.getFinishedSpans().map((span) => `${parentOf(span) ?? "-"} > ${span.name}`);
      expect(tree.toSorted()).toEqual([
        "- > invoke_agent lead",
        "execute_tool hire > GET weather",
        "invoke_agent lead > chat big",
        "invoke_agent lead > chat big",
        "invoke_agent lead > execute_tool hire",
        "invoke_agent lead > invoke_agent scout",
        "invoke_agent scout > chat script",
      ]);
      expect(new Set(spans.getFinishedSpans().map((span) => span.spanContext().traceId)).size).toBe(1);
    },
  );

  test("openTelemetry() puts the spans of a child below the task that spawned it, even with two running tasks of one agent", async () => {
    const telemetry = await openTelemetry();
    const middleware = [tracing({ telemetry })];
    const hires = (name: string, target: string) =>
      tool({
        name,
        description: name,
        inputSchema: { type: "object" },
        execute: async (_input, { ctx, callId }) => {
          const spawned = await ctx.spawn(agentId(target), callId);
          return spawned.kind === "spawned" ? (await ctx.join(spawned.handle)).output : "no seat free";
        },
      });
    const two = (name: string) => ({
      toolCalls: ["a", "b"].map((callId) => ({ name, input: {}, callId: `${name}-${callId}` })),
    });
    const scout = new Agent({ name: "scout", model: scriptedModel(["x", "x", "x", "x"]), middleware });
    const chief = new Agent({
      name: "chief",
      model: scriptedModel([two("scout"), two("scout"), "y", "y"]),
      tools: [hires("scout", "scout")],
      middleware,
      subAgents: [scout],
    });
    const lead = new Agent({
      name: "lead",
      model: scriptedModel([two("chief"), "z"]),
      tools: [hires("chief", "chief")],
      middleware,
      subAgents: [chief, scout],
    });
    const { result } = await run(lead);
    expect(result.status).toBe("completed");
    const idsOf = (name: string) =>
      spans.getFinishedSpans().filter((span) => span.name === `invoke_agent ${name}`);
    const chiefs = idsOf("chief").map((span) => span.spanContext().spanId);
    const above = idsOf("scout").map((span) => span.parentSpanContext?.spanId ?? "");
    expect(above.toSorted()).toEqual([...chiefs, ...chiefs].toSorted());
  });

  test("openTelemetry() ends the spans of a task that is dropped while it waits, and the next owner starts new ones", async () => {
    const telemetry = await openTelemetry();
    const wait = tool({
      name: "wait",
      description: "Waits",
      inputSchema: { type: "object" },
      suspends: true,
      execute: async (_input, { ctx }) => (await ctx.waitForSignal("go")) ?? null,
    });
    const model = scriptedModel([{ toolCalls: [{ name: "wait", input: {} }] }, "done"]);
    const scout = new Agent({ name: "scout", model, tools: [wait], middleware: [tracing({ telemetry })] });
    const { runtime, open } = await setUp({ unknownPrice: "ignore" });
    const { runId } = await runtime.submit(scout, "go");
    await settle();
    await runtime.close();
    const statuses = () =>
      spans
        .getFinishedSpans()
        .filter(({ name }) => name === "invoke_agent scout")
        .map(({ attributes }) => attributes["reeve.status"]);
    expect(statuses()).toEqual(["suspended"]);
    const second = await open();
    second.register(scout);
    const handle = await second.find(runId);
    await handle?.signal("go", 7);
    expect((await handle?.result())?.output).toBe("done");
    expect(statuses()).toEqual(["suspended", "completed"]);
  });

  test("openTelemetry() spans with the real SDK do not contain a key that an error quotes", async () => {
    const telemetry = await openTelemetry();
    const key = "sk-proj-4f9Ab3kQ2mZ8xY7wV6uT5sR4";
    const look = tool({
      name: "look",
      description: "Looks",
      inputSchema: { type: "object" },
      execute: () => {
        throw new Error(`refused: ${key}`);
      },
    });
    const model = scriptedModel([{ toolCalls: [{ name: "look", input: {} }] }, "done"]);
    await run(new Agent({ name: "scout", model, tools: [look], middleware: [tracing({ telemetry })] }));
    const { events, status } = named("execute_tool look");
    expect(JSON.stringify([events, status])).toContain("refused: [secret]");
    expect(JSON.stringify([events, status])).not.toContain(key);
  });

  test("openTelemetry() spans carry the attribute names of the GenAI conventions, each with the agent's name", async () => {
    const { result } = await run(await company());
    expect(named("invoke_agent scout").attributes).toMatchObject({
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.agent.name": "scout",
      "gen_ai.agent.id": "scout",
      "gen_ai.conversation.id": result.sessionId,
      "reeve.run.id": result.runId,
      "reeve.tenant.id": "acme",
      "reeve.status": "completed",
    });
    expect(named("chat script")).toMatchObject({
      kind: 2,
      attributes: {
        "gen_ai.operation.name": "chat",
        "gen_ai.agent.name": "scout",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "script",
        "gen_ai.request.stream": false,
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 10,
        "gen_ai.usage.cache_read.input_tokens": 40,
        "reeve.cost_usd": expect.closeTo(0.12),
      },
    });
    expect(named("execute_tool hire").attributes).toMatchObject({
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.agent.name": "lead",
      "gen_ai.tool.name": "hire",
      "gen_ai.tool.type": "function",
      "gen_ai.tool.call.id": expect.any(String),
    });
    expect(JSON.stringify(spans.getFinishedSpans().map(({ attributes }) => attributes))).not.toContain(
      "rain",
    );
  });

  test("openTelemetry() spans have the costs at the prices of the runtime, also with the option telemetry of an agent", async () => {
    const telemetry = await openTelemetry();
    const script = scriptedModel([{ text: "rain", usage }]);
    const { result } = await run(new Agent({ name: "scout", model: script, telemetry }));
    expect(result.costUsd).toBeCloseTo(0.12);
    for (const name of ["invoke_agent scout", "chat script"])
      expect(named(name).attributes["reeve.cost_usd"]).toBeCloseTo(0.12);
  });

  test("openTelemetry() spans contain the messages if the option is set", async () => {
    await run(await company({ content: true }));
    expect(named("chat script").attributes["gen_ai.output.messages"]).toContain("rain");
    expect(named("execute_tool hire").attributes["gen_ai.tool.call.result"]).toContain("rain");
  });

  test("openTelemetry() spans record an error with its type and message", async () => {
    const telemetry = await openTelemetry();
    const model = scriptedModel([{ error: Object.assign(new Error("bad key"), { status: 401 }) }]);
    await run(new Agent({ name: "scout", model, middleware: [tracing({ telemetry })] }));
    for (const name of ["chat script", "invoke_agent scout"]) {
      expect(named(name)).toMatchObject({
        status: { code: 2, message: "scripted/script failed with HTTP 401: bad key" },
        attributes: { "error.type": "model_auth" },
      });
    }
  });
});

describe("openTelemetry() metrics with the real SDK", () => {
  test("openTelemetry() metrics count tokens, cost and durations by agent and model", async () => {
    await run(await company());
    await reader.forceFlush();
    const all = measured
      .getMetrics()
      .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics));
    const of = (name: string) => all.find(({ descriptor }) => descriptor.name === name);
    const tokens = of("gen_ai.client.token.usage") as HistogramMetricData;
    const sums = tokens.dataPoints.map(({ attributes, value }) => [
      attributes["gen_ai.agent.name"],
      attributes["gen_ai.token.type"],
      value.sum,
    ]);
    expect(sums.toSorted((one, other) => (String(one) < String(other) ? -1 : 1))).toEqual([
      ["lead", "input", 200],
      ["lead", "output", 20],
      ["scout", "input", 100],
      ["scout", "output", 10],
    ]);
    expect(tokens.descriptor.unit).toBe("{token}");
    expect(tokens.dataPoints[0]?.value.buckets.boundaries.slice(0, 3)).toEqual([1, 4, 16]);
    const costs = of("reeve.client.cost")?.dataPoints.map(({ value }) => value as number) ?? [];
    expect(costs.reduce((sum, value) => sum + value, 0)).toBeCloseTo(0.36);
    const counts = [
      "gen_ai.invoke_agent.duration",
      "gen_ai.client.operation.duration",
      "gen_ai.execute_tool.duration",
    ].map((name) =>
      (of(name) as HistogramMetricData).dataPoints.reduce((sum, { value }) => sum + value.count, 0),
    );
    expect(counts).toEqual([2, 3, 1]);
  });
});

describe("telemetry never affects the run", () => {
  const angry: Telemetry = {
    startSpan: () => ({
      set: () => {
        throw new Error("set");
      },
      fail: () => {
        throw new Error("fail");
      },
      end: () => {
        throw new Error("end");
      },
      during: () => {
        throw new Error("during");
      },
    }),
    count: () => {
      throw new Error("count");
    },
    measure: () => {
      throw new Error("measure");
    },
  };
  const deaf: Telemetry = {
    ...angry,
    startSpan: () => {
      throw new Error("start");
    },
  };

  test.for([angry, deaf])(
    "telemetry that throws at every call is reported once in the log, and the run continues",
    async (telemetry) => {
      const { result, events } = await run(await company({ telemetry }));
      expect(result).toMatchObject({ status: "completed", output: "It rains." });
      expect(events.filter((type) => type === "hook_error")).toHaveLength(1);
    },
  );

  test("a span of a custom telemetry that ignores the result of its body throws the error of the body once", async () => {
    const calls: string[] = [];
    const layer = {
      chat: async () => {
        calls.push("called");
        throw new Fault("permission_denied", "mine");
      },
    };
    const telemetry = deaf;
    const worker = new Agent({
      name: "scout",
      model: scriptedModel(["hi"]),
      middleware: [tracing({ telemetry }), layer],
    });
    expect((await run(worker)).result.error).toMatchObject({ message: "mine" });
    expect(calls).toEqual(["called"]);
  });

  test("openTelemetry() records nothing without an SDK", async () => {
    for (const api of [context, trace, metrics]) api.disable();
    expect((await run(await company())).result.output).toBe("It rains.");
    expect(spans.getFinishedSpans()).toEqual([]);
  });

  test("J7: a recorded call makes no second telemetry span when another worker replays it", async () => {
    const telemetry = await openTelemetry();
    const callPath = new MiddlewarePipeline([tracing({ telemetry })]).callPath() ?? {};
    const models = { main: scriptedModel(["hi"]) };
    const code = async (ctx: RunContext) => {
      await ctx.llm({ transcript: Transcript.of([userMessage("hello")]) });
      return (await ctx.waitForSignal("go")) ?? null;
    };
    const worker = agent("worker", code, { models, callPath });
    const { runtime, open } = await setUp({ unknownPrice: "ignore" });
    const { runId } = await runtime.submit(worker, null);
    await settle();
    await runtime.close();
    const second = await open();
    second.register(worker);
    const handle = await second.find(runId);
    await handle?.signal("go", 7);
    expect((await handle?.result())?.output).toBe(7);
    expect(named("chat script").attributes["gen_ai.agent.name"]).toBe("worker");
  });
});

describe("openTelemetry() without the package", () => {
  const without = `
    import { registerHooks } from "node:module";
    registerHooks({
      resolve(specifier, context, next) {
        if (!specifier.startsWith("@opentelemetry/")) return next(specifier, context);
        throw Object.assign(new Error("Cannot find package"), { code: "ERR_MODULE_NOT_FOUND" });
      },
    });
    const { openTelemetry } = await import("./src/entries/index.ts");
  `;

  async function evaluate(source: string) {
    return runNode(["--input-type=module", "--eval", without + source], repository);
  }

  test("openTelemetry() without the package says what to install when it is called, not when it is imported", async () => {
    const { stdout, code } = await evaluate(
      `await openTelemetry().catch(({ code, message }) => process.stdout.write(code + " " + message));`,
    );
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^dependency_missing .*npm install @opentelemetry\/api/u),
    });
  });

  test('openTelemetry() records nothing with `ifMissing: "ignore"`', async () => {
    const { stdout } = await evaluate(`
      const telemetry = await openTelemetry({ ifMissing: "ignore" });
      process.stdout.write(telemetry.startSpan("x").during(() => "quiet"));
    `);
    expect(stdout).toBe("quiet");
  });
});
