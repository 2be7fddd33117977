import { object, shared } from "../../src/assembly/object.ts";
import { workflow } from "../../src/assembly/workflow.ts";
import {
  formatRunId,
  type HostedAgent,
  type HostedWorkflow,
  type JsonValue,
  type RunHandle,
  type RunId,
  type WorkflowContext,
} from "../../src/kernel/index.ts";
import { createClient } from "../../src/runtime/store-client.ts";
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

/** L19: three calls of one key. The states of this key, and of the key that the handler calls, count each call once. */
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

/** L17: four runs of two keys. Of one key one run may run at a time, and of all runs two may start within 5 ms. */
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

const joinedIds = ["join-1", "join-2", "join-3", "first", "second"] as const;

/**
 * L20: three starts become one run when the last start has come. Two starts with different keys wait for their time.
 * Each input is in exactly one run.
 */
const joined: Workload = {
  runtime: { suspendAfterMs: 2 },
  agents: (server) => {
    const write = (name: string, ctx: Pick<WorkflowContext, "step">, input: JsonValue): Promise<JsonValue> =>
      ctx.step(name, async ({ idempotencyKey }) => {
        const { answer } = await effect(server, name, idempotencyKey, input);
        return answer;
      });
    const load = workflow("load", { batch: { size: 3, ms: 3_600_000 } }, (ctx, inputs) =>
      write("load", ctx, inputs as JsonValue),
    );
    const debounce = {
      key: ({ input }: { readonly input: JsonValue }) => input as string,
      ms: 60_000,
      maxMs: 1,
    };
    return [load, workflow("index", { debounce }, (ctx, input) => write("index", ctx, input))];
  },
  drive: async ({ runtime, agent, others: [index = agent] }) => {
    const runs = new Map<RunId, Pick<RunHandle<unknown>, "result">>();
    for (const name of joinedIds) {
      const hosted = name.startsWith("join") ? agent : index;
      const run = await runtime.start(hosted as HostedAgent & HostedWorkflow<JsonValue>, name, {
        runId: formatRunId(name),
      });
      runs.set(run.runId, run);
    }
    for (const run of runs.values()) await run.result();
    return [...runs.keys()];
  },
  outputs: [
    { did: "load", with: ["join-1", "join-2", "join-3"] },
    { did: "index", with: "first" },
    { did: "index", with: "second" },
  ],
  world: { sideBySide: true, branches: 2, answering: ({ name, body }) => toolAnswer(name, body) },
};

/**
 * L18: a worker takes over runs that were started by name and queues them at the limit of the workflow. It refuses one
 * of the runs.
 */
const adoption: Workload = {
  runtime: { suspendAfterMs: 2 },
  agents: (server) => [
    workflow(
      "adopted",
      {
        input: { type: "object", properties: { name: { type: "string" } }, required: ["name"] } as const,
        concurrency: { limit: 1 },
      },
      async (ctx, { name }) => {
        const { answer } = await ctx.step("adopt", ({ idempotencyKey }) =>
          effect(server, "adopt", idempotencyKey, name),
        );
        await ctx.sleep(1);
        return answer;
      },
    ),
  ],
  drive: async ({ store }) => {
    const client = await createClient({ store, keepAlive: false });
    const runs = [];
    for (const name of ["one", "two"])
      runs.push(await client.start("adopted", { name }, { runId: formatRunId(name) }));
    const refused = await client.start("adopted", { title: "three" }, { runId: formatRunId("three") });
    for (const run of runs) await run.result();
    const { error } = await refused.result();
    if (error?.code !== "invalid_argument") throw new Error(`the wrong input ended with ${error?.code}`);
    return runs.map(({ runId }) => runId);
  },
  outputs: [
    { did: "adopt", with: "one" },
    { did: "adopt", with: "two" },
  ],
  world: { sideBySide: true, branches: 1, answering: ({ name, body }) => toolAnswer(name, body) },
};

/** Workloads of objects, limits and starts, by the name that a worker receives. */
export const objectWorkloads: Readonly<Record<string, Workload>> = { objects, limits, joined, adoption };
