import {
  FatalError,
  Transcript,
  userMessage,
  type HostedAgent,
  type HostedWorkflow,
  type JsonValue,
  type RunContext,
  type RunHandle,
} from "../../../kernel/index.ts";
import { scriptedModel } from "../../scripted-model.ts";
import {
  agentOf,
  casesOf,
  eventOf,
  eventsOf,
  runIn,
  spawnChild,
  suspended,
  workflowOf,
  type EngineHarness,
} from "./engine-world.ts";

/** Does a step and registers a compensation for it. Both write to `log`. */
async function doStep(ctx: RunContext, log: string[], name: string): Promise<void> {
  await ctx.step(name, async () => (log.push(name), null));
  await ctx.compensate(`undo ${name}`, async ({ status }) => log.push(`undo ${name} ${status}`));
}

const quick = { baseDelayMs: 1, jitter: 0 };

/** Cases about compensations and about code that is not interrupted by a cancel. */
export function compensationCases(harness: EngineHarness): void {
  const { expect } = harness;
  const declare = casesOf(harness);

  declare(
    "compensate: a failed workflow undoes its steps in reverse order, and cannot be resumed",
    async (world) => {
      const runtime = await world.open();
      const log: string[] = [];
      const order = workflowOf("order", async (ctx) => {
        for (const name of ["a", "b"]) await doStep(ctx, log, name);
        await ctx.step("fails", async () => Promise.reject(new FatalError("declined")));
      });
      const run = await runIn(runtime, await runtime.start(order, null));
      const { status, error } = await run.result();
      expect([status, error?.message]).toEqual(["failed", "declined"]);
      expect(log).toEqual(["a", "b", "undo b failed", "undo a failed"]);
      const started = (await eventsOf(run)).flatMap((event) =>
        event.type === "compensation_start" ? [event.data.names, event.data.status] : [],
      );
      expect(started).toEqual([["undo b", "undo a"], "failed"]);
      await expect(run.resume()).rejects.toMatchObject({ code: "invalid_argument" });
      await expect(run.topUp({ maxTurns: 1 })).rejects.toMatchObject({ code: "invalid_argument" });
    },
  );

  declare("compensate: a completed workflow undoes nothing", async (world) => {
    const runtime = await world.open();
    const log: string[] = [];
    const order = workflowOf("order", (ctx) => doStep(ctx, log, "a"));
    expect((await (await runtime.start(order, null)).result()).status).toBe("completed");
    expect(log).toEqual(["a"]);
  });

  declare(
    "J5, resume: a failed workflow without compensations continues with the failed step",
    async (world) => {
      const runtime = await world.open();
      let isBroken = true;
      const order = workflowOf("order", (ctx) =>
        ctx.step("flaky", async () => {
          if (isBroken) throw new FatalError("broken");
          return "mended";
        }),
      );
      const run = await runtime.start(order, null);
      expect((await run.result()).status).toBe("failed");
      isBroken = false;
      await run.resume();
      expect((await run.result()).output).toBe("mended");
    },
  );

  declare(
    "C2, compensate: a workflow undoes its steps after a cancel or its deadline, also a step that ended after the cancel",
    async (world) => {
      const runtime = await world.open();
      const log: string[] = [];
      const begun = Promise.withResolvers<void>();
      const waiting = workflowOf("waiting", async (ctx) => {
        await doStep(ctx, log, "a");
        await ctx.step("b", async ({ signal }) => {
          begun.resolve();
          await new Promise((resolve) => {
            signal.addEventListener("abort", resolve);
            if (ctx.input === "starts") resolve(null);
          });
          return null;
        });
        await ctx.compensate("undo b", async ({ reason }) => log.push(`undo b ${reason}`));
        await ctx.waitForSignal("never");
      });
      const run = await runtime.start(waiting, null);
      await begun.promise;
      await run.cancel("enough");
      expect((await run.result()).status).toBe("cancelled");
      expect(log).toEqual(["a", "undo b enough", "undo a cancelled"]);
      for (const deadlineMs of [100, 1_000, 10_000]) {
        log.length = 0;
        const late = await runtime.start(waiting, "starts", { budget: { deadlineMs } });
        expect((await late.result()).status).toBe("deadline_exceeded");
        // On a busy machine a short deadline may come before the second step has ended.
        if (log.length < 3 && deadlineMs < 10_000) continue;
        expect(log).toEqual(["a", "undo b deadline exceeded", "undo a deadline_exceeded"]);
        return;
      }
    },
  );

  declare(
    "C2, compensate: a saga of six steps that is cancelled after any of them undoes exactly the steps that were done",
    async (world) => {
      const logs = new Map<JsonValue, string[]>();
      const names = ["a", "b", "c", "d", "e", "f"];
      const saga = workflowOf("saga", async (ctx) => {
        const log = logs.get(ctx.input) ?? [];
        logs.set(ctx.input, log);
        for (const [index, name] of names.entries()) {
          if (index === ctx.input) await ctx.waitForSignal("never");
          await doStep(ctx, log, name);
        }
        await ctx.waitForSignal("never");
      });
      const one = await world.open("one");
      const runs: RunHandle[] = [];
      for (let done = 0; done <= names.length; done++)
        runs.push(await runIn(one, await one.start(saga, done)));
      for (const run of runs) await suspended(run, "t0");
      await one.close();
      const two = await world.open("two");
      two.register(saga);
      for (const [done, { runId }] of runs.entries()) {
        const run = await runIn(two, { runId });
        await run.cancel("enough");
        expect((await run.result()).status).toBe("cancelled");
        const expected = names.slice(0, done);
        const undone = expected.toReversed().map((name) => `undo ${name} cancelled`);
        expect(logs.get(done)).toEqual([...expected, ...undone]);
      }
    },
  );

  declare(
    "compensate: the next worker of a failed workflow continues with the next compensation",
    async (world) => {
      const log: string[] = [];
      const order = (): HostedWorkflow<JsonValue> =>
        workflowOf("order", async (ctx) => {
          await doStep(ctx, log, "a");
          // The replay returns one record for a limit of time, for the first success and for a map, without their branches.
          const doIn = async (branch: RunContext, name: string): Promise<null> => {
            await doStep(branch, log, name);
            return null;
          };
          await ctx.timeout("1 hour", (branch) => doIn(branch, "b"));
          await ctx.any({ only: (branch) => doIn(branch, "any") });
          await ctx.map(["item"], (item, branch) => doIn(branch, item));
          await ctx.compensate(
            "undo c",
            async ({ attempt }) => {
              log.push(`undo c ${attempt}`);
              if (attempt === 1) throw new Error("not yet");
            },
            { retry: { baseDelayMs: 300, jitter: 0 } },
          );
          throw new FatalError("no");
        });
      const one = await world.open("one");
      const run = await runIn(one, await one.start(order(), null));
      await suspended(run, "t0");
      const resumed = await world.takeOver(one, run, order());
      expect((await resumed.result()).status).toBe("failed");
      expect(log.slice(0, 6)).toEqual(["a", "b", "any", "item", "undo c 1", "undo c 2"]);
      const undone = ["undo item failed", "undo any failed", "undo b failed", "undo a failed"];
      expect(log.slice(6)).toEqual(undone);
    },
  );

  declare(
    "compensate: a compensation that fails or takes too long is reported, and the following ones are executed",
    async (world) => {
      const runtime = await world.open();
      const log: string[] = [];
      const order = workflowOf("order", async (ctx) => {
        await doStep(ctx, log, "a");
        const broken = async (): Promise<never> => Promise.reject(new Error("broken"));
        await ctx.compensate("broken", broken, { retry: { ...quick, maxAttempts: 2 } });
        await ctx.compensate("slow", async () => new Promise(() => undefined), { timeoutMs: 20 });
        throw new FatalError("no");
      });
      const run = await runIn(runtime, await runtime.start(order, null));
      const { error } = await run.result();
      expect(error?.message).toBe("no");
      const failed = error?.details?.["compensations"] as readonly {
        readonly name: string;
        readonly code: string;
      }[];
      expect(failed.map(({ name, code }) => [name, code])).toEqual([
        ["slow", "timeout"],
        ["broken", "internal"],
      ]);
      expect(log).toEqual(["a", "undo a failed"]);
    },
  );

  declare("compensate: cancelling a paused run undoes its work", async (world) => {
    const runtime = await world.open();
    const log: string[] = [];
    const order = workflowOf("order", async (ctx) => {
      await doStep(ctx, log, "a");
      await ctx.waitForSignal("never");
    });
    const run = await runIn(runtime, await runtime.start(order, null));
    await suspended(run, "t0");
    await run.pause();
    await eventOf(run, "run_pause");
    expect(log).toEqual(["a"]);
    await run.cancel("enough");
    expect((await run.result()).status).toBe("cancelled");
    expect(log).toEqual(["a", "undo a cancelled"]);
  });

  declare(
    "B5, compensate: a run that stops at its budget undoes nothing until it is cancelled, within its own budget",
    async (world) => {
      const runtime = await world.open();
      const log: string[] = [];
      const model = scriptedModel(["sorry", "never"]);
      const request = { transcript: Transcript.of([userMessage("hello")]), maxOutputTokens: 20 };
      const clerk: HostedAgent = agentOf("clerk", async (ctx) => (await ctx.llm(request)).stopReason, {
        models: { main: model },
      });
      const order = workflowOf(
        "order",
        async (ctx) => {
          await doStep(ctx, log, "a");
          await ctx.compensate("ask", async ({ ctx: inside }) => {
            const { status } = await inside.join(await spawnChild(inside, clerk));
            log.push(`asked ${status}`);
          });
          await ctx.llm(request);
        },
        { models: { main: model }, subAgents: [clerk], compensationBudget: { maxTurns: 1 } },
      );
      const run = await runIn(runtime, await runtime.start(order, null, { budget: { maxTurns: 0 } }));
      expect((await run.result()).status).toBe("budget_exhausted");
      expect(log).toEqual(["a"]);
      await run.cancel("enough");
      expect((await run.result()).status).toBe("cancelled");
      expect(log).toEqual(["a", "asked completed", "undo a cancelled"]);
    },
  );

  declare(
    "C2, uncancellable: neither a cancel nor a deadline stops an uncancellable branch or its child",
    async (world) => {
      const runtime = await world.open();
      const child = agentOf("child", async (ctx) => (await ctx.waitForSignal("go")) ?? null);
      const order = workflowOf(
        "order",
        async (ctx) => {
          const done = await ctx.uncancellable(async (branch) => {
            await branch.step("before", async () => null);
            const { status } = await branch.join(await spawnChild(branch, child));
            return branch.step("after", async () => status);
          });
          const refused = await ctx.step("more", async () => "done").catch(() => "refused");
          // After the cancel it runs as well.
          const last = await ctx.uncancellable((branch) => branch.step("last", async () => "last"));
          return [done, refused, last];
        },
        { subAgents: [child] },
      );
      const run = await runIn(runtime, await runtime.start(order, null));
      await suspended(run, "t0", "t1");
      await run.cancel("enough");
      await eventOf(run, "run_cancel");
      await run.signal("go", null, { taskId: "t1" });
      const { status, output } = await run.result();
      expect([status, output]).toEqual(["cancelled", ["completed", "refused", "last"]]);
    },
  );

  declare(
    "uncancellable: an uncancellable branch that exceeds its time limit fails with timeout",
    async (world) => {
      const runtime = await world.open();
      const order = workflowOf("order", async (ctx) =>
        ctx
          .uncancellable(async (branch) => (await branch.waitForSignal("never")) ?? null, { timeoutMs: 10 })
          .catch((error: { readonly code: string }) => error.code),
      );
      expect((await (await runtime.start(order, null)).result()).output).toBe("timeout");
    },
  );

  declare(
    "compensate: a compensation is refused in an agent, in the body of a step and with a wrong option",
    async (world) => {
      const runtime = await world.open();
      const codeOf = (work: Promise<unknown>): Promise<string> =>
        work.then(
          () => "accepted",
          (error: { readonly code: string }) => error.code,
        );
      const undo = async (): Promise<void> => undefined;
      const worker = agentOf("worker", (ctx) => codeOf(ctx.compensate("undo", undo)));
      expect((await (await runtime.submit(worker, null)).result()).output).toBe("invalid_argument");
      const order = workflowOf("order", async (ctx) => [
        await ctx.step("body", ({ ctx: inside }) => codeOf(inside.compensate("undo", undo))),
        await codeOf(ctx.compensate("", undo)),
        await codeOf(ctx.compensate("undo", undo, { timeout: 5 } as never)),
        await codeOf(ctx.uncancellable(async () => null, { timeoutMs: 0 })),
      ]);
      const { output } = await (await runtime.start(order, null)).result();
      expect(output).toEqual(Array(4).fill("invalid_argument"));
    },
  );
}
