// The overhead of an experiment for each case, and the memory of long ones, with a scripted model and a store in a file.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent, openRuntime, type Runtime } from "reeve";
import { experiment, type Experiment } from "reeve/experiments";
import { scriptedModel } from "reeve/testing";
import type { Model } from "reeve/kernel";
import { cpuMs } from "./cpu-time.ts";
import type { Row } from "./row.ts";

const few = 1_000;
const many = 10_000;

/** A model that answers every request in the same way. */
const model: Model = {
  provider: "scripted",
  modelId: "answering",
  generate: (request, options) => scriptedModel(["Paris"]).generate(request, options),
  stream: (request, options) => scriptedModel(["Paris"]).stream(request, options),
};
const agent = new Agent({ name: "clerk", model });

function exact({ output }: { readonly output: unknown }): boolean {
  return output === "Paris";
}

function experimentOf(cases: number): Experiment {
  return experiment({
    name: `offline-${cases}`,
    agent,
    cases: Array.from({ length: cases }, (_, index) => ({ id: `case-${index}`, input: `Question ${index}` })),
    scorers: [exact],
    seats: 8,
  });
}

async function inRuntime<Value>(body: (runtime: Runtime) => Promise<Value>): Promise<Value> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-bench-experiments-"));
  const runtime = await openRuntime({ store: `sqlite:${join(folder, "reeve.db")}`, unknownPrice: "ignore" });
  try {
    return await body(runtime);
  } finally {
    await runtime.close();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Milliseconds of processor time per case of an experiment, or per invocation of its agent. */
async function perCase(kind: "experiment" | "invoke"): Promise<number> {
  return inRuntime(async (runtime) => {
    const work = async (count: number): Promise<void> => {
      if (kind === "experiment") {
        const run = await runtime.start(experimentOf(count), {}, { runId: `run_${count}` });
        await run.result();
      } else {
        const ask = async (lane: number): Promise<void> => {
          for (let index = lane; index < count; index += 8)
            await agent.invoke(`Question ${index}`, { runtime });
        };
        await Promise.all(Array.from({ length: 8 }, (_, lane) => ask(lane)));
      }
    };
    // The compiler has seen the code before it is measured.
    await work(200);
    return (await cpuMs(() => work(few))) / few;
  });
}

/** The most memory that the heap of this process has while an experiment of so many cases runs, in megabytes. */
async function heapOf(cases: number): Promise<number> {
  return inRuntime(async (runtime) => {
    const run = await runtime.start(experimentOf(cases), {});
    let most = 0;
    for await (const { type } of run.events({ types: ["task_continue_as_new"] })) {
      if (type !== "task_continue_as_new") continue;
      globalThis.gc?.();
      most = Math.max(most, process.memoryUsage().heapUsed);
    }
    await run.result();
    return most / 1e6;
  });
}

export async function* rows(): AsyncIterable<Row> {
  const invoke = await perCase("invoke");
  yield {
    name: `case of an experiment of ${few}, against agent.invoke`,
    value: await perCase("experiment"),
    unit: "ms",
    against: invoke,
    goal: { atMost: 2 },
  };
  await heapOf(few);
  const small = await heapOf(few);
  yield {
    name: `heap of an experiment of ${many} cases, against ${few}`,
    value: await heapOf(many),
    unit: "MB",
    against: small,
    goal: { atMost: 1.2 },
  };
}
