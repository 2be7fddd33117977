import { describe, expect, test } from "vitest";
import { z } from "zod";
import { openRuntime, type Runtime } from "../../src/entries/index.ts";
import { FatalError, workflow, type Workflow } from "../../src/entries/workflow.ts";
import { formatAgentId, type Fault, type JsonValue } from "../../src/kernel/index.ts";
import { withRuntime } from "./with-runtime.ts";

const double = workflow(
  "double",
  { input: z.object({ by: z.number().default(2), of: z.number() }), output: z.number() },
  async (ctx, { by, of }) => ctx.step("multiply", () => by * of),
);
const waiting = workflow("waiting", async (ctx) => (await ctx.waitForSignal("go")) ?? null);
const broken = workflow("broken", async () => Promise.reject(new FatalError("broken")));

describe("calls of workflows in a workflow", () => {
  test("ctx.start(), ctx.call() and handles in parallel, race and any return typed outputs", () =>
    withRuntime(async (runtime) => {
      const caller = workflow("caller", { agents: [double, waiting] }, async (ctx) => {
        const four = await ctx.start(double, { of: 2 });
        const never = await ctx.start(waiting, null);
        const six = await ctx.call(double, { of: 2, by: 3 });
        const both = await ctx.parallel({ four, again: (branch) => four.result(branch) });
        const raced = await ctx.race<JsonValue>({ never, four });
        const any = await ctx.any<JsonValue>({ never, failing: async () => broken.run(null), four });
        await never.cancel("not needed");
        const cancelled = await never
          .result()
          .catch(({ code, details }: Fault) => [code, details?.["status"]]);
        return { six, both, winners: [raced.winner, any.winner], cancelled: cancelled as JsonValue };
      });
      expect(await caller.run(null, { runtime })).toEqual({
        six: 6,
        both: { four: 4, again: 4 },
        winners: ["four", "four"],
        cancelled: ["child_failed", "cancelled"],
      });
    }));

  test("a started run that fails gives its caller child_failed with run id, status and failure, and fails the caller", () =>
    withRuntime(async (runtime) => {
      const caller = workflow("caller", { agents: [broken] }, (ctx) => ctx.call(broken, null, { id: "b" }));
      const run = await runtime.start(caller, null);
      const { status, error } = await run.result();
      expect([status, error]).toEqual([
        "failed",
        {
          code: "child_failed",
          message: "workflow broken ended as failed in run_b: broken",
          details: { runId: "run_b", status: "failed", failure: { code: "fatal", message: "broken" } },
        },
      ]);
    }));

  test("ctx.send() starts a run that continues after the end of its caller, or writes to an agent's inbox", () =>
    withRuntime(async (runtime) => {
      const clerk = formatAgentId({ name: "clerk" });
      const caller = workflow("caller", { agents: [waiting] }, async (ctx) => {
        await ctx.send(clerk, { hello: 1 });
        const refused = await ctx
          .send(clerk as never, null as never, { delayMs: 5 })
          .catch(({ code }: Fault) => code);
        return [await ctx.send(waiting, null, { delayMs: 1 }), refused];
      });
      const [runId, refused] = (await caller.run(null, { runtime })) as readonly string[];
      expect(refused).toBe("invalid_argument");
      const sent = await runtime.find(runId ?? "");
      await sent?.signal("go", 5);
      expect((await sent?.result())?.output).toBe(5);
    }));

  test("wrong arguments of ctx.start(), ctx.call() and ctx.send() are refused with a text that says what to use", () =>
    withRuntime(async (runtime) => {
      const texts: string[] = [];
      const caller = workflow("caller", { agents: [double] }, async (ctx) => {
        const note = async (call: Promise<unknown>): Promise<void> => {
          texts.push(await call.then(String, ({ message }: Error) => message));
        };
        await note(ctx.start(double, { of: "2" } as never));
        await note(ctx.start(broken, null));
        await note(ctx.start({} as never, null));
        await note(ctx.start(double, { of: 2 }, { onparentend: "cancel" } as never));
        await note(ctx.map({} as never, async () => null));
        await note(ctx.map([1], async () => null, { concurrency: 0 }));
        await note(ctx.any({}));
        return null;
      });
      await caller.run(null, { runtime });
      expect(texts).toMatchInlineSnapshot(`
        [
          "invalid input of workflow double: of Invalid input: expected number, received string",
          "caller calls broken, which is not registered with this runtime: list it in the option agents of workflow caller, or call runtime.register()",
          "invalid workflow an object of ctx.start(): expected a workflow; use workflow("name", async (ctx, input) => ...) of reeve/workflow",
          "unknown option "onparentend" of ctx.start(): use "onParentEnd"",
          "invalid items an object of ctx.map(): expected an array; use ctx.map(items, async (item, branch) => value)",
          "invalid concurrency 0 of ctx.map(): expected an integer from 1",
          "invalid branches of ctx.any(): expected at least one branch",
        ]
      `);
    }));
});

describe("the ends of workflows", () => {
  const failing = (fail: (attempt: number) => void): { attempts: () => number; flow: Workflow } => {
    let attempts = 0;
    const flow = workflow("failing", async (ctx) => {
      await ctx.step("first", () => null);
      fail(++attempts);
      return { attempts };
    });
    return { attempts: () => attempts, flow };
  };
  const retriesOf = async (runtime: Runtime, flow: Workflow): Promise<[string, number]> => {
    const run = await runtime.start(flow, null);
    const { status } = await run.result();
    let retries = 0;
    for await (const event of run.events()) if (event.type === "task_retry") retries++;
    return [status, retries];
  };

  test("an error of a workflow's function restarts it by runRetry, and the event task_retry records the restart", async () => {
    const runtime = await openRuntime({ store: "memory:", runRetry: { baseDelayMs: 1 } });
    const { flow } = failing((attempt) => {
      if (attempt < 3) throw new Error("not yet");
    });
    expect(await retriesOf(runtime, flow)).toEqual(["completed", 2]);
    await runtime.close();
  });

  test("ctx.call() of the same workflow is refused as a cycle if the input is the same, and is a recursion if it differs", () =>
    withRuntime(async (runtime) => {
      const sum: Workflow<number, number> = workflow(
        "sum",
        { input: z.number() },
        async (ctx, to): Promise<number> =>
          to === 0 ? ctx.call(sum, 0) : to + (await ctx.call(sum, to - 1)),
      );
      const below: Workflow<number, number> = workflow(
        "below",
        { input: z.number() },
        async (ctx, to): Promise<number> => (to === 0 ? 0 : to + (await ctx.call(below, to - 1))),
      );
      expect(await below.run(3, { runtime })).toBe(6);
      const { error } = await (await runtime.start(sum, 0)).result();
      expect(error).toMatchObject({
        code: "invalid_argument",
        message: expect.stringContaining("each run would start the next one without end"),
      });
      expect((await runtime.list({ agentId: sum.id })).runs.length).toBe(1);
    }));

  test("a TypeError of a workflow's function restarts it like another error, so that corrected code continues the run", async () => {
    const runtime = await openRuntime({ store: "memory:", runRetry: { baseDelayMs: 1 } });
    const { flow } = failing((attempt) => {
      if (attempt < 3) throw new TypeError("not a function");
    });
    expect(await retriesOf(runtime, flow)).toEqual(["completed", 2]);
    await runtime.close();
  });

  test("resume() of a workflow that a FatalError ended executes its function again on its recorded steps", () =>
    withRuntime(async (runtime) => {
      const { flow, attempts } = failing((attempt) => {
        if (attempt === 1) throw new FatalError("no");
      });
      const run = await runtime.start(flow, null);
      expect((await run.result()).status).toBe("failed");
      await run.resume();
      expect([(await run.result()).output, attempts()]).toEqual([{ attempts: 2 }, 2]);
    }));

  test("the error of a step that the function does not handle ends the workflow without a restart", () =>
    withRuntime(async (runtime) => {
      const flow = workflow("step", (ctx) =>
        ctx.step("fails", () => Promise.reject(new Error("no")), { retry: false }),
      );
      expect(await retriesOf(runtime, flow as Workflow)).toEqual(["failed", 0]);
    }));
});
