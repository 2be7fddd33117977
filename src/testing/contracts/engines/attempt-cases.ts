import type { AttemptContext, JsonValue, MeteredResult } from "../../../kernel/index.ts";
import {
  agentOf,
  casesOf,
  eventOf,
  eventsOf,
  runIn,
  type EngineHarness,
  type EngineRuntimeOptions,
} from "./engine-world.ts";

/** Prices at which a dollar pays for a thousand output tokens, and input costs nothing. */
const priced: EngineRuntimeOptions = { prices: { find: () => ({ inputUsd: 0, outputUsd: 1e-3 }) } };
const request = { provider: "contract", model: "metered", inputTokens: 10, maxOutputTokens: 100 };
const question = { toolName: "write", callId: "call-1", input: { path: "a.txt" }, reason: "writes a file" };

/** Returns the result of a metered call that has produced `outputTokens` tokens. */
function used<Value extends JsonValue>(value: Value, outputTokens: number): MeteredResult<Value> {
  return { value, usage: { inputTokens: 10, outputTokens } };
}

/** Rounds costs to nano-USD, because sums of floating-point numbers differ in their last digits. */
function rounded(costUsd: number | null): number {
  return Number((costUsd ?? 0).toFixed(9));
}

/** Cases about `ctx.metered` and about the calls of a live process. */
export function attemptCases(harness: EngineHarness): void {
  const { expect } = harness;
  const declare = casesOf(harness);

  declare(
    "attempt: the calls of an attempt run at the same time, and the value of the attempt is recorded once",
    async (world) => {
      const runtime = await world.open("one", priced);
      let bodies = 0;
      let open = 0;
      const agent = agentOf("employee", async (ctx) => {
        const value = await ctx.attempt("program", async (attempt) => {
          bodies++;
          const all = Promise.withResolvers<void>();
          const call = (): Promise<number> =>
            attempt.metered(request, async () => {
              if (++open === 3) all.resolve();
              await all.promise;
              return used(1, 20);
            });
          const values = await Promise.all([call(), call(), call()]);
          return values.length;
        });
        await ctx.waitForSignal("go");
        return value;
      });
      const run = await runtime.submit(agent, null);
      await eventOf(run, "task_suspend");
      const next = await world.takeOver(runtime, run, agent, priced);
      await next.signal("go", null);
      const { status, output, costUsd } = await next.result();
      expect([status, output, bodies]).toEqual(["completed", 3, 1]);
      expect(rounded(costUsd)).toBe(0.06);
      expect((await eventsOf(next)).filter(({ type }) => type === "metered_call").length).toBe(3);
    },
  );

  declare(
    "attempt: the next owner of a run starts another attempt and withdraws the open question of the last one",
    async (world) => {
      const runtime = await world.open("one", priced);
      const attempts: number[] = [];
      const keys = new Set<string>();
      const agent = agentOf("employee", async (ctx) =>
        ctx.attempt("program", async (attempt: AttemptContext) => {
          attempts.push(attempt.number);
          keys.add(attempt.idempotencyKey);
          await attempt.metered(request, async () => used(null, 50));
          const { decision } = await attempt.approval(question);
          return decision;
        }),
      );
      const run = await runtime.submit(agent, null);
      const { data: first } = await eventOf(run, "approval_request");
      const next = await world.takeOver(runtime, run, agent, priced);
      const { data: second } = await eventOf(next, "approval_request", 2);
      expect(second.approvalId === first.approvalId).toBe(false);
      const pending = await next.pendingApprovals();
      expect(pending.map(({ approvalId }) => approvalId)).toEqual([second.approvalId]);
      const withdrawn = (await eventsOf(next)).flatMap((event) =>
        event.type === "approval_decision" ? [[event.data.approvalId, event.data.decision.by]] : [],
      );
      expect(withdrawn).toEqual([[first.approvalId, "runtime"]]);
      await next.approve(second.approvalId, { decision: "approved" });
      const { status, output, costUsd } = await next.result();
      expect([status, output]).toEqual(["completed", "approved"]);
      expect(attempts).toEqual([1, 2]);
      expect(keys.size).toBe(1);
      // Both attempts are paid.
      expect(rounded(costUsd)).toBe(0.1);
    },
  );

  declare(
    "attempt: a question that the body of an attempt leaves open is withdrawn when the attempt ends",
    async (world) => {
      const runtime = await world.open("one", priced);
      const agent = agentOf("employee", async (ctx) => {
        await ctx.attempt("program", async (attempt) => {
          void attempt.approval(question).catch(() => undefined);
          return attempt.step("work", async () => "done");
        });
        await ctx.waitForSignal("go");
        return "over";
      });
      const run = await runtime.submit(agent, null);
      await eventOf(run, "approval_decision");
      expect(await run.pendingApprovals()).toEqual([]);
      await run.signal("go", null);
      expect((await run.result()).output).toBe("over");
    },
  );

  declare(
    "metered: a metered call that does not fit the budget is refused, and is made after a top-up",
    async (world) => {
      const runtime = await world.open("one", priced);
      const billed: number[] = [];
      const agent = agentOf("employee", async (ctx) =>
        ctx.attempt("program", async (attempt) => {
          for (let call = 0; call < 12; call++)
            await attempt.metered(request, async ({ outputLimit }) => {
              billed.push(outputLimit);
              return used(null, outputLimit);
            });
          return "done";
        }),
      );
      const run = await runtime.submit(agent, null, { budget: { maxCostUsd: 0.25 } });
      const { status, costUsd } = await run.result();
      expect(status).toBe("budget_exhausted");
      expect(billed).toEqual([100, 100, 50]);
      expect(rounded(costUsd)).toBe(0.25);
      await run.topUp({ maxCostUsd: 0.2 });
      const again = await runIn(runtime, run);
      const second = await again.result();
      expect([second.status, rounded(second.costUsd)]).toEqual(["budget_exhausted", 0.45]);
      expect(billed).toEqual([100, 100, 50, 100, 100]);
    },
  );

  declare(
    "metered: a refused call costs nothing, and a call that fails without usage costs its input and its output limit",
    async (world) => {
      const runtime = await world.open("one", {
        prices: { find: () => ({ inputUsd: 1e-3, outputUsd: 1e-3 }) },
      });
      const agent = agentOf("employee", async (ctx) => {
        await ctx.metered(request, async () => ({ value: null, usage: null }));
        await ctx
          .metered({ ...request, inputTokens: 500 }, async (call) => {
            call.report({ inputTokens: 7, outputTokens: 0 });
            throw new Error("the connection was cut");
          })
          .catch(() => null);
        return ctx.metered(request, async () => used("done", 3));
      });
      const run = await runtime.submit(agent, null);
      const { status, costUsd } = await run.result();
      expect(status).toBe("completed");
      // The last call used 13 tokens, and the lost one is charged with 7 of input and its output limit of 100.
      expect(rounded(costUsd)).toBe(0.12);
      const calls = (await eventsOf(run)).flatMap((event) =>
        event.type === "metered_call" ? [event.data.status] : [],
      );
      expect(calls).toEqual(["refused", "error", "ok"]);
    },
  );
}
