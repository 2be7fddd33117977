import { openRuntime, tool } from "reeve";
import {
  formatAgentId,
  type HostedAgent,
  type JsonObject,
  type Tool,
  type ToolContext,
  type ToolResult,
} from "reeve/kernel";
import { z } from "zod";
import { runEval, withBundledPackage } from "./bundled-package.ts";
import { cpuMs } from "./cpu-time.ts";
import { firstRun } from "./first-run.ts";
import { median, type Row } from "./row.ts";

const rounds = 31;
/** Rounds before the compiler has settled. */
const warmUp = 20;
const callsPerRound = 5_000;
const callsPerRun = 500;
const imports = 15;

interface Trip {
  readonly from: string;
  readonly to: string;
  readonly days: number;
  readonly class: "first" | "second";
  readonly stops: readonly string[];
}

const fitting: JsonObject = { from: "Sens", to: "Tours", days: 3, class: "second", stops: ["Blois", "Gien"] };
/** As models send them: a number and a list as texts. */
const coercible: JsonObject = { ...fitting, days: "3", stops: '["Blois","Gien"]' };

function plan({ from, to, days }: Trip): string {
  return `${from} to ${to} in ${days} days`;
}

const common = { name: "plan", description: "Plans a trip", execute: (trip: Trip) => plan(trip) };
const tools: Readonly<Record<string, Tool>> = {
  zod: tool({
    ...common,
    inputSchema: z.object({
      from: z.string(),
      to: z.string(),
      days: z.number().int().positive(),
      class: z.enum(["first", "second"]),
      stops: z.array(z.string()),
    }),
  }),
  "JSON Schema": tool({
    ...common,
    inputSchema: {
      type: "object",
      properties: {
        from: { type: "string" },
        to: { type: "string" },
        days: { type: "integer", exclusiveMinimum: 0 },
        class: { enum: ["first", "second"] },
        stops: { type: "array", items: { type: "string" } },
      },
      required: ["from", "to", "days", "class", "stops"],
      additionalProperties: false,
    } as const,
  }),
};

/** The bodies here ask nothing of it. */
const context = {} as ToolContext;

/**
 * Microseconds of a tool call beyond a call of its function: alone, and in a run in memory. Then the cost of importing
 * the package.
 */
export async function* rows(): AsyncIterable<Row> {
  for (const [schema, each] of Object.entries(tools)) {
    yield* alone(`tool(), ${schema}: arguments that fit`, each, fitting);
    yield* alone(`tool(), ${schema}: arguments that are coerced`, each, coercible);
  }
  for (const [schema, each] of Object.entries(tools)) yield* inRun(`ctx.tool in memory, ${schema}`, each);
  yield* withBundledPackage(importing);
}

/** The function itself, and its result in the shape a tool gives. */
async function bare(): Promise<ToolResult> {
  const text = await Promise.resolve(plan(fitting as unknown as Trip));
  return { output: { type: "text", text }, isError: false };
}

/** Coerced, checked, run and shaped, as the runtime does it. */
async function called(each: Tool, input: JsonObject): Promise<ToolResult> {
  const parsed = await each.parse(each.coerce?.(input) ?? input);
  return each.execute(parsed, context);
}

async function* alone(name: string, each: Tool, input: JsonObject): AsyncIterable<Row> {
  const [floor, took]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds + warmUp; round++) {
    const without = await cpuMs(() => repeat(callsPerRound, bare));
    const within = await cpuMs(() => repeat(callsPerRound, () => called(each, input)));
    if (round < warmUp) continue;
    floor.push((without * 1_000) / callsPerRound);
    took.push((within * 1_000) / callsPerRound);
  }
  yield { name, value: median(took), unit: "us", against: median(floor), goal: null };
}

async function* inRun(name: string, each: Tool): AsyncIterable<Row> {
  const runtime = await openRuntime({ unknownPrice: "ignore" });
  const agentOf = (kind: string, calls: number): HostedAgent => ({
    id: formatAgentId({ name: kind }),
    tools: [each],
    run: async (ctx) => {
      for (let call = 0; call < calls; call++)
        await ctx.tool({ callId: `call_${call}`, toolName: each.name, input: fitting });
      return null;
    },
  });
  const [without, within] = [agentOf("idle", 0), agentOf("busy", callsPerRun)];
  const finish = async (agent: HostedAgent): Promise<void> => {
    const { status } = await (await runtime.submit(agent, null)).result();
    if (status !== "completed") throw new Error(`the run ended as ${status}`);
  };
  const [floor, took]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds + warmUp; round++) {
    const idle = await cpuMs(() => finish(without));
    const busy = await cpuMs(() => finish(within));
    const bareCalls = await cpuMs(() => repeat(callsPerRun * 10, bare));
    if (round < warmUp) continue;
    took.push(((busy - idle) * 1_000) / callsPerRun);
    floor.push((bareCalls * 1_000) / (callsPerRun * 10));
  }
  await runtime.close();
  yield { name, value: median(took), unit: "us", against: median(floor), goal: null };
}

async function repeat(count: number, call: () => Promise<unknown>): Promise<void> {
  for (let index = 0; index < count; index++) await call();
}

/**
 * A script that runs in a process of its own. It measures the import, and counts the modules of packages, servers and
 * drivers. Then it measures how long it takes to open a runtime, and to do a first run that calls a tool.
 */
const importer = `
  import { registerHooks } from "node:module";
  const heavy = /\\/node_modules\\/|^node:(?:sqlite|http|https|http2|net|tls|dgram)$|\\/dist\\/(?:mcp|capabilities\\/(?:browser|desktop|mcp))/;
  let loaded = 0;
  if (process.argv[1] === "count")
    registerHooks({
      resolve(specifier, context, next) {
        const found = next(specifier, context);
        if (heavy.test(found.url)) loaded++;
        return found;
      },
    });
  const started = performance.now();
  const { Agent, openRuntime, tool } = await import("reeve");
  const imported = performance.now();
  const foundAtImport = loaded;
  const runtime = await openRuntime();
  const opened = performance.now();
  const usage = { inputTokens: 10, outputTokens: 5, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
  const call = { type: "tool_call", callId: "call_0", toolName: "look", input: { place: "Gien" } };
  const generate = async ({ messages }) =>
    messages.at(-1).role === "tool"
      ? { message: { role: "assistant", content: [{ type: "text", text: "done" }] }, stopReason: "stop", usage }
      : { message: { role: "assistant", content: [call] }, stopReason: "tool_calls", usage };
  const inputSchema = { type: "object", properties: { place: { type: "string" } }, required: ["place"] };
  const look = tool({ name: "look", description: "Looks", inputSchema, execute: async ({ place }) => place });
  const agent = new Agent({ name: "first", model: { provider: "bench", modelId: "bench", generate, stream() {} }, tools: [look] });
  const { status } = await (await runtime.submit(agent, "go")).result();
  if (status !== "completed") throw new Error(status);
  const ran = performance.now();
  await runtime.close();
  process.stdout.write(
    JSON.stringify({ import: imported - started, open: opened - imported, run: ran - opened, loaded: foundAtImport }),
  );
`;

interface FreshProcess {
  /** Milliseconds. */
  readonly import: number;
  readonly open: number;
  readonly run: number;
  /** Time of the import. */
  readonly loaded: number;
}

const stages = {
  import: { name: "import of reeve, fresh process", goal: { atMost: 60 } },
  open: { name: "openRuntime in memory, after it", goal: null },
  run: { name: "first run there, with a tool of a JSON Schema", goal: null },
} as const;

/** What importing the bundled package costs. */
async function* importing(folder: string): AsyncIterable<Row> {
  const times: FreshProcess[] = [];
  for (let round = 0; round < imports; round++) times.push(await importOnce(folder, "time"));
  for (const stage of ["import", "open", "run"] as const) {
    const value = median(times.map((each) => each[stage]));
    yield { ...stages[stage], value, unit: "ms", against: null };
  }
  yield* wholeProcesses(folder);
  const { loaded } = await importOnce(folder, "count");
  yield {
    name: "provider, browser, MCP and driver modules it loads",
    value: loaded,
    unit: "modules",
    against: null,
    goal: { atMost: 0 },
  };
}

/** Wall-clock time of a process from its start to its exit, against that of an empty Node process. The three kinds take turns. */
async function* wholeProcesses(folder: string): AsyncIterable<Row> {
  const kinds = [
    { code: "", argument: "" },
    { code: firstRun, argument: "answer" },
    { code: firstRun, argument: "call" },
  ];
  const times: number[][] = [[], [], []];
  for (let round = 0; round < imports; round++) {
    for (let turn = 0; turn < kinds.length; turn++) {
      const kind = (round + turn) % kinds.length;
      const { code, argument } = kinds[kind] as { code: string; argument: string };
      const started = performance.now();
      await runEval(folder, code, argument);
      times[kind]?.push(performance.now() - started);
    }
  }
  const [empty = 0, answered = 0, withCall = 0] = times.map(median);
  yield {
    name: "first run of a process, against an empty one",
    value: answered,
    unit: "ms",
    against: empty,
    goal: { atMost: 4 },
  };
  yield {
    name: "the same with a tool call that loads ajv",
    value: withCall,
    unit: "ms",
    against: empty,
    goal: null,
  };
}

async function importOnce(cwd: string, what: "time" | "count"): Promise<FreshProcess> {
  return JSON.parse(await runEval(cwd, importer, what)) as FreshProcess;
}
