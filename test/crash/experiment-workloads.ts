import { Agent } from "../../src/assembly/agent.ts";
import { experiment } from "../../src/experiments/experiment.ts";
import { formatRunId, type JsonValue } from "../../src/kernel/index.ts";
import { callServer, servedModel, servedTool } from "../../src/testing/served-call.ts";
import { startOf } from "./workflow-workloads.ts";
import { ampleBudget as budget, lengthOf, modelAnswer, toolAnswer, type Workload } from "./workload.ts";

/**
 * A workload with two cases at the same time, each with a tool call, a scorer that calls the server, and a judge. It
 * needs no top-up.
 */
const evaluation: Workload = {
  runtime: { suspendAfterMs: 2 },
  agents: (server) => {
    const scope = (): string => "";
    const agent = new Agent({
      name: "clerk",
      model: servedModel(server, scope),
      tools: [servedTool(server, "look")],
      budget,
    });
    const judge = new Agent({ name: "judge", model: servedModel(server, scope), budget });
    return [
      experiment({
        name: "evaluation",
        agent,
        cases: ["one", "two"].map((id) => ({ id, input: `Case ${id}?` })),
        scorers: [
          async function measured({ caseId, output }) {
            const body = { caseId, output } as JsonValue;
            const { receipt } = await callServer(server, { name: "measure", key: caseId, body });
            return { score: 1, metadata: { receipt } };
          },
          {
            name: "judged",
            agents: [judge],
            score: async ({ caseId }, ctx) => Number(await ctx.agent(judge, `Is ${caseId} good?`)),
          },
        ],
        seats: 2,
      }),
    ];
  },
  drive: startOf(formatRunId("evaluation"), {}),
  outputs: [{ trials: 2 }],
  world: {
    branches: 2,
    sideBySide: true,
    // The result of a trial has its time and what its unreported calls were charged.
    ignore: ["value_published"],
    answering: ({ name, body }) => {
      if (name !== "model") return toolAnswer(name, body);
      const text = JSON.stringify(body);
      if (text.includes(" good?")) return modelAnswer(lengthOf(body), { text: "1" });
      if (lengthOf(body) > 1) return modelAnswer(lengthOf(body), { text: "An answer." });
      const at = /Case (\w+)/u.exec(text)?.[1] ?? "";
      return modelAnswer(lengthOf(body), { calls: [{ name: "look", input: { at } }] });
    },
  },
};

export const experimentWorkloads: Readonly<Record<string, Workload>> = { evaluation };
