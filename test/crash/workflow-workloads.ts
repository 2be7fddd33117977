import { Agent } from "../../src/assembly/agent.ts";
import { signal as typedSignal, update } from "../../src/assembly/workflow-messages.ts";
import { workflow } from "../../src/assembly/workflow.ts";
import {
  FatalError,
  formatRunId,
  type Event,
  type Fault,
  type HostedAgent,
  type HostedWorkflow,
  type JsonValue,
  type Mail,
  type MailBody,
  type RunId,
  type WorkflowContext,
  type WorkflowStepContext,
} from "../../src/kernel/index.ts";
import { StoredRunHandle } from "../../src/runtime/client/run-handle.ts";
import { storedPromise } from "../../src/runtime/client/stored-promise.ts";
import { systemClock } from "../../src/runtime/index.ts";
import { RuntimeLifetime } from "../../src/runtime/process/runtime-lifetime.ts";
import { SizeLimit } from "../../src/runtime/process/size-limit.ts";
import { callServer, type ServerAddress } from "../../src/testing/served-call.ts";
import { modelOf } from "./composed-workloads.ts";
import { untilEvent } from "./until-event.ts";
import { ampleBudget as budget, lengthOf, modelAnswer, toolAnswer, type Workload } from "./workload.ts";

/** A call of the counting server as the effect of a step. The value is the answer, with the receipt. */
export async function effect(
  server: ServerAddress,
  name: string,
  key: string,
  body: JsonValue,
): Promise<{ readonly receipt: string; readonly answer: JsonValue }> {
  return { ...(await callServer(server, { name, key, body })) };
}

export function startOf(runId: RunId, input: JsonValue): Workload["drive"] {
  return async ({ runtime, agent }) => {
    const run = await runtime.start(agent as HostedAgent & HostedWorkflow<JsonValue>, input, { runId });
    await run.result();
    return [runId];
  };
}

const orderRun = formatRunId("order");
const payment = typedSignal("paid", { type: "integer" } as const);

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
        const paid = await ctx.waitForSignal(payment);
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

const retryRun = formatRunId("retries");

/**
 * Steps that fail twice, one after the other and in concurrent branches. Between the attempts the run is not in memory.
 * Each attempt is a separate call, so that a repeated attempt is detected.
 */
const retries: Workload = {
  runtime: { suspendAfterMs: 2 },
  agents: (server) => [
    workflow("retries", async (ctx) => {
      const flaky =
        (name: string) =>
        async ({ attempt, idempotencyKey }: WorkflowStepContext): Promise<JsonValue> => {
          const { answer } = await effect(server, name, `${idempotencyKey} ${attempt}`, { attempt });
          if (attempt < 3) throw new Error(`${name} failed in attempt ${attempt}`);
          return answer;
        };
      const retry = { baseDelayMs: 8, jitter: 0, factor: 1 };
      const first = await ctx.step("first", flaky("first"), { retry });
      const { left, right } = await ctx.parallel({
        left: (branch) => branch.step("left", flaky("left"), { retry }),
        right: (branch) => branch.step("right", flaky("right"), { retry }),
      });
      const failed = await ctx
        .step("failing", flaky("failing"), { retry: { ...retry, maxAttempts: 2 } })
        .catch((error: unknown) => (error as Error).message);
      return { first, left, right, failed };
    }),
  ],
  drive: startOf(retryRun, null),
  outputs: [
    {
      first: { did: "first", with: { attempt: 3 } },
      left: { did: "left", with: { attempt: 3 } },
      right: { did: "right", with: { attempt: 3 } },
      failed: "failing failed in attempt 2",
    },
  ],
  world: { branches: 2, sideBySide: true, answering: ({ name, body }) => toolAnswer(name, body) },
};

const timingRun = formatRunId("timing");

/** Sleeps, work within a limit of time, and work that exceeds it. */
const timing: Workload = {
  runtime: { suspendAfterMs: 2 },
  agents: (server) => [
    workflow("timing", async (ctx) => {
      const call = (own: WorkflowContext, name: string): Promise<JsonValue> =>
        own.step(
          name,
          async ({ idempotencyKey }) => (await effect(server, name, idempotencyKey, null)).answer,
        );
      const before = await call(ctx, "before");
      await ctx.sleep("5 ms");
      const within = await ctx.timeout("1 hour", async (branch) => {
        await branch.sleep(4);
        return call(branch, "within");
      });
      const late = await ctx
        .timeout(8, async (branch) => (await branch.waitForSignal("never")) ?? null)
        .catch((error: unknown) => (error as Error).message);
      return { before, within, late, after: await call(ctx, "after") };
    }),
  ],
  drive: startOf(timingRun, null),
  outputs: [
    {
      before: { did: "before", with: null },
      within: { did: "within", with: null },
      late: "the work inside ctx.timeout() took longer than 8 ms",
      after: { did: "after", with: null },
    },
  ],
  world: { branches: 1, sideBySide: true, answering: ({ name, body }) => toolAnswer(name, body) },
};

const updateRun = formatRunId("updates");
const add = update("add", { input: { type: "integer" }, output: { type: "integer" } } as const);

/** Updates with an effect each, one of them sent twice and one refused. Their sender checks the replies. */
const updates: Workload = {
  runtime: { suspendAfterMs: 2 },
  agents: (server) => [
    workflow("updates", async (ctx) => {
      let sum = 0;
      while (sum < 12) {
        ctx.publish("sum", sum);
        const handle = (by: number): Promise<number> =>
          ctx.step("add", async ({ idempotencyKey }) => {
            await effect(server, "add", idempotencyKey, { sum, by });
            return sum + by;
          });
        const handled = await ctx.handleUpdate(add, handle);
        if (handled?.status === "completed") sum = handled.reply;
      }
      return sum;
    }),
  ],
  drive: startOf(updateRun, null),
  outputs: [12],
  world: {
    branches: 1,
    sideBySide: true,
    answering: ({ name, body }) => toolAnswer(name, body),
    visitor: async ({ store, signal }) => {
      await untilEvent(store, updateRun, ({ type }) => type === "task_start", signal);
      const record = await store.journal.find(updateRun);
      if (record === undefined) throw new Error(`${updateRun} does not exist`);
      const ids = { next: () => crypto.randomUUID() };
      const run = new StoredRunHandle({ store, clock: systemClock, ids, record });
      const refused = await run
        .update("add", "much", { id: "wrong" })
        .catch((error: unknown) => (error as Fault).code);
      const twice = await Promise.all([1, 2].map(() => run.update(add, 5, { id: "first" })));
      const replies = [refused, ...twice, await run.update(add, 7, { id: "last" })];
      if (JSON.stringify(replies) !== JSON.stringify(["invalid_argument", 5, 5, 12]))
        throw new Error(`the replies were ${JSON.stringify(replies)}`);
    },
  },
};

const callRun = formatRunId("calls");

/**
 * Runs that start other runs and await them later, also in branches, with parts of a budget, and items of which one
 * fails. Each effect of a started run has a key of that run, so that a run that was started twice is detected.
 */
const calls: Workload = {
  runtime: { suspendAfterMs: 2 },
  agents: (server) => {
    const call = (own: WorkflowContext, name: string, body: JsonValue = null): Promise<JsonValue> =>
      own.step(
        name,
        async ({ idempotencyKey }) => (await effect(server, name, idempotencyKey, body)).answer,
        { retry: false },
      );
    const called = workflow("called", async (ctx, input) => {
      await ctx.sleep(2);
      return { called: await call(ctx, "called", input) };
    });
    const part = { budget: { maxTurns: 2 } };
    return [
      workflow("calls", { agents: [called], budget: { maxTurns: 5 } }, async (ctx) => {
        const first = await ctx.start(called, "first", part);
        const before = await call(ctx, "before");
        const { second } = await ctx.parallel({
          second: (branch) => branch.call(called, "second", { ...part, id: "second" }),
          first,
        });
        const items = await ctx.map(
          [1, 2, 3],
          async (item, branch) => {
            const answer = await call(branch, `item${item}`);
            if (item === 2) throw new FatalError("two");
            return answer;
          },
          { concurrency: 2 },
        );
        const mapped = items.map((item) => (item.status === "fulfilled" ? item.value : item.reason.message));
        return { before, first: await first.result(), second, mapped };
      }),
      called,
    ];
  },
  drive: startOf(callRun, null),
  outputs: [
    {
      before: { did: "before", with: null },
      first: { called: { did: "called", with: "first" } },
      second: { called: { did: "called", with: "second" } },
      mapped: [{ did: "item1", with: null }, "two", { did: "item3", with: null }],
    },
  ],
  world: { branches: 3, sideBySide: true, answering: ({ name, body }) => toolAnswer(name, body) },
};

const promiseRun = formatRunId("promises");

/** A promise that is resolved from outside, and one that another workflow rejects. */
const promises: Workload = {
  runtime: { suspendAfterMs: 2 },
  agents: (server) => {
    const settler = workflow("settler", async (ctx, id) => {
      await ctx.step("judge", async ({ idempotencyKey }) => {
        const { answer } = await effect(server, "judge", idempotencyKey, null);
        return answer;
      });
      await ctx.rejectPromise(id as string, new FatalError("declined"));
      return null;
    });
    return [
      workflow("promises", async (ctx) => {
        const { id, promise } = ctx.promise({ type: "integer" } as const);
        const other = ctx.promise();
        ctx.publish("ids", [id, other.id]);
        const cents = await promise.result();
        const done = await ctx.step("done", async ({ idempotencyKey }) => {
          const { answer } = await effect(server, "done", idempotencyKey, { cents });
          return answer;
        });
        const failed = await other.promise.result().catch((error: unknown) => (error as Error).message);
        return { done, failed, again: await promise.result() };
      }),
      settler,
    ];
  },
  drive: async ({ runtime, agent, others: [settler] }) => {
    const run = await runtime.start(agent as HostedAgent & HostedWorkflow<JsonValue>, null, {
      runId: promiseRun,
    });
    let ids: readonly string[] | undefined;
    for await (const event of run.events({ types: ["value_published"] })) {
      if (event.type === "value_published") ids = event.data.value as unknown as readonly string[];
      break;
    }
    const judged = await runtime.start(settler as HostedAgent & HostedWorkflow<JsonValue>, ids?.[1] ?? null, {
      runId: formatRunId("settler"),
    });
    await Promise.all([run.result(), judged.result()]);
    return [promiseRun, judged.runId];
  },
  outputs: [{ done: { did: "done", with: { cents: 900 } }, failed: "declined", again: 900 }, null],
  world: {
    branches: 2,
    sideBySide: true,
    answering: ({ name, body }) => toolAnswer(name, body),
    visitor: async ({ store, signal }) => {
      const event = await untilEvent(store, promiseRun, ({ type }) => type === "value_published", signal);
      const [id] = (event as Event<"value_published">).data.value as unknown as readonly [string];
      const life = new RuntimeLifetime();
      const promise = storedPromise(
        { store, clock: systemClock, life, sizes: new SizeLimit(), scope: undefined },
        id,
      );
      if (!(await promise.resolve(900))) throw new Error("the promise was settled before");
      if (await promise.resolve(901)) throw new Error("the promise was settled twice");
    },
  },
};

export function mail(runId: RunId, id: string, body: MailBody): Mail {
  return { id, runId, from: "a person", at: 1, body };
}

/** Workloads of durable functions, by the name that a worker receives. */
export const workflowWorkloads: Readonly<Record<string, Workload>> = {
  order,
  retries,
  timing,
  calls,
  promises,
  updates,
};
