// The loop of an agent in memory, with a cap to hold and a hook that watches: turns, many runs at once, and text as it is streamed.
import { Agent, openRuntime } from "reeve";
import type { Model, ModelResponse, Runtime } from "reeve/kernel";
import { cpuMs } from "./cpu-time.ts";
import { LoopScript } from "./loop-script.ts";
import { median, type Row } from "./row.ts";
import { bareLoop, finishRun, loopAgent } from "./turn-loop.ts";
import { turnRows } from "./turn-time.ts";

const rounds = 7;

export async function* rows(): AsyncIterable<Row> {
  yield* turnRows("turn in memory", 8, { bare: "bare", ours: "memory" });
  yield* concurrentRuns();
  yield* streaming();
  yield* streamedReplies();
}

/** 1,000 runs of 10 turns at once. Processor time: on a shared machine the clock counts others' work too. */
async function* concurrentRuns(): AsyncIterable<Row> {
  const runs = 1_000;
  const runtime = await openRuntime({ unknownPrice: "ignore" });
  const script = new LoopScript(10);
  const agent = loopAgent(script);
  const all = (run: () => Promise<void>): Promise<unknown> => Promise.all(Array.from({ length: runs }, run));
  const ours: number[] = [];
  const bare: number[] = [];
  for (let round = 0; round < rounds; round++) {
    bare.push((await cpuMs(() => all(() => bareLoop(script)))) / runs);
    ours.push((await cpuMs(() => all(() => finishRun(runtime, agent)))) / runs);
  }
  const { rss } = process.memoryUsage();
  await runtime.close();
  yield {
    name: "1,000 runs of 10 turns at once, a run, against the bare loop",
    value: median(ours.slice(2)) * 1_000,
    unit: "us",
    against: median(bare.slice(2)) * 1_000,
    goal: null,
  };
  yield {
    name: "memory of the process after them",
    value: rss / 1_048_576,
    unit: "MB",
    against: null,
    goal: null,
  };
}

const deltas = 2_000;

/** 2,000 pieces of text, each of which somebody reads. */
async function* streaming(): AsyncIterable<Row> {
  const runtime = await openRuntime({ unknownPrice: "ignore" });
  const agent = new Agent({ name: "streams", model: streamingModel() });
  const ours: number[] = [];
  const bare: number[] = [];
  for (let round = 0; round < rounds * 5; round++) {
    bare.push(((await cpuMs(readBare)) * 1_000) / deltas);
    ours.push(((await cpuMs(() => readStream(agent, runtime))) * 1_000) / deltas);
  }
  await runtime.close();
  yield {
    name: "a streamed delta, against reading the model's stream bare",
    value: median(ours.slice(10)),
    unit: "us",
    against: median(bare.slice(10)),
    goal: { atMost: 3 },
  };
}

/** Heap that 50 stored replies of 2,000 pieces each occupy. Their text is 24 KB per reply. */
async function* streamedReplies(): AsyncIterable<Row> {
  const replies = 50;
  const runtime = await openRuntime({ unknownPrice: "ignore" });
  const agent = new Agent({ name: "streams", model: streamingModel() });
  await readStream(agent, runtime);
  const before = heapAfterCollection();
  for (let reply = 0; reply < replies; reply++) await readStream(agent, runtime);
  const value = (heapAfterCollection() - before) / replies / 1_024;
  await runtime.close();
  yield { name: "memory of a stored reply of 2,000 deltas", value, unit: "KB", against: null, goal: null };
}

function heapAfterCollection(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

async function readBare(): Promise<void> {
  let text = "";
  for await (const part of streamingModel().stream({ messages: [] }))
    if (part.type === "text_delta") text += part.text;
  if (text.length !== deltas * 6) throw new Error("the stream was cut");
}

async function readStream(agent: Agent, runtime: Runtime): Promise<void> {
  let text = "";
  for await (const event of agent.stream("go", { runtime }))
    if (event.type === "message_update") text += event.text;
  if (text.length !== deltas * 6) throw new Error("the stream was cut");
}

function streamingModel(): Model {
  return {
    provider: "bench",
    modelId: "bench",
    generate: async () => finish(""),
    async *stream() {
      let text = "";
      for (let index = 0; index < deltas; index++) {
        const piece = `w${String(index).padStart(4, "0")} `;
        text += piece;
        yield { type: "text_delta", text: piece };
      }
      yield { type: "finish", ...finish(text) };
    },
  };
}

function finish(text: string): ModelResponse {
  return {
    message: { role: "assistant", content: [{ type: "text", text }] },
    stopReason: "stop",
    usage: { inputTokens: 10, outputTokens: 5, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 },
  };
}
