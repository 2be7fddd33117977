import { expect, onTestFinished, test } from "vitest";
import { Agent, OrchestratorAgent, openRuntime, tool } from "../../../src/entries/index.ts";
import { workflow } from "../../../src/entries/workflow.ts";
import type { Store } from "../../../src/kernel/index.ts";
import { memoryStore } from "../../../src/runtime/index.ts";
import { observedStore } from "../../../src/surfaces/cli/setup/observed-store.ts";
import { ExportedRuns, traceIdOf } from "../../../src/surfaces/cli/setup/telemetry/exported-runs.ts";
import type { OtlpExporter, SpanPlace } from "../../../src/surfaces/cli/setup/telemetry/otlp-exporter.ts";
import type { RunSpan } from "../../../src/surfaces/cli/setup/telemetry/run-spans.ts";
import { scriptedModel } from "../../../src/testing/index.ts";

type Exported = RunSpan & SpanPlace;

/** Keeps what is exported. Several processes may share one. */
class Recorder implements OtlpExporter {
  readonly spans: Exported[] = [];
  readonly measured: RunSpan[] = [];
  readonly errors: unknown[] = [];
  isSampled(): boolean {
    return true;
  }
  addSpan(span: RunSpan, place: SpanPlace): void {
    this.spans.push({ ...span, ...place });
  }
  measure(span: RunSpan): void {
    this.measured.push(span);
  }
  flushSoon(): void {}
  async close(): Promise<void> {}

  /** The spans as lines, each indented below its parent. A failure follows in parentheses. */
  tree(parentSpanId?: string, depth = 0): readonly string[] {
    return this.spans
      .filter((span) => span.parentSpanId === parentSpanId)
      .toSorted((one, other) => one.startAt - other.startAt)
      .flatMap(({ name, error, spanId }) => [
        "  ".repeat(depth) + name + (error === undefined ? "" : ` (${error.type})`),
        ...this.tree(spanId, depth + 1),
      ]);
  }
}

/** A runtime whose runs are exported, as in a process of its own. */
async function exporting(recorder: Recorder, store: Store = memoryStore()) {
  const runs = new ExportedRuns({
    store,
    exporter: recorder,
    hasContent: false,
    repeatMs: 1_000,
    onError: (error) => recorder.errors.push(error),
  });
  const runtime = await openRuntime({ store: observedStore(store, runs) });
  const stop = async (): Promise<void> => {
    await runtime.close();
    await runs.close();
  };
  onTestFinished(stop);
  return { runtime, store, runs, stop };
}

test("the spans of a child agent are below those of the agent that called it", async () => {
  const recorder = new Recorder();
  const { runtime, stop } = await exporting(recorder);
  const kid = new Agent({ name: "kid", model: scriptedModel(["It rains."]) });
  const toolCalls = [{ name: "handoff_kid", input: { task: "Look." } }];
  const lead = new OrchestratorAgent({
    name: "lead",
    model: scriptedModel([{ toolCalls }, "Rain."]),
    subAgents: [kid],
  });
  const run = await runtime.submit(lead, "Weather?");
  expect(await run.result()).toMatchObject({ status: "completed" });
  await stop();
  expect(recorder.tree()).toEqual([
    "invoke_agent lead",
    "  chat script",
    "  execute_tool handoff_kid",
    "  invoke_agent kid",
    "    chat script",
    "  chat script",
  ]);
});

test("a workflow, its steps, timers and signals, and the runs that it starts are one trace", async () => {
  const recorder = new Recorder();
  const { runtime, stop } = await exporting(recorder);
  const agent = new Agent({ name: "poet", model: scriptedModel(["A poem."]) });
  const leaf = workflow("leaf", async (ctx) => ctx.step("inner", async () => 1));
  const middle = workflow("middle", { agents: [leaf] }, async (ctx) => ctx.call(leaf, null));
  const top = workflow("top", { agents: [agent, middle] }, async (ctx) => {
    await ctx.step("outer", async () => 1);
    await ctx.sleep(5);
    await ctx.waitForSignal("go");
    await ctx.agent(agent, "Write.");
    return await ctx.call(middle, null);
  });
  const run = await runtime.start(top, null);
  await expect.poll(async () => (await run.summary()).waitsFor).toEqual(["signal"]);
  await run.signal("go");
  expect(await run.result()).toMatchObject({ status: "completed" });
  await stop();
  expect(recorder.errors).toEqual([]);
  expect(new Set(recorder.spans.map(({ traceId }) => traceId))).toEqual(new Set([traceIdOf(run.runId)]));
  expect(recorder.tree()).toEqual([
    "invoke_workflow top",
    "  step outer",
    "  wait",
    "  wait",
    "  invoke_agent poet",
    "    chat script",
    "  wait",
    "  invoke_workflow middle",
    "    wait",
    "    invoke_workflow leaf",
    "      step inner",
  ]);
  const waits = recorder.spans.filter(({ name }) => name === "wait");
  expect(waits.map(({ attributes }) => attributes["reeve.wait.for"])).toEqual(
    expect.arrayContaining([["time"], ["signal go"], [expect.stringMatching(/^run run_/u)]]),
  );
});

test("failed attempts, failed tools and failed tasks are errors with their kind", async () => {
  const recorder = new Recorder();
  const { runtime, stop } = await exporting(recorder);
  const broken = tool({
    name: "broken",
    description: "Fails.",
    inputSchema: { type: "object" },
    execute: async () => {
      throw new Error("no lamp");
    },
  });
  const overloaded = { error: Object.assign(new Error("overloaded"), { statusCode: 529 }) };
  const model = scriptedModel([
    overloaded,
    { toolCalls: [{ name: "broken", input: {} }] },
    { error: Object.assign(new Error("no"), { statusCode: 400 }) },
  ]);
  const agent = new Agent({ name: "unlucky", model, tools: [broken], retry: { baseDelayMs: 1 } });
  const run = await runtime.submit(agent, "Go.");
  expect(await run.result()).toMatchObject({ status: "failed" });
  await stop();
  expect(recorder.tree()).toEqual([
    "invoke_agent unlucky (model_format_error)",
    "  chat script (overloaded)",
    "  chat script",
    "  execute_tool broken (tool_failed)",
    "  chat script (model_format_error)",
  ]);
  expect(recorder.spans.find(({ error }) => error?.type === "overloaded")).toMatchObject({
    error: { message: expect.stringContaining("overloaded") },
    attributes: { "error.type": "overloaded", "gen_ai.provider.name": "scripted" },
  });
});

test("a run that waits and is continued elsewhere is exported once, under one trace", async () => {
  const recorder = new Recorder();
  const store = memoryStore();
  const asks = workflow("asks", async (ctx) => {
    await ctx.step("first", async () => 1);
    await ctx.waitForSignal("go");
    await ctx.step("second", async () => 2);
  });
  const one = await exporting(recorder, store);
  const run = await one.runtime.start(asks, null);
  await expect.poll(async () => (await run.snapshot()).status).toBe("waiting");
  await one.stop();
  expect(recorder.spans.map(({ name }) => name)).toEqual(["step first"]);
  const two = await exporting(recorder, store);
  two.runtime.register(asks);
  const found = await two.runtime.find(run.runId);
  await found?.signal("go");
  expect(await found?.result()).toMatchObject({ status: "completed" });
  await two.stop();
  expect(recorder.tree()).toEqual(["invoke_workflow asks", "  step first", "  wait", "  step second"]);
  expect(new Set(recorder.spans.map(({ spanId }) => spanId)).size).toBe(recorder.spans.length);
});

test("a fork has a trace of its own, without the spans of its origin", async () => {
  const recorder = new Recorder();
  const { runtime, stop } = await exporting(recorder);
  const agent = new Agent({ name: "poet", model: scriptedModel(["One.", "Two."]) });
  const origin = await runtime.submit(agent, "Write.");
  await origin.result();
  let at = 0;
  for await (const event of origin.events()) if (event.type === "message_start") at = event.seq;
  const fork = await origin.fork({ at });
  expect(await fork.result()).toMatchObject({ output: "Two." });
  await stop();
  const own = recorder.spans.filter(({ traceId }) => traceId === traceIdOf(fork.runId));
  expect(own.map(({ name }) => name).toSorted()).toEqual(["chat script", "invoke_agent poet"]);
});
