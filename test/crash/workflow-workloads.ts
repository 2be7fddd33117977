import { Agent } from "../../src/assembly/agent.ts";
import { workflow } from "../../src/assembly/workflow.ts";
import {
  formatRunId,
  type HostedAgent,
  type HostedWorkflow,
  type JsonValue,
  type Mail,
  type MailBody,
  type RunId,
} from "../../src/kernel/index.ts";
import { callServer, type ServerAddress } from "../../src/testing/served-call.ts";
import { modelOf } from "./composed-workloads.ts";
import { untilEvent } from "./until-event.ts";
import { ampleBudget as budget, lengthOf, modelAnswer, toolAnswer, type Workload } from "./workload.ts";

/** A call of the counting server as the effect of a step. The value is the answer, with the receipt. */
async function effect(
  server: ServerAddress,
  name: string,
  key: string,
  body: JsonValue,
): Promise<{ readonly receipt: string; readonly answer: JsonValue }> {
  return { ...(await callServer(server, { name, key, body })) };
}

function startOf(runId: RunId, input: JsonValue): Workload["drive"] {
  return async ({ runtime, agent }) => {
    const run = await runtime.start(agent as HostedAgent & HostedWorkflow<JsonValue>, input, { runId });
    await run.result();
    return [runId];
  };
}

const orderRun = formatRunId("order");

/** A workflow with steps, concurrent branches, an agent and a signal that arrives before it is awaited. */
const order: Workload = {
  runtime: { suspendAfterMs: 2 },
  agents: (server) => {
    const clerk = new Agent({ name: "clerk", model: modelOf(server, "main"), budget });
    const input = { type: "object", properties: { cents: { type: "integer" } } } as const;
    return [
      workflow("order", { input, agents: [clerk] }, async (ctx, { cents = 0 }) => {
        const reserved = await ctx.step("reserve", ({ idempotencyKey }) =>
          effect(server, "reserve", idempotencyKey, { cents }),
        );
        const said = await ctx.agent(clerk, "Is it in stock?");
        const paid = await ctx.waitForSignal("paid");
        const { left } = await ctx.parallel({
          left: (branch) =>
            branch.step("pack", ({ idempotencyKey }) => effect(server, "pack", idempotencyKey, null)),
          right: (branch) => branch.sleep(1),
        });
        return { reserved: reserved.answer, said, paid: paid ?? null, packed: left.answer };
      }),
    ];
  },
  drive: startOf(orderRun, { cents: 900 }),
  outputs: [
    {
      reserved: { did: "reserve", with: { cents: 900 } },
      said: "Yes.",
      paid: 900,
      packed: { did: "pack", with: null },
    },
  ],
  world: {
    branches: 2,
    sideBySide: true,
    answering: ({ name, body }) =>
      name === "model" ? modelAnswer(lengthOf(body), { text: "Yes." }) : toolAnswer(name, body),
    visitor: async ({ store, signal }) => {
      await untilEvent(store, orderRun, ({ type }) => type === "task_start", signal);
      await store.mailbox.put(
        mail(orderRun, "paid", { type: "resolve", taskId: "t0" as never, wait: "signal paid", value: 900 }),
      );
    },
  },
};

function mail(runId: RunId, id: string, body: MailBody): Mail {
  return { id, runId, from: "a person", at: 1, body };
}

/** Workloads of durable functions, by the name that a worker receives. */
export const workflowWorkloads: Readonly<Record<string, Workload>> = { order };
