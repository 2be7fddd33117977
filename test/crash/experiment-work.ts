import { Agent } from "../../src/assembly/agent.ts";
import {
  experiment,
  readExperiment,
  type Experiment,
  type ExperimentResult,
} from "../../src/experiments/index.ts";
import { formatRunId, type JsonValue } from "../../src/kernel/index.ts";
import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { callServer, servedModel, servedTool, type ServerAddress } from "../../src/testing/served-call.ts";
import type { DutyWork } from "../../src/testing/worker-duty.ts";
import { openCrashStore } from "./crash-store.ts";
import { price } from "./workload.ts";

const experimentRun = formatRunId("experiment");
export const experimentSeats = 4;

/** What the work needs to know. */
export interface ExperimentWorkData {
  readonly cases: number;
}

/**
 * An experiment whose agent calls a model twice and a tool once per case. One scorer calls the server itself, and a judge asks a model.
 * Every call is counted by the server.
 */
function servedExperiment(server: ServerAddress, count: number): Experiment {
  const agent = new Agent({ name: "clerk", model: servedModel(server), tools: [servedTool(server, "look")] });
  const judge = new Agent({ name: "judge", model: servedModel(server) });
  return experiment({
    name: "served",
    agent,
    cases: Array.from({ length: count }, (_, index) => ({ id: `case-${index}`, input: `Case ${index}?` })),
    scorers: [
      async function measured({ caseId, output }) {
        const body = { caseId, output } as JsonValue;
        const { answer } = await callServer(server, { name: "measure", key: caseId, body });
        return answer as number;
      },
      {
        name: "judge",
        agents: [judge],
        score: async ({ output }, ctx) =>
          Number(await ctx.agent(judge, `How good is ${output as string}`)) / 10,
      },
    ],
    seats: experimentSeats,
    // Calls that a kill cuts off are charged in full.
    budget: { maxCostUsd: 100 },
  });
}

/** Starts the experiment, or finds it in the store, and executes it until it has ended. */
export const doExperimentWork: DutyWork = async ({ file, mortal, server, data }) => {
  const { cases } = data as unknown as ExperimentWorkData;
  const runtime = await createRuntime({
    store: mortal(await openCrashStore(file)),
    prices: { find: () => price },
    pollMs: 20,
    onError: (error) => process.stderr.write(`${error.code}: ${error.message}\n`),
  });
  const run = await runtime.start(servedExperiment(server, cases), {}, { runId: experimentRun });
  await run.result();
  await runtime.close();
  return [experimentRun];
};

/** The results of the experiment in a store. */
interface StoredResults extends ExperimentResult {
  readonly unreportedUsd: number;
  /** How often a worker has taken the run over: after a kill, or because its owner was too slow to keep its lease. */
  readonly takeOvers: number;
}

export async function resultsIn(file: string): Promise<StoredResults> {
  const runtime = await createRuntime({ store: await openCrashStore(file), prices: { find: () => price } });
  try {
    const run = await runtime.find(experimentRun);
    if (run === undefined) throw new Error("the run of the experiment is not in the store");
    const { unreported } = await run.summary();
    let takeOvers = 0;
    for await (const { type } of run.events({ types: ["run_recover"], follow: false }))
      if (type === "run_recover") takeOvers++;
    return { ...(await readExperiment(run)), unreportedUsd: unreported.costUsd ?? 0, takeOvers };
  } finally {
    await runtime.close();
  }
}
