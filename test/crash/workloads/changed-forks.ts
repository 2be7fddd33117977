import { Agent } from "../../../src/assembly/agent.ts";
import { formatRunId } from "../../../src/kernel/index.ts";
import { getRunContext } from "../../../src/runtime/index.ts";
import { servedModel, servedTool } from "../../../src/testing/served-call.ts";
import {
  ampleBudget,
  lengthOf,
  modelAnswer,
  outputLimit,
  toolAnswer,
  type Said,
  type Workload,
} from "../workload.ts";
import { seqAfterTool } from "./fork.ts";

const runId = formatRunId("origin");

/** The answer to a request with this number of messages. */
const said: Readonly<Record<number, Said>> = {
  1: { calls: [{ name: "sow", input: { field: 1 } }] },
  3: { text: "sown" },
  // The fork after the tool.
  4: { calls: [{ name: "reap", input: { field: 1 } }] },
  6: { text: "reaped" },
  // The fork at the end.
  5: { calls: [{ name: "reap", input: { field: 2 } }] },
  7: { text: "reaped later" },
};

/** A run, and two forks with an input and a model: after the result of its first tool, and at its end. */
export const changedForks: Workload = {
  agents: (server) => {
    const model = {
      ...servedModel(server, () => getRunContext()?.runId ?? ""),
      maxOutputTokens: outputLimit,
    };
    const tools = ["sow", "reap"].map((name) => servedTool(server, name));
    return [new Agent({ name: "farmer", model, tools, budget: ampleBudget })];
  },
  drive: async ({ runtime, store, agent }) => {
    const run = await runtime.submit(agent, "sow", { runId });
    await run.result();
    const { provider, modelId } = agent.models?.["main"] ?? { provider: "", modelId: "" };
    const change = { input: "and reap", model: `${provider}/${modelId}` };
    const cuts = [await seqAfterTool(store, runId), await store.events.lastSeq(runId)];
    const runs = [runId];
    for (const [index, at] of cuts.entries()) {
      const fork = await run.fork({ at, ...change, runId: formatRunId(`fork${index}`) });
      await fork.result();
      runs.push(fork.runId);
    }
    return runs;
  },
  outputs: ["sown", "reaped", "reaped later"],
  world: {
    branches: 1,
    answering: ({ name, body }) =>
      name === "model"
        ? modelAnswer(lengthOf(body), said[lengthOf(body)] ?? { text: "?" })
        : toolAnswer(name, body),
  },
};
