import {
  Agent,
  HookManager,
  openRuntime,
  openTelemetry,
  permissions,
  tool,
  toolHooks,
  type AgentOptions,
} from "reeve";
import { loopDetection, maxTokens, pii, promptInjection, regex, toolCallValidation } from "reeve/guardrails";
import {
  formatAgentId,
  formatRunId,
  formatSessionId,
  formatTaskId,
  userMessage,
  HookEvent,
  type HostedAgent,
  type CallPath,
  type ChatContext,
  type Extension,
  type FunctionContext,
  type GatedCall,
  type RunContext,
  type ToolPipeline,
  type ModelRequest,
  type ModelResponse,
} from "reeve/kernel";
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
} from "reeve/middleware";
import { scriptedModel } from "reeve/testing";
import { z } from "zod";
import { cpuMs } from "./cpu-time.ts";
import { median, type Row } from "./row.ts";
import { LoopScript } from "./loop-script.ts";
import { finishRun, loopAgent, scriptedLoopModel } from "./turn-loop.ts";

const rounds = 31;
const callsPerRound = 2_000;

const model = scriptedLoopModel(new LoopScript(0));
const answer = '{"town":"Sens","weather":"rain","degrees":21}';
const response: ModelResponse = {
  message: { role: "assistant", content: [{ type: "text", text: answer }] },
  stopReason: "stop",
  usage: { inputTokens: 10, outputTokens: 5, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 },
};
const lookup = tool({
  name: "lookup",
  description: "Looks something up",
  inputSchema: { type: "object" },
  execute: () => "rain",
});
/** About 200 characters each. */
const messages = Array.from({ length: 20 }, (_, index) =>
  userMessage(`Message ${index}: it rains in Sens, and the wind comes from the west. `.repeat(3)),
);
const request: ModelRequest = { messages };
const [runId, sessionId] = [formatRunId("bench"), formatSessionId("bench")];
const common = {
  agentName: "bench",
  agentId: formatAgentId({ name: "bench" }),
  runId,
  taskId: formatTaskId(0),
  sessionId,
  tenantId: "acme",
  facts: { tenantId: "acme", userId: "ann", sessionId, runId, metadata: {}, context: undefined },
  signal: new AbortController().signal,
  emitEvent: () => {},
  waitFor: <Value>(wait: Promise<Value>) => wait,
};

/** Each layer as it is when nothing goes wrong; a cache that never hits. */
async function layers(): Promise<Readonly<Record<string, readonly Layer[]>>> {
  const telemetry = await openTelemetry();
  const one = {
    cache: [cache({ chat: true, ttlMs: 0 })],
    retry: [retry({ tools: ["lookup"] })],
    "rate limiter": [
      rateLimiter({ burst: 1e9, perSecond: 1e9 }),
      rateLimiter({ burst: 1e9, perSecond: 1e9, level: "function" }),
    ],
    "schema validator": [
      schemaValidator({ schema: z.object({ town: z.string(), degrees: z.number() }), maxRepairs: 0 }),
    ],
    "audit logger": [auditLogger({ log: { record: async () => {} } })],
    "tracing, no SDK": [tracing({ telemetry })],
    "content truncator": [contentTruncator()],
    "history truncator": [historyTruncator({ maxMessages: 100 })],
    "file validator": [fileValidator({ roots: ["/srv"], maxBytes: 1e6 })],
    "PII redaction": [piiRedaction()],
    "injection marking": [injectionMarking()],
    "model fallback": [modelFallback({ models: [model] })],
  };
  return { "a bare layer": [bare], ...one, "all together": Object.values(one).flat() };
}

const bare: Layer = { chat: (_context, next) => next(), function: (_context, next) => next() };

/**
 * Microseconds per model call and per tool call through each layer, compared with a call without any layer. Then the
 * same for a whole turn in the runtime, in memory, with all layers and with none.
 */
export async function* rows(): AsyncIterable<Row> {
  const named = await layers();
  yield* calls(named);
  yield* gated();
  yield* turns(named["all together"] ?? []);
}

const wholeGate = "the whole gate";

type GateOptions = Pick<AgentOptions, "toolHooks" | "extensions" | "guardrails" | "permissions">;

/** The entries of an agent with these parts. Its extensions are set up before its first invocation. */
async function pipelineOf(parts: GateOptions): Promise<ToolPipeline | undefined> {
  const agent = new Agent({ name: "gated", model: scriptedModel(["Done."]), ...parts });
  await agent.invoke("start");
  return agent.callPath?.tool;
}

/** The parts of the gate, with twenty calls behind them. A judge costs a model call, and is not here. */
function gates(): Readonly<Record<string, GateOptions>> {
  const hooks = toolHooks();
  hooks.onPreTool(() => undefined);
  const stages = { tool_call: "block", tool_result: "block" } as const;
  const guardrails = {
    "loop detection": loopDetection(),
    "prompt injection": promptInjection({ stages }),
    PII: pii({ stages }),
    "max tokens": maxTokens({ limits: { tool_call: 10_000, tool_result: 10_000 } }),
    regex: regex({ patterns: { secret: /secret/u }, stages }),
    "tool call validation": toolCallValidation({ maxCalls: { lookup: 1_000_000 } }),
  };
  const quiet: Extension = {
    name: "quiet",
    setup(api) {
      api.on("tool_call", () => undefined);
      api.on("tool_result", () => undefined);
    },
  };
  const one: Readonly<Record<string, GateOptions>> = {
    "tool hooks": { toolHooks: hooks },
    extensions: { extensions: [quiet] },
    permissions: { permissions: permissions({ allow: ["look*"], deny: ["drop_*"] }) },
    ...Object.fromEntries(
      Object.entries(guardrails).map(([name, each]) => [`guardrail ${name}`, { guardrails: [each] }]),
    ),
  };
  return {
    ...one,
    [wholeGate]: Object.assign({}, ...Object.values(one), {
      guardrails: Object.values(guardrails),
    }) as GateOptions,
  };
}

async function* gated(): AsyncIterable<Row> {
  const call = { callId: "c", toolName: "lookup", input: { town: "Sens" } };
  const result = { output: { type: "text", text: answer }, isError: false } as const;
  const history = Array.from({ length: 20 }, (_, index) => ({
    call: { ...call, input: { town: index } },
    result,
  }));
  const at: GatedCall = {
    ...common,
    call,
    sent: call.input,
    parsed: call.input,
    tool: lookup,
    toolDigest: "digest",
    needsApproval: false,
    history,
    folder: null,
    // Only a judge takes steps.
    ctx: {} as RunContext,
  };
  for (const [name, parts] of Object.entries(gates())) {
    const { before = [], after = [] } = (await pipelineOf(parts)) ?? {};
    const times: number[] = [];
    for (let round = 0; round < rounds + 3; round++) {
      const took = await timeCalls(async () => {
        for (const entry of before) await entry.decide(at);
        for (const entry of after) await entry.decide(at, result);
      });
      if (round >= 3) times.push(took);
    }
    yield { name: `tool call: ${name}`, value: median(times), unit: "us", against: null, goal: null };
  }
}

/**
 * Measures whole turns with everything that can be called in a turn: middleware, the checks of tool calls, and hooks for
 * all twelve events.
 */
async function* turns(middleware: readonly Layer[]): AsyncIterable<Row> {
  const observer = new HookManager();
  for (const event of Object.values(HookEvent)) observer.on(event, () => undefined);
  const pipeline = await pipelineOf(gates()[wholeGate] ?? {});
  const [layered, none] = [new MiddlewarePipeline(middleware), new MiddlewarePipeline([])];
  yield* turn("hooks", none.callPath({ observer }));
  yield* turn("the whole gate", none.callPath({ ...(pipeline && { tool: pipeline }) }));
  yield* turn("all layers", layered.callPath());
  yield* turn("all together", layered.callPath({ observer, ...(pipeline && { tool: pipeline }) }));
}

async function* turn(name: string, path: CallPath | undefined): AsyncIterable<Row> {
  const count = 40;
  const runtime = await openRuntime({ unknownPrice: "ignore" });
  const without = loopAgent(new LoopScript(count));
  const within = loopAgent(new LoopScript(count)).with({ name: "layered" });
  const { id, models, tools, budget } = within;
  const layered: HostedAgent = {
    id,
    models,
    tools,
    budget,
    messageOf: (input) => within.messageOf(input),
    run: (ctx, inbox) => within.run(ctx, inbox),
    ...(path && { callPath: path }),
  };
  const [bareTurns, layeredTurns]: [number[], number[]] = [[], []];
  for (let round = 0; round < 2 * rounds; round++) {
    const floor = await cpuMs(() => finishRun(runtime, without));
    const took = await cpuMs(() => finishRun(runtime, layered));
    if (round < rounds) continue;
    bareTurns.push((floor * 1_000) / count);
    layeredTurns.push((took * 1_000) / count);
  }
  await runtime.close();
  yield {
    name: `turn in the runtime (model + tool): ${name}`,
    value: median(layeredTurns),
    unit: "us",
    against: median(bareTurns),
    goal: null,
  };
}

async function* calls(named: Readonly<Record<string, readonly Layer[]>>): AsyncIterable<Row> {
  for (const level of ["chat", "function"] as const) {
    const call = level === "chat" ? chatCall : toolCall;
    for (const [name, some] of Object.entries(named)) {
      const pipeline = new MiddlewarePipeline(some);
      if (pipeline.depth[level] === 0) continue;
      const [without, within]: [number[], number[]] = [[], []];
      for (let round = 0; round < rounds + 3; round++) {
        const floor = await timeCalls(() => call(undefined));
        const took = await timeCalls(() => call(pipeline));
        if (round < 3) continue;
        without.push(floor);
        within.push(took);
      }
      yield {
        name: `${level === "chat" ? "model" : "tool"} call: ${name}`,
        value: median(within),
        unit: "us",
        against: median(without),
        goal: null,
      };
    }
  }
}

async function timeCalls(call: () => Promise<void>): Promise<number> {
  const started = performance.now();
  for (let index = 0; index < callsPerRound; index++) await call();
  return ((performance.now() - started) * 1_000) / callsPerRound;
}

async function chatCall(pipeline: MiddlewarePipeline | undefined): Promise<void> {
  const context: ChatContext = {
    ...common,
    metadata: {},
    systemInstructions: "",
    role: "main",
    model,
    request,
    streaming: false,
    filters: [],
    costOf: () => null,
  };
  const next = async (): Promise<void> => {
    context.result = response;
  };
  await (pipeline?.chat === undefined ? next() : pipeline.chat.process(context, next));
}

async function toolCall(pipeline: MiddlewarePipeline | undefined): Promise<void> {
  const context: FunctionContext = {
    ...common,
    metadata: {},
    functionName: "lookup",
    tool: lookup,
    callId: "c",
    idempotencyKey: "k",
    arguments: { path: "a/b.txt", town: "Sens" },
    filters: [],
  };
  const next = async (): Promise<void> => {
    context.result = { output: { type: "text", text: answer }, isError: false };
  };
  await (pipeline?.function === undefined ? next() : pipeline.function.process(context, next));
}
