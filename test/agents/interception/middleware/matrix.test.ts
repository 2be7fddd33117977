import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  auditLogger,
  cache,
  contentTruncator,
  fileValidator,
  historyTruncator,
  injectionMarking,
  MiddlewarePipeline,
  modelFallback,
  rateLimiter,
  retry,
  schemaValidator,
  tracing,
  type Layer,
} from "../../../../src/agents/interception/middleware/index.ts";
import { piiRedaction } from "../../../../src/assembly/middleware.ts";
import { memoryStore, sha256 } from "../../../../src/entries/index.ts";
import {
  assistantMessage,
  messageText,
  toolMessage,
  Transcript,
  userMessage,
  type Delta,
  type JsonObject,
  type RunContext,
  type Store,
  type Telemetry,
  type ToolResult,
} from "../../../../src/kernel/index.ts";
import { sqliteStore } from "../../../../src/runtime/stores/sqlite/store.ts";
import { FakeClock, scriptedModel, type ScriptStep } from "../../../../src/testing/index.ts";
import { agent, readAll, setUp, simpleTool, text } from "../../../runtime/runtime-setup.ts";
import { httpError, resultText } from "./contexts.ts";

const transcript = Transcript.of([
  userMessage("long ago"),
  assistantMessage([{ type: "tool_call", callId: "c0", toolName: "look", input: {} }]),
  toolMessage([
    {
      type: "tool_result",
      callId: "c0",
      toolName: "look",
      output: { type: "text", text: "old news" },
      isError: false,
    },
  ]),
  userMessage("I am ann@example.org"),
]);

interface Case {
  readonly name: string;
  readonly layers: (tools: { readonly clock: FakeClock; readonly log: string[] }) => readonly Layer[];
  readonly script?: readonly ScriptStep[];
  readonly input?: JsonObject;
  readonly tool?: (call: number) => ToolResult;
  readonly said?: string;
  readonly saw?: string;
  /** Expected number of calls of the model and of the tool. */
  readonly calls?: readonly [number, number];
  /** Pattern that the messages of the main model's last request must match. */
  readonly sent?: RegExp;
  readonly log?: readonly string[];
}

const telemetry = (log: string[]): Telemetry => ({
  startSpan: (name) => ({
    set: () => {},
    fail: () => {},
    end: () => void log.push(name),
    during: (body) => body(),
  }),
  count: () => {},
  measure: () => {},
});

const random = { next: () => 0 };
const busy = { error: httpError(503) };
const failing = (call: number): ToolResult =>
  call === 1 ? { ...text("try later"), isError: true } : text("rain");

const cases: readonly Case[] = [
  { name: "no middleware", layers: () => [] },
  {
    name: "cache",
    layers: ({ clock }) => [cache({ clock, hash: sha256, chat: true })],
  },
  {
    name: "retry",
    layers: ({ clock }) => [retry({ clock, random, baseDelayMs: 10, tools: ["look"] })],
    script: [{ deltas: ["half "], ...busy }, "It rains."],
    tool: failing,
    calls: [2, 2],
  },
  {
    name: "rate limiter",
    layers: ({ clock }) => [
      rateLimiter({ clock, burst: 1, perSecond: 1 }),
      rateLimiter({ clock, burst: 1, perSecond: 1, level: "function" }),
    ],
  },
  {
    name: "schema validator",
    layers: () => [schemaValidator({ schema: z.object({ town: z.string() }) })],
    script: ["Sens", '{"town":"Sens"}'],
    said: '{"town":"Sens"}',
    calls: [2, 1],
  },
  {
    name: "audit logger",
    layers: ({ log }) => [auditLogger({ log: { record: async ({ action }) => void log.push(action) } })],
    log: ["model_call", "tool_call"],
  },
  {
    name: "tracing",
    layers: ({ clock, log }) => [tracing({ clock, telemetry: telemetry(log) })],
    log: ["chat script", "execute_tool look"],
  },
  {
    name: "content truncator",
    layers: () => [contentTruncator({ maxChars: 3, marker: () => "~" })],
    tool: () => text("rain again"),
    saw: "rai~",
  },
  {
    name: "history truncator",
    layers: () => [historyTruncator({ maxMessages: 1 })],
    sent: /^\[\{"role":"user","content":\[\{"type":"text","text":"I am ann@example.org"\}\]\}\]$/u,
  },
  {
    name: "file validator",
    layers: () => [fileValidator({ roots: ["/srv"] })],
    input: { path: "/etc/passwd" },
    saw: '[refused: path "/etc/passwd" is outside of /srv]',
    calls: [1, 0],
  },
  {
    name: "PII redaction",
    layers: () => [piiRedaction()],
    script: [{ deltas: ["Mail bo", "b@examp", "le.org, card 4111 1111 ", "1111 1111 ok"] }],
    tool: () => text("from 10.0.0.1"),
    said: "Mail [EMAIL], card [CARD] ok",
    saw: "from [IP]",
    sent: /I am \[EMAIL\]/u,
  },
  {
    name: "injection marking",
    layers: () => [injectionMarking()],
    sent: /<untrusted source=\\"tool look\\">\\nold news/u,
  },
  {
    name: "model fallback",
    layers: () => [modelFallback({ models: [scriptedModel(["It rains."], { modelId: "second" })] })],
    script: [busy],
  },
  {
    name: "all middleware together",
    layers: ({ clock, log }) => [
      tracing({ clock, telemetry: telemetry(log) }),
      auditLogger({ log: { record: async ({ action }) => void log.push(action) } }),
      rateLimiter({ clock, burst: 1, perSecond: 1 }),
      piiRedaction(),
      cache({ clock, hash: sha256, chat: true }),
      schemaValidator({ schema: z.object({ town: z.string() }) }),
      retry({ clock, random, baseDelayMs: 10, tools: ["look"] }),
      historyTruncator({ maxMessages: 4 }),
      injectionMarking(),
      modelFallback({ models: [scriptedModel([], { modelId: "second" })] }),
      fileValidator({ maxBytes: 100 }),
      contentTruncator({ maxChars: 15, marker: () => "~" }),
    ],
    script: [{ deltas: ["no", " JSON"] }, { deltas: ['{"town":"bob@exa', 'mple.org"}'] }],
    tool: (call) =>
      call === 1 ? { ...text("try later"), isError: true } : text("from 10.0.0.1 and on and on"),
    said: '{"town":"[EMAIL]"}',
    saw: "from [IP] a~",
    calls: [2, 2],
    sent: /I am \[EMAIL\]/u,
    log: ["model_call", "chat script", "tool_call", "execute_tool look"],
  },
];

const stores: Readonly<Record<string, (folder: string, clock: FakeClock) => Promise<Store>>> = {
  memory: async () => memoryStore({ hash: sha256 }),
  sqlite: (folder, clock) => sqliteStore({ path: join(folder, "reeve.db"), hash: sha256, clock }),
};

interface Outcome {
  readonly said: string;
  readonly saw: string;
  readonly shown: string;
  readonly calls: readonly [number, number];
  readonly passed: readonly [number, number];
  readonly sent: string;
  readonly log: readonly string[];
  readonly status: string | undefined;
  readonly turns: number | undefined;
}

async function play(
  { layers, script = ["It rains."], input = { town: "Sens" }, tool = () => text("rain") }: Case,
  { streaming, replayed, store: kind }: { streaming: boolean; replayed: boolean; store: string },
): Promise<Outcome> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-matrix-"));
  try {
    const clock = new FakeClock();
    const store = await stores[kind]?.(folder, clock);
    if (store === undefined) throw new Error(`no store ${kind}`);
    const log: string[] = [];
    const passed: [number, number] = [0, 0];
    const counting: Layer = {
      chat: (_context, next) => (passed[0]++, next()),
      function: (_context, next) => (passed[1]++, next()),
    };
    let toolCalls = 0;
    const model = scriptedModel(script);
    const worker = agent(
      "worker",
      async (ctx: RunContext) => {
        const { message } = await ctx.llm({ transcript });
        const result = await ctx.tool({ callId: "c1", toolName: "look", input });
        await ctx.waitForSignal("go");
        return { said: messageText(message), saw: resultText(result) };
      },
      {
        models: { main: model },
        tools: [simpleTool({ name: "look", execute: async () => tool(++toolCalls) })],
        callPath: new MiddlewarePipeline([counting, ...layers({ clock, log })]).callPath() ?? {},
      },
    );
    const { runtime, open } = await setUp({
      store,
      clock,
      unknownPrice: "ignore",
      retry: { enabled: false },
    });
    const run = await runtime.submit(worker, null, { streaming });
    const shown = watch(run.events());
    for (let round = 0; round < 100; round++) {
      if ((await readAll(store, run.runId)).some(({ type }) => type === "tool_execution_end")) break;
      await clock.advance(1_000);
    }
    let last = runtime;
    if (replayed) {
      await runtime.close();
      const again = kind === "memory" ? store : await stores[kind]?.(folder, clock);
      last = await open({ ...(again && { store: again }) });
      last.register(worker);
    }
    const handle = await last.find(run.runId);
    await handle?.signal("go");
    const done = handle?.result();
    await clock.advance(10_000);
    const { output, status, turns } = (await done) ?? {};
    const { said, saw } = output as { said: string; saw: string };
    const messages = model.calls.at(-1)?.messages;
    const onScreen = await shown;
    await last.close();
    const calls = [model.calls.length, toolCalls] as const;
    return { said, saw, shown: onScreen, calls, passed, sent: JSON.stringify(messages), log, status, turns };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Returns the text that a watcher sees when the message ends. */
async function watch(events: AsyncIterable<Delta | { readonly type: string }>): Promise<string> {
  let shown = "";
  for await (const event of events) {
    if (event.type === "message_end") return shown;
    if (event.type === "message_reset") shown = "";
    if ("kind" in event && event.kind === "text") shown += event.text;
  }
  return shown;
}

const ways = [false, true].flatMap((streaming) =>
  [false, true].flatMap((replayed) => Object.keys(stores).map((store) => ({ streaming, replayed, store }))),
);

describe.for(cases)("a run with middleware: $name", (one) => {
  test.for(ways)(
    "a run with middleware gives the expected answer, calls and log (streaming: $streaming, replayed: $replayed, store: $store)",
    async (way) => {
      const outcome = await play(one, way);
      const { said = "It rains.", saw = "rain", calls = [1, 1], log = [], sent } = one;
      expect(outcome).toMatchObject({
        said,
        saw,
        shown: way.streaming ? said : "",
        calls,
        // J7: middleware does not run again on replay.
        passed: [1, 1],
        log,
        status: "completed",
        turns: 1,
      });
      expect(outcome.sent).toMatch(sent ?? /./u);
    },
  );
});

test.for(ways)(
  "M3: a MiddlewareTermination stops the run as guardrail_tripped: %o",
  async ({ streaming, store: kind }) => {
    const clock = new FakeClock();
    const folder = await mkdtemp(join(tmpdir(), "reeve-matrix-"));
    const store = await stores[kind]?.(folder, clock);
    const strict = [schemaValidator({ schema: z.object({}), maxRepairs: 0, onInvalid: "terminate" })];
    const worker = agent("worker", async (ctx) => messageText((await ctx.llm({ transcript })).message), {
      models: { main: scriptedModel(["no"]) },
      callPath: new MiddlewarePipeline(strict).callPath() ?? {},
    });
    const { runtime } = await setUp({ ...(store && { store }), clock, unknownPrice: "ignore" });
    const run = await runtime.submit(worker, null, { streaming });
    expect(await run.result()).toMatchObject({
      status: "guardrail_tripped",
      error: { code: "guardrail_tripped", details: { by: "schema-validator" } },
    });
    await runtime.close();
    await rm(folder, { recursive: true, force: true });
  },
);
