import { Agent } from "../../../src/assembly/agent.ts";
import { formatRunId, type JsonValue, type RunId, type Store } from "../../../src/kernel/index.ts";
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

/** Id of the first tool call of a run. */
async function firstCall(store: Store, id: RunId): Promise<string> {
  for await (const { events = [] } of store.journal.read(id))
    for (const event of events) if (event.type === "tool_execution_end") return event.data.callId;
  throw new Error(`${id} has no tool call`);
}

/** The answer of the model to a request with this number of messages. */
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

/** Instructions that only the third fork has. */
const changed = "Reap what is ripe.";

/**
 * What the model of the third fork says. The code of a worker has no instructions for its agent, so that the
 * instructions must come from the journal.
 */
function saidChanged(body: JsonValue): Said {
  const text = JSON.stringify(body);
  if (lengthOf(body) === 4) return { calls: [{ name: "reap", input: { field: 3 } }] };
  const isEdited = text.includes("ripe already");
  const isDenied = text.includes("may not be called in this run");
  return { text: `edited: ${isEdited}, denied: ${isDenied}` };
}

function isChanged(body: JsonValue): boolean {
  return JSON.stringify(body).includes(changed);
}

/**
 * A run with three forks. The first starts after the result of its first tool, with an input and another model. The
 * second does the same at its end. The third starts after the first result, with other instructions, fewer tools and
 * another result.
 */
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
    const last = await run.fork({
      at: cuts[0] ?? 0,
      instructions: changed,
      tools: ["sow"],
      toolResults: [{ callId: await firstCall(store, runId), output: "ripe already" }],
      budget: { maxTurns: 2 },
      runId: formatRunId("fork2"),
    });
    await last.result();
    return [...runs, last.runId];
  },
  outputs: ["sown", "reaped", "reaped later", "edited: true, denied: true"],
  world: {
    branches: 1,
    answering: ({ name, body }) =>
      name === "model"
        ? modelAnswer(
            lengthOf(body),
            isChanged(body) ? saidChanged(body) : (said[lengthOf(body)] ?? { text: "?" }),
          )
        : toolAnswer(name, body),
  },
};
