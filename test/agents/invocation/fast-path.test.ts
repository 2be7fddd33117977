import { describe, expect, test, vi } from "vitest";
import { react } from "../../../src/agents/architectures/index.ts";
import {
  Agent,
  memoryStore,
  openRuntime,
  sha256,
  slidingWindow,
  tool,
  type AgentOptions,
} from "../../../src/entries/index.ts";
import {
  type HostedAgent,
  type Architecture,
  type CallPath,
  type CompactionStrategy,
  type GatedCall,
  type GuardrailDecision,
  type HookRegistry,
  type Permissions,
  type Telemetry,
  type ToolPipeline,
  type ToolResult,
} from "../../../src/kernel/index.ts";
import {
  auditLogger,
  cache,
  contentTruncator,
  fileValidator,
  historyTruncator,
  injectionMarking,
  MiddlewarePipeline,
  modelFallback,
  piiRedaction,
  rateLimiter,
  retry,
  schemaValidator,
  tracing,
  type Layer,
  type Stage,
} from "../../../src/assembly/middleware.ts";
import { scriptedModel } from "../../../src/testing/index.ts";

/** Number of middleware handlers that a run of two model calls and one tool call passes, per level. */
interface Passed {
  readonly agent: number;
  readonly chat: number;
  readonly function: number;
}

const look = tool({
  name: "look",
  description: "Looks",
  inputSchema: { type: "object", properties: {} },
  execute: () => "rain",
});
const script = () => scriptedModel([{ toolCalls: [{ name: "look", input: {} }] }, '{"rain":true}']);

/** Returns the agent without its call path, so that a test can set one. */
function withoutPath(agent: Agent): HostedAgent {
  const { id, models, tools, budget } = agent;
  return {
    id,
    models,
    tools,
    budget,
    messageOf: (input) => agent.messageOf(input),
    run: (ctx, inbox) => agent.run(ctx, inbox),
  };
}

/** Runs an agent with the middleware and counts the calls of each handler. */
async function passes(middleware: readonly Layer[]): Promise<Passed> {
  const passed = { agent: 0, chat: 0, function: 0 };
  const counted = <Context>(level: keyof Passed, stage: Stage<Context> | undefined) =>
    stage && {
      [level]: (context: Context, next: () => Promise<void>) => {
        passed[level]++;
        return typeof stage === "function" ? stage(context, next) : stage.process(context, next);
      },
    };
  const layers = middleware.map((layer) => ({
    ...layer,
    ...counted("agent", layer.agent),
    ...counted("chat", layer.chat),
    ...counted("function", layer.function),
  }));
  const scout = new Agent({ name: "scout", model: script(), tools: [look], middleware: layers });
  const runtime = await openRuntime({ store: memoryStore({ hash: sha256 }) });
  const { status } = await (await runtime.submit(scout, "Look.")).result();
  await runtime.close();
  expect(status).toBe("completed");
  return passed;
}

const telemetry: Telemetry = {
  startSpan: () => ({ set: () => {}, fail: () => {}, end: () => {}, during: (body) => body() }),
  count: () => {},
  measure: () => {},
};

/** Expected counts, given per run, per model call and per tool call. */
const each = (agent: number, chat: number, tools: number): Passed => ({
  agent,
  chat: 2 * chat,
  function: tools,
});

const layers: readonly { readonly name: string; readonly layer: Layer; readonly passed: Passed }[] = [
  { name: "cache", layer: cache(), passed: each(0, 0, 1) },
  { name: "cache of answers too", layer: cache({ chat: true }), passed: each(0, 1, 1) },
  { name: "retry", layer: retry(), passed: each(0, 1, 0) },
  { name: "rate limiter", layer: rateLimiter({ burst: 9, perSecond: 9 }), passed: each(0, 1, 0) },
  { name: "schema validator", layer: schemaValidator({ schema: { type: "object" } }), passed: each(0, 1, 0) },
  { name: "audit logger", layer: auditLogger({ log: { record: async () => {} } }), passed: each(1, 1, 1) },
  { name: "tracing", layer: tracing({ telemetry }), passed: each(1, 1, 1) },
  { name: "content truncator", layer: contentTruncator(), passed: each(0, 0, 1) },
  { name: "history truncator", layer: historyTruncator({ maxMessages: 9 }), passed: each(0, 1, 0) },
  { name: "file validator", layer: fileValidator({ roots: ["/srv"] }), passed: each(0, 0, 1) },
  { name: "PII redaction", layer: piiRedaction(), passed: each(0, 1, 1) },
  { name: "injection marking", layer: injectionMarking(), passed: each(0, 1, 0) },
  { name: "model fallback", layer: modelFallback({ models: [script()] }), passed: each(0, 1, 0) },
];

/** Middleware that is configured to have no effect. */
const idle: readonly { readonly name: string; readonly layer: Layer }[] = [
  { name: "a cache() with maxEntries: 0", layer: cache({ maxEntries: 0 }) },
  { name: "a historyTruncator() without a limit", layer: historyTruncator({}) },
  { name: "a modelFallback() without models", layer: modelFallback({ models: [] }) },
  { name: "a retry() with maxRetries: 0", layer: retry({ maxRetries: 0 }) },
];

describe("F1: a call passes only the configured middleware", () => {
  test("F1: an agent without middleware has no call path around its calls", async () => {
    expect("callPath" in new Agent({ name: "scout", model: script(), tools: [look] })).toBe(false);
    expect(await passes([])).toEqual(each(0, 0, 0));
  });

  test.for(layers)(
    "F1: a call passes the middleware $name only at the levels that this middleware handles",
    async ({ layer, passed }) => {
      expect(await passes([layer])).toEqual(passed);
      const scout = new Agent({ name: "scout", model: script(), middleware: [layer] });
      const { model, tool: entries, observer } = scout.callPath ?? {};
      expect(Object.keys(model ?? {})).toEqual(passed.chat > 0 ? ["around"] : []);
      expect(Object.keys(entries ?? {})).toEqual(passed.function > 0 ? ["around"] : []);
      expect(observer).toBeUndefined();
    },
  );

  test("F1: combined middleware is passed as often as each middleware alone", async () => {
    // The cache is left out, because it answers the second of two equal calls and inner middleware is not
    // called.
    const all = layers.filter(({ name }) => !name.startsWith("cache"));
    const sum = (level: keyof Passed): number => all.reduce((total, { passed }) => total + passed[level], 0);
    const expected = { agent: sum("agent"), chat: sum("chat"), function: sum("function") };
    expect(await passes(all.map(({ layer }) => layer))).toEqual(expected);
    const { depth } = new MiddlewarePipeline(all.map(({ layer }) => layer));
    expect(depth).toEqual({ ...expected, chat: expected.chat / 2 });
  });

  test.for(idle)("F1: $name adds no call path to an agent", async ({ layer }) => {
    expect("callPath" in new Agent({ name: "scout", model: script(), middleware: [layer] })).toBe(false);
    expect(await passes([layer])).toEqual(each(0, 0, 0));
  });

  test("a call path that an agent changes applies from the next call on", async () => {
    const seen: string[] = [];
    const path = (name: string): CallPath => ({
      model: { around: { process: (_context, next) => (seen.push(name), next()) } },
    });
    let callPath: CallPath | undefined;
    const changing = tool({
      name: "look",
      description: "Looks",
      inputSchema: { type: "object", properties: {} },
      execute: () => {
        callPath = path("added while it ran");
        return "rain";
      },
    });
    const scout: HostedAgent = {
      ...withoutPath(new Agent({ name: "scout", model: script(), tools: [changing] })),
      get callPath() {
        return callPath as CallPath;
      },
    };
    const runtime = await openRuntime();
    await (await runtime.submit(scout, "Look.")).result();
    await runtime.close();
    expect(seen).toEqual(["added while it ran"]);
  });
});

/** Counts how many checks are asked before and after the tool call of one run. */
async function entriesPassed(options: Partial<AgentOptions>): Promise<{ before: number; after: number }> {
  const passed = { before: 0, after: 0 };
  const scout = new Agent({ name: "scout", model: script(), tools: [look], ...options });
  const { tool: { before, after, ...entries } = {}, ...path } = scout.callPath ?? {};
  const counting: ToolPipeline = {
    ...entries,
    ...(before && {
      before: before.map((entry) => ({
        ...entry,
        decide: (call: GatedCall) => (passed.before++, entry.decide(call)),
      })),
    }),
    ...(after && {
      after: after.map((entry) => ({
        ...entry,
        decide: (call: GatedCall, result: ToolResult) => (passed.after++, entry.decide(call, result)),
      })),
    }),
  };
  const runtime = await openRuntime();
  const counted: HostedAgent = {
    ...withoutPath(scout),
    callPath: { ...path, tool: counting },
  };
  const { status } = await (await runtime.submit(counted, "Look.")).result();
  await runtime.close();
  expect(status).toBe("completed");
  return passed;
}

describe("F1: which checks the tool calls of an agent pass", () => {
  const allow = (): GuardrailDecision => ({ decision: "allow" });
  const permissions: Permissions = { check: () => ({ decision: "allow" }) };
  const toolHooks: HookRegistry = { preTool: () => undefined, postTool: () => undefined };

  test.for([
    { what: "no options", options: {} },
    { what: "no guardrails", options: { guardrails: [] } },
    { what: "a guardrail without a stage", options: { guardrails: [{ name: "idle" }] } },
    { what: "an input guardrail", options: { guardrails: [{ name: "in", onInput: allow }] } },
    { what: "an output guardrail", options: { guardrails: [{ name: "out", onOutput: allow }] } },
    { what: "middleware alone", options: { middleware: [contentTruncator()] } },
  ])("F1: an agent with $what has no check before or after a tool call", async ({ options }) => {
    const { before, after } = new Agent({ name: "scout", model: script(), ...options }).callPath?.tool ?? {};
    expect([before, after]).toEqual([undefined, undefined]);
    expect(await entriesPassed(options)).toEqual({ before: 0, after: 0 });
  });

  test.for([
    {
      what: "a guardrail before calls",
      options: { guardrails: [{ name: "call", beforeCall: allow }] },
      passed: { before: 1, after: 0 },
    },
    {
      what: "a guardrail after calls",
      options: { guardrails: [{ name: "result", afterCall: allow }] },
      passed: { before: 0, after: 1 },
    },
    { what: "permissions", options: { permissions }, passed: { before: 1, after: 0 } },
    { what: "tool hooks", options: { toolHooks }, passed: { before: 1, after: 1 } },
    {
      what: "all of them",
      options: { guardrails: [{ name: "c", beforeCall: allow }], permissions, toolHooks },
      passed: { before: 3, after: 1 },
    },
  ])(
    "F1: a tool call of an agent with $what passes one check for each configured part",
    async ({ options, passed }) => {
      const { callPath } = new Agent({ name: "scout", model: script(), ...options });
      expect(Object.keys(callPath ?? {})).toEqual(["tool"]);
      expect(await entriesPassed(options)).toEqual(passed);
    },
  );

  test("F1: a guardrail is called only at the stages that it implements", async () => {
    const asked: string[] = [];
    const at = (stage: string) => (): GuardrailDecision => (asked.push(stage), { decision: "allow" });
    await entriesPassed({
      guardrails: [
        { name: "calls", beforeCall: at("call") },
        { name: "results", afterCall: at("result") },
        { name: "idle" },
      ],
    });
    expect(asked).toEqual(["call", "result"]);
  });
});

describe("F1: the prompt window", () => {
  /** Returns for each model call of a run whether it received the session's own transcript object. */
  const asked = async (): Promise<boolean[]> => {
    const given: boolean[] = [];
    const watched: Architecture = {
      name: "watched",
      declaredWorkers: () => ({}),
      run: async function* run(session, deps, prompt) {
        const llm = deps.ctx.llm.bind(deps.ctx);
        vi.spyOn(deps.ctx, "llm").mockImplementation((request) => {
          given.push(request.transcript === session.messages);
          return llm(request);
        });
        for await (const draft of react().run(session, deps, prompt)) {
          expect(draft.type).toMatch(/^turn_/);
          yield draft;
        }
      },
    };
    const runtime = await openRuntime();
    const scout = new Agent({ name: "scout", model: script(), tools: [look], architecture: watched });
    const { status } = await (await runtime.submit(scout, "Look.")).result();
    await runtime.close();
    expect(status).toBe("completed");
    return given;
  };

  test("F1: without compaction, the model receives the transcript of the session itself and not a copy", async () => {
    expect(await asked()).toEqual([true, true]);
  });

  test("F1: with compaction, the compaction strategy is called once per model call", async () => {
    let calls = 0;
    const counting: CompactionStrategy = {
      compact: (history) => (calls++, slidingWindow().compact(history)),
    };
    const runtime = await openRuntime();
    const scout = new Agent({
      name: "scout",
      model: script(),
      tools: [look],
      compaction: { strategy: () => counting },
    });
    await (await runtime.submit(scout, "Look.")).result();
    await runtime.close();
    expect(calls).toBe(2);
  });
});
