import { FatalError } from "../../src/kernel/index.ts";
import { formatRunId, type JsonValue, type WorkflowContext } from "../../src/kernel/index.ts";
import { workflow } from "../../src/assembly/workflow.ts";
import type { ServerAddress } from "../../src/testing/served-call.ts";
import { untilEvent } from "./until-event.ts";
import { effect, mail, startOf } from "./workflow-workloads.ts";
import { toolAnswer, type Workload } from "./workload.ts";

const failedRun = formatRunId("failed-saga");
const cancelledRun = formatRunId("cancelled-saga");

/** A call of the counting server as a step. */
function call(ctx: WorkflowContext, server: ServerAddress, name: string): Promise<JsonValue> {
  return ctx.step(
    name,
    async ({ idempotencyKey }) => (await effect(server, name, idempotencyKey, null)).answer,
  );
}

/** A step with its compensation, which succeeds in its second attempt. */
async function reserve(ctx: WorkflowContext, server: ServerAddress, name: string): Promise<void> {
  await call(ctx, server, name);
  await ctx.compensate(
    `undo ${name}`,
    async ({ attempt, idempotencyKey, reason }) => {
      await effect(server, `undo ${name}`, `${idempotencyKey} ${attempt}`, { attempt, reason });
      if (name === "two" && attempt === 1) throw new Error("not yet");
    },
    { retry: { baseDelayMs: 4, jitter: 0 } },
  );
}

/**
 * Six steps with a compensation each: alone, in branches and within a time limit. One run fails after them. Another run
 * is cancelled while it waits, and then takes an uncancellable step.
 */
const saga: Workload = {
  runtime: { suspendAfterMs: 2 },
  agents: (server) => [
    workflow("saga", async (ctx, input) => {
      try {
        for (const name of ["one", "two"]) await reserve(ctx, server, name);
        await ctx.timeout("1 hour", async (branch) => {
          for (const name of ["three", "four"]) await reserve(branch, server, name);
        });
        await ctx.parallel({
          left: (branch) => reserve(branch, server, "five"),
          right: (branch) => branch.sleep(1),
        });
        await reserve(ctx, server, "six");
        if (input === "fails") throw new FatalError("declined");
        await ctx.waitForSignal("never");
      } finally {
        await ctx.uncancellable((branch) => call(branch, server, "report"));
      }
    }),
  ],
  drive: async (hands) => [
    ...(await startOf(failedRun, "fails")(hands)),
    ...(await startOf(cancelledRun, null)(hands)),
  ],
  outputs: [null, null],
  world: {
    branches: 2,
    sideBySide: true,
    answering: ({ name, body }) => toolAnswer(name, body),
    visitor: async ({ store, signal }) => {
      const waits = (name: string): boolean => name === "signal never";
      await untilEvent(
        store,
        cancelledRun,
        (event) => event.type === "task_suspend" && event.data.waitsFor.some(waits),
        signal,
      );
      await store.mailbox.put(
        mail(cancelledRun, "stop", { type: "cancel", taskId: "t0" as never, reason: "enough" }),
      );
    },
  },
};

const patchedRun = formatRunId("patched");

/** Decisions of `ctx.patched` alone, in branches and after a wait that drops the run from memory. */
const patched: Workload = {
  runtime: { suspendAfterMs: 2 },
  agents: (server) => [
    workflow("patched", async (ctx) => {
      const first = ctx.patched("first");
      await call(ctx, server, first ? "new" : "old");
      const { left } = await ctx.parallel({
        left: async (branch) => {
          await branch.sleep(4);
          await call(branch, server, branch.patched("branch") ? "new left" : "old left");
          return branch.patched("branch");
        },
        right: (branch) => branch.sleep(8),
      });
      await call(ctx, server, ctx.patched("last") ? "new end" : "old end");
      return [first, left, ctx.patched("first"), ctx.patched("last")];
    }),
  ],
  drive: startOf(patchedRun, null),
  outputs: [[true, true, true, true]],
  world: { branches: 2, sideBySide: true, answering: ({ name, body }) => toolAnswer(name, body) },
};

const roundsRun = formatRunId("rounds");

/** A run that starts its history anew twice. A signal that arrived in the first history is read in the last one. */
const continued: Workload = {
  runtime: { suspendAfterMs: 2 },
  agents: (server) => [
    workflow("continued", { input: { type: "integer" } as const }, async (ctx, round) => {
      await call(ctx, server, `round ${round}`);
      await ctx.sleep(4);
      if (round < 3) return ctx.continueAsNew(round + 1);
      return { round, paid: (await ctx.waitForSignal("paid")) ?? null };
    }),
  ],
  drive: startOf(roundsRun, 1),
  outputs: [{ round: 3, paid: 900 }],
  world: {
    branches: 1,
    sideBySide: true,
    answering: ({ name, body }) => toolAnswer(name, body),
    visitor: async ({ store, signal }) => {
      await untilEvent(store, roundsRun, ({ type }) => type === "task_start", signal);
      await store.mailbox.put(
        mail(roundsRun, "paid", { type: "resolve", taskId: "t0" as never, wait: "signal paid", value: 900 }),
      );
    },
  },
};

/** Workloads of workflows that undo their work or live long, by the name that a worker receives. */
export const sagaWorkloads: Readonly<Record<string, Workload>> = { saga, patched, continued };
