// Sessions: what an invocation costs late in a long compacted conversation, and the first page of many sessions.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent, openRuntime } from "reeve";
import type { Model, Runtime } from "reeve/kernel";
import { cpuMs } from "./cpu-time.ts";
import { median, type Row } from "./row.ts";

const invocationsPerCompaction = 50;
const window = 25;
/** The processor clock is too coarse for one list. */
const listsPerRound = 50;

/** What an invocation costs late in a long conversation, and a page of many conversations. */
export async function* longSessions(): AsyncIterable<Row> {
  for (const kind of ["memory", "sqlite"] as const) {
    yield* invocations(kind);
    yield* pages(kind);
  }
}

const model: Model = {
  provider: "bench",
  modelId: "bench",
  async generate() {
    return {
      message: {
        role: "assistant",
        content: [{ type: "text", text: "An answer of some length. ".repeat(10) }],
      },
      stopReason: "stop",
      usage: { inputTokens: 10, outputTokens: 10 },
    };
  },
  async *stream(request, options) {
    yield { type: "finish", ...(await model.generate(request, options)) };
  },
};

/** Invocation 1,400 of a session that is compacted every 50 invocations, against invocation 100. */
async function* invocations(kind: "memory" | "sqlite"): AsyncIterable<Row> {
  yield await withRuntime(kind, async (runtime) => {
    const agent = new Agent({ name: "bench", model });
    const sessionId = "long";
    const times: number[] = [];
    // The engine compiles the code meanwhile, so that both invocations run compiled code.
    for (let number = 1; number <= 300; number++)
      await agent.invoke("A question of some length?", { runtime, sessionId: `warm-up-${number % 10}` });
    for (let number = 1; number <= 1_400; number++) {
      times.push(await cpuMs(() => agent.invoke("A question of some length?", { runtime, sessionId })));
      if (number % invocationsPerCompaction === 0) await compact(runtime, sessionId);
    }
    const early = median(times.slice(100 - window, 100));
    const late = median(times.slice(1_400 - window));
    return {
      name: `invocation 1,400 of a compacted session, ${kind}, against 100`,
      value: late * 1_000,
      unit: "us",
      against: early * 1_000,
      goal: { atMost: 1.5 },
    };
  });
}

async function compact(runtime: Runtime, sessionId: string): Promise<void> {
  const path = await runtime.sessions.path(sessionId, { from: "compaction" });
  const firstKeptEntryId = path.at(-1)?.id ?? "";
  await runtime.sessions.compact(sessionId, { summary: "What was said so far.", firstKeptEntryId });
}

/** The first page of 10,000 sessions against the first page of 100. */
async function* pages(kind: "memory" | "sqlite"): AsyncIterable<Row> {
  const few = await firstPage(kind, 100);
  const many = await firstPage(kind, 10_000);
  yield {
    name: `first page of 10,000 sessions, ${kind}, against 100`,
    value: many * 1_000,
    unit: "us",
    against: few * 1_000,
    goal: { atMost: 2 },
  };
}

async function firstPage(kind: "memory" | "sqlite", sessions: number): Promise<number> {
  return withRuntime(kind, async (runtime) => {
    const agent = new Agent({ name: "bench", model });
    await agent.invoke("A question?", { runtime, sessionId: "origin" });
    for (let number = 1; number < sessions; number++)
      await runtime.sessions.fork("origin", { sessionId: `copy-${number}` });
    const times: number[] = [];
    const list = async (): Promise<void> => {
      for (let count = 0; count < listsPerRound; count++) await runtime.sessions.list();
    };
    globalThis.gc?.();
    for (let round = 0; round < 21; round++) times.push((await cpuMs(list)) / listsPerRound);
    return median(times);
  });
}

async function withRuntime<Result>(
  kind: "memory" | "sqlite",
  work: (runtime: Runtime) => Promise<Result>,
): Promise<Result> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-sessions-"));
  const store = kind === "memory" ? "memory:" : (`sqlite:${join(folder, "store.db")}` as const);
  const runtime = await openRuntime({ store, unknownPrice: "ignore" });
  try {
    return await work(runtime);
  } finally {
    await runtime.close();
    await rm(folder, { recursive: true, force: true });
  }
}
