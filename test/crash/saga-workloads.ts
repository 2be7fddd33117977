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
 * Six steps, alone, in branches and within a limit of time, each with a compensation. One run fails after them, and one is
 * cancelled while it waits. The uncancellable step follows the cancel.
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

/** Workloads of workflows that undo their work or live long, by the name that a worker receives. */
export const sagaWorkloads: Readonly<Record<string, Workload>> = { saga };
