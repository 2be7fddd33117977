import { object, shared } from "../../src/assembly/object.ts";
import { workflow } from "../../src/assembly/workflow.ts";
import {
  formatRunId,
  type HostedAgent,
  type HostedWorkflow,
  type JsonValue,
} from "../../src/kernel/index.ts";
import type { ServerAddress } from "../../src/testing/served-call.ts";
import { effect } from "./workflow-workloads.ts";
import { toolAnswer, type Workload } from "./workload.ts";

/** An object that changes its state before, between and after its steps, and calls another key. */
function tallyOn(server: ServerAddress) {
  const state = { type: "integer", default: 0 } as const;
  const mirror = object(
    "mirror",
    { state },
    {
      add: async (ctx, by: number) => {
        ctx.setState(ctx.state + by);
        return ctx.state;
      },
      get: shared(async (ctx) => ctx.state),
    },
  );
  return object(
    "tally",
    { state, agents: [mirror] },
    {
      add: async (ctx, by: number) => {
        ctx.setState(ctx.state + by);
        await ctx.step("note", ({ idempotencyKey }) => effect(server, "note", idempotencyKey, { by }));
        const seen = await ctx.object(mirror, "all").add(1);
        ctx.setState(ctx.state + 100);
        await ctx.sleep(1);
        return [ctx.state, seen];
      },
      get: shared(async (ctx) => [ctx.state, await ctx.object(mirror, "all").get()]),
    },
  );
}

/** L19: three calls of a key. The state of the key, and of the key that they call, counts each call once. */
const objects: Workload = {
  runtime: { suspendAfterMs: 2 },
  agents: (server) => [tallyOn(server)],
  drive: async ({ runtime, agent }) => {
    const tally = runtime.object(agent as unknown as ReturnType<typeof tallyOn>, "a");
    const runs = [];
    for (const by of [1, 2, 3]) runs.push(await tally.send.add(by, { id: `call-${by}` }));
    for (const run of runs) await run.result();
    const last = await tally.send.get(null, { id: "last" });
    await last.result();
    return [...runs, last].map(({ runId }) => runId);
  },
  outputs: [
    [101, 1],
    [203, 2],
    [306, 3],
    [306, 3],
  ],
  world: { answering: ({ name, body }) => toolAnswer(name, body) },
};

/** L17: four runs of two keys, of which one of a key runs at a time, and two of all start within 5 ms. */
const limits: Workload = {
  runtime: { suspendAfterMs: 2 },
  agents: (server) => [
    workflow(
      "limited",
      {
        concurrency: { key: ({ input }) => (input as string).slice(0, 1), limit: 1 },
        rate: { limit: 2, perMs: 5 },
      },
      async (ctx, input) => {
        const { answer } = await ctx.step("work", ({ idempotencyKey }) =>
          effect(server, "work", idempotencyKey, input),
        );
        await ctx.sleep(1);
        return answer;
      },
    ),
  ],
  drive: async ({ runtime, agent }) => {
    const runs = [];
    for (const name of limitedNames)
      runs.push(
        await runtime.start(agent as HostedAgent & HostedWorkflow<JsonValue>, name, {
          runId: formatRunId(name),
        }),
      );
    for (const run of runs) await run.result();
    return runs.map(({ runId }) => runId);
  },
  outputs: ["a1", "b1", "a2", "b2"].map((name) => ({ did: "work", with: name })),
  world: { sideBySide: true, branches: 2, answering: ({ name, body }) => toolAnswer(name, body) },
};

const limitedNames = ["a1", "b1", "a2", "b2"] as const;

/** Workloads of objects and limits, by the name that a worker receives. */
export const objectWorkloads: Readonly<Record<string, Workload>> = { objects, limits };
