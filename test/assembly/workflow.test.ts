import { describe, expect, test } from "vitest";
import { z } from "zod";
import { Agent, openRuntime } from "../../src/entries/index.ts";
import { FatalError, signal, workflow, type WorkflowContext } from "../../src/entries/workflow.ts";
import { formatAgentId, rootTaskId, type ToolMessage } from "../../src/kernel/index.ts";
import { FakeClock, scriptedModel } from "../../src/testing/index.ts";
import { withRuntime } from "./with-runtime.ts";

const order = workflow(
  "order",
  {
    description: "Prices an order",
    input: z.object({ cents: z.number().int(), currency: z.string().default("EUR") }),
    output: z.object({ price: z.string().transform((text) => `${text}!`) }),
  },
  async (ctx, { cents, currency }) => ({ price: await ctx.step("price", () => `${cents} ${currency}`) }),
);

describe("mistakes in the use of a workflow", () => {
  test("J2: a step that is not awaited fails the next step with journal_ambiguous, which names both steps", () =>
    withRuntime(async (runtime) => {
      const hasty = workflow("hasty", async (ctx) => {
        const reserve = ctx.step("reserve", () => "reserved");
        await ctx.step("charge", () => "charged");
        return reserve;
      });
      const { status, error } = await (await runtime.start(hasty, null)).result();
      expect([status, error?.code]).toEqual(["failed", "journal_ambiguous"]);
      expect(error?.message).toMatch(
        /^step charge was called while step reserve was in flight; await it first/u,
      );
    }));

  test("a signal to a run that has ended is refused, and the error says so", () =>
    withRuntime(async (runtime) => {
      const quick = workflow("quick", async () => null);
      const run = await runtime.start(quick, null);
      await run.result();
      await expect(run.signal(signal("paid", z.number()), 5)).rejects.toMatchObject({
        message: expect.stringMatching(/ended/u),
      });
    }));
});

describe("wrong arguments of a workflow", () => {
  test.each([5, "text", null, [], new Date(0), () => 1, { "~standard": 1 }])(
    "a workflow refuses a value that cannot be a schema, and names the owner of the schema: %o",
    (wrong) => {
      const input = wrong as never;
      const text = "expected a Standard Schema or a plain JSON Schema; use z.object({ ... })";
      expect(() => workflow("order", { input }, async () => null)).toThrow(text);
      expect(() => workflow("order", { output: input }, async () => null)).toThrow(
        "for the output schema of workflow order: ",
      );
      expect(() => signal("paid", input)).toThrow("for the schema of signal paid: ");
    },
  );

  test("a step refuses an empty idempotencyKey, and a function as its value, without a second attempt", () =>
    withRuntime(async (runtime) => {
      let calls = 0;
      const flow = workflow("steps", async (ctx) => {
        const texts: string[] = [];
        const note = ({ message }: Error): void => void texts.push(message);
        await ctx.step("keyed", () => null, { idempotencyKey: "" }).catch(note);
        const body = (): never => (() => ++calls) as never;
        await ctx.step("late", body).catch(note);
        return texts;
      });
      expect(await flow.run(null, { runtime })).toEqual([
        'invalid idempotencyKey "" of ctx.step(): expected a text that is not empty',
        "the value of step late is a function, which JSON cannot hold; call it in the step, and return its result",
      ]);
      expect(calls).toBe(0);
    }));

  test("start() refuses what is neither a workflow nor a name, and says what to use", () =>
    withRuntime(async (runtime) => {
      for (const wrong of [undefined, null, 5, {}])
        await expect(runtime.start(wrong as never, null as never)).rejects.toThrow(
          /^invalid workflow .+ of start\(\): expected a workflow; use workflow\(/u,
        );
    }));
});

describe("input and output of a workflow", () => {
  test("run() of a workflow returns the output after the schemas have applied their defaults and transforms once", async () => {
    expect(await order.run({ cents: 5 })).toEqual({ price: "5 EUR!" });
  });

  test("start() refuses an input that does not match the schema of the workflow, names the field, and stores no run", () =>
    withRuntime(async (runtime) => {
      await expect(runtime.start(order, { cents: "5" } as never)).rejects.toMatchObject({
        code: "invalid_argument",
        message: expect.stringMatching(/^invalid input of workflow order: cents /u),
      });
      expect((await runtime.list()).runs).toEqual([]);
    }));

  test("a workflow whose output does not match its schema fails at once, without a restart", () =>
    withRuntime(async (runtime) => {
      let executions = 0;
      const wrong = workflow("wrong", { output: z.object({ price: z.string() }) }, async () => {
        executions++;
        return { price: 5 } as never;
      });
      const { status, error } = await (await runtime.start(wrong, null)).result();
      expect([status, error?.code, executions]).toEqual(["failed", "invalid_argument", 1]);
      expect(error?.message).toMatch(/^invalid output of workflow wrong: price /u);
      await expect(wrong.run(null, { runtime })).rejects.toMatchObject({ code: "invalid_argument" });
    }));

  test("a workflow without schemas takes and returns any JSON value; a step without a value returns null", () =>
    withRuntime(async (runtime) => {
      const echo = workflow("echo", async (ctx, input) => {
        const nothing = await ctx.step("nothing", async () => {});
        return { input, nothing: nothing === null, runId: ctx.runId };
      });
      const run = await runtime.start(echo, ["a"], { runId: "run_echo", metadata: { shop: "eu" } });
      expect((await run.result()).output).toEqual({ input: ["a"], nothing: true, runId: "run_echo" });
      expect((await runtime.list({ metadata: { shop: "eu" } })).runs.length).toBe(1);
    }));

  test("schedules.create() refuses an input that the workflow refuses, and each fire starts the workflow", () =>
    withRuntime(async (runtime) => {
      const at = { name: "nightly", agent: order, at: Date.now() + 3_600_000 };
      await expect(runtime.schedules.create({ ...at, input: {} })).rejects.toMatchObject({
        code: "invalid_argument",
      });
      expect(await runtime.schedules.list()).toEqual([]);
      expect(await runtime.schedules.create({ ...at, input: { cents: 5 } })).toMatchObject({
        agentId: order.id,
      });
    }));

  test("S6: a run that is started through the view of a tenant exists only for this tenant", () =>
    withRuntime(async (runtime) => {
      const [acme, other] = [runtime.forTenant({ tenantId: "acme" }), runtime.forTenant({ tenantId: "b" })];
      const { runId } = await acme.start(order, { cents: 5 });
      expect([(await acme.find(runId))?.runId, await other.find(runId)]).toEqual([runId, undefined]);
    }));
});

describe("the retries of steps", () => {
  test.for([[undefined], [{ timeoutMs: 60_000 }], [{ retry: undefined } as object]])(
    "a step of a workflow with the options %j has 5 attempts by default, with growing delays",
    async ([options]) => {
      const clock = new FakeClock();
      const runtime = await openRuntime({ store: "memory:", clock, random: { next: () => 0.5 } });
      const flaky = workflow("flaky", (ctx) =>
        ctx.step("flaky", ({ attempt }) => Promise.reject(new Error(`no ${attempt}`)), options),
      );
      const run = await runtime.start(flaky, null);
      const delays: number[] = [];
      for await (const event of run.events()) {
        if (!("seq" in event)) continue;
        if (event.type === "step_retry") delays.push(event.data.delayMs);
        if (event.type === "task_suspend") await clock.advance(delays.at(-1) ?? 0);
      }
      expect(delays).toEqual([1_100, 2_200, 4_400, 8_800]);
      expect((await run.result()).error).toMatchObject({
        message: "no 5",
        details: { attempts: { length: 5 } },
      });
      await runtime.close();
    },
  );

  test("a step with retry: false has a single attempt", () =>
    withRuntime(async (runtime) => {
      const once = workflow("once", (ctx) =>
        ctx.step("once", ({ attempt }) => Promise.reject(new Error(`no ${attempt}`)), { retry: false }),
      );
      expect((await (await runtime.start(once, null)).result()).error?.message).toBe("no 1");
    }));

  test("no attempt of a step starts after the maxMs of its retry", async () => {
    const clock = new FakeClock();
    const runtime = await openRuntime({ store: "memory:", clock });
    const flaky = workflow("flaky", (ctx) =>
      ctx.step("flaky", ({ attempt }) => Promise.reject(new Error(`no ${attempt}`)), {
        retry: { maxMs: 2_500, baseDelayMs: 1_000, factor: 1, jitter: 0 },
      }),
    );
    const run = await runtime.start(flaky, null);
    for await (const event of run.events())
      if ("seq" in event && event.type === "task_suspend") await clock.advance(1_000);
    expect((await run.result()).error?.message).toBe("no 3");
    await runtime.close();
  });

  test("a FatalError that the function of a workflow does not handle fails the workflow without a restart", () =>
    withRuntime(async (runtime) => {
      let executions = 0;
      const declined = workflow("declined", async () => {
        executions++;
        throw new FatalError("declined", { details: { card: "visa" } });
      });
      await expect(declined.run(null, { runtime })).rejects.toMatchObject({
        code: "fatal",
        message: "declined",
        details: { card: "visa" },
      });
      await expect(declined.run(null, { runtime })).rejects.toBeInstanceOf(FatalError);
      expect(executions).toBe(2);
    }));

  test("invalid options of a step are refused with the name of the option", () =>
    withRuntime(async (runtime) => {
      const wrong = (options: object) =>
        workflow(`w${Object.keys(options)[0]}`, (ctx) => ctx.step("s", () => 1, options));
      for (const [options, text] of [
        [{ retries: 3 }, "retries"],
        [{ retry: { maxAttempts: 0 } }, "invalid maxAttempts 0 of retry of step s"],
        [{ timeoutMs: 0 }, "invalid timeoutMs 0"],
      ] as const)
        await expect(wrong(options).run(null, { runtime })).rejects.toMatchObject({
          code: "invalid_argument",
          message: expect.stringContaining(text),
        });
    }));
});

describe("sleeping and time limits of a workflow", () => {
  test("a workflow sleeps for a text or until a date, and starts after delayMs", async () => {
    const clock = new FakeClock();
    const runtime = await openRuntime({ store: "memory:", clock });
    const sleeper = workflow("sleeper", async (ctx) => {
      const first = await ctx.now();
      await ctx.sleep("2 hours");
      const second = await ctx.now();
      await ctx.sleep(new Date(second + 5));
      return [first, second, await ctx.now()];
    });
    const from = clock.now();
    const run = await runtime.start(sleeper, null, { delayMs: 1_000 });
    for (const ms of [1_000, 7_200_000, 5]) await clock.advance(ms);
    const start = from + 1_000;
    expect((await run.result()).output).toEqual([start, start + 7_200_000, start + 7_200_005]);
    await expect(runtime.start(sleeper, null, { delayMs: 1, startAt: 1 })).rejects.toMatchObject({
      message: expect.stringContaining("omit one of them"),
    });
    await runtime.close();
  });

  test("ctx.timeout() throws timeout, which fails the run at once; resume() gives the work its whole time again", async () => {
    const clock = new FakeClock();
    const runtime = await openRuntime({ store: "memory:", clock });
    const waits = workflow("waits", (ctx) =>
      ctx.timeout("1 hour", async (branch) => (await branch.waitForSignal("go")) ?? null),
    );
    const run = await runtime.start(waits, null);
    await clock.advance(3_600_000);
    expect((await run.result()).error).toMatchObject({
      code: "timeout",
      message: "the work inside ctx.timeout() took longer than 1 hour",
    });
    await run.resume();
    await clock.advance(1_800_000);
    await run.signal("go", "in time");
    expect((await run.result()).output).toBe("in time");
    await runtime.close();
  });

  test.for(["2 fortnights", "-5 s", "", Number.NaN, new Date(Number.NaN), null])(
    "ctx.sleep(%s) is refused",
    async (time) => {
      const sleeps = workflow("sleeps", (ctx) => ctx.sleep(time as never));
      await expect(sleeps.run(null)).rejects.toMatchObject({ code: "invalid_argument" });
    },
  );
});

test("a typed signal returns the value of its schema; a signal that was sent by name and does not match is refused by the wait", () =>
  withRuntime(async (runtime) => {
    const paid = signal("paid", z.object({ cents: z.number().transform((cents) => cents / 100) }));
    const bill = workflow("bill", async (ctx) => {
      const wrong = await ctx.waitForSignal(paid).catch((error: unknown) => (error as Error).message);
      const right = await ctx.waitForSignal(paid, { timeoutMs: 60_000 });
      return { wrong, cents: right?.cents ?? null };
    });
    const run = await runtime.start(bill, null);
    await expect(run.signal(paid, { cents: "9" } as never)).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining("invalid value of signal paid: cents"),
    });
    await run.signal("paid", "by name");
    await run.signal(paid, { cents: 900 }, { id: "event-1" });
    const { output } = await run.result();
    expect(output).toEqual({ wrong: expect.stringContaining("invalid value of signal paid"), cents: 9 });
    expect(() => signal("", z.string())).toThrow("invalid name");
  }));

describe("a workflow and agents", () => {
  const clerk = (...replies: Parameters<typeof scriptedModel>[0]) =>
    new Agent({ name: "clerk", model: scriptedModel(replies) });

  test("ctx.agent() returns the text of an agent, or its value if the agent has an output schema", () =>
    withRuntime(async (runtime) => {
      const helper = clerk("Yes.", '{"paid":true}');
      const asks = workflow("asks", { agents: [helper] }, async (ctx) => ({
        text: await ctx.agent(helper, "Is it paid?"),
        value: await ctx.agent(helper, "Is it paid?", { output: z.object({ paid: z.boolean() }) }),
      }));
      const run = await runtime.start(asks, null);
      const { output, turns } = await run.result();
      expect([output, turns]).toEqual([{ text: "Yes.", value: { paid: true } }, 2]);
    }));

  test("ctx.agent() throws child_failed with the status of an agent that fails", () =>
    withRuntime(async (runtime) => {
      const failing = {
        id: formatAgentId({ name: "failing" }),
        run: async () => Promise.reject(new TypeError("no")),
      };
      const asks = workflow("asks", { agents: [failing] }, (ctx) =>
        ctx.agent(failing, "?").catch((error) => ({ code: error.code, status: error.details.status })),
      );
      expect((await (await runtime.start(asks, null)).result()).output).toEqual({
        code: "child_failed",
        status: "failed",
      });
    }));

  test("ctx.agent() refuses an agent that is neither declared nor registered, with a hint", () =>
    withRuntime(async (runtime) => {
      const asks = workflow("asks", async (ctx) => ctx.agent(clerk("Yes."), "?"));
      const { error } = await (await runtime.start(asks, null)).result();
      expect(error).toMatchObject({ code: "not_found", message: expect.stringContaining("clerk") });
    }));

  test("asTool() runs a workflow as a child task, and the model receives its output, its failures and wrong arguments", () =>
    withRuntime(async (runtime) => {
      const broken = workflow("broken", { description: "Breaks" }, async (ctx) =>
        ctx.step("break", () => Promise.reject(new FatalError("no stock"))),
      );
      const call = (name: string, input: object) => ({ toolCalls: [{ name, input: input as never }] });
      const lead = new Agent({
        name: "lead",
        model: scriptedModel([call("order", { cents: 5 }), call("order", {}), call("broken", {}), "Done."]),
        tools: [order.asTool(), broken.asTool()],
      });
      const result = await lead.invoke("Go.", { runtime });
      const results = result.messages.filter((each): each is ToolMessage => each.role === "tool");
      const outputs = results.flatMap(({ content }) =>
        content.map(({ output, isError }) => ({ output, isError })),
      );
      expect(outputs).toMatchObject([
        { output: { value: { price: "5 EUR!" } } },
        {
          isError: true,
          output: { text: expect.stringContaining("invalid input of workflow order: cents") },
        },
        { isError: true, output: { text: expect.stringContaining("no stock") } },
      ]);
    }));

  test("asTool() refuses a workflow without a description, and a workflow whose input is no object", () => {
    expect(() => workflow("a", async () => null).asTool()).toThrow(
      "invalid description of asTool() of workflow a",
    );
    const text = workflow("b", { description: "B", input: z.string() }, async () => null);
    expect(() => text.asTool()).toThrow("invalid input schema of asTool() of workflow b");
  });
});

describe("refused workflows and calls", () => {
  test("workflow() refuses unknown options, a missing function and an invalid name", () => {
    expect(() => workflow("a", { inputs: {} } as never, async () => null)).toThrow("inputs");
    expect(() => workflow("a", {}, undefined as never)).toThrow("invalid function of workflow a");
    expect(() => workflow("a", undefined as never)).toThrow("invalid function of workflow a");
    expect(() => workflow("a b", async () => null)).toThrow("agent name");
    expect(() => workflow("a", { input: z.object({ at: z.date() }) }, async () => null)).toThrow(
      "the input schema of workflow a",
    );
  });

  test("a workflow output that JSON cannot hold fails the run, and the error names the place of the value", () =>
    withRuntime(async (runtime) => {
      const dated = workflow("dated", async () => ({ at: new Date() }) as never);
      const { error } = await (await runtime.start(dated, null)).result();
      expect(error).toMatchObject({
        code: "not_json",
        message: "the output of dated.at is a class instance; store its plain data instead",
      });
    }));

  test("start() refuses an agent, and options that a workflow does not have", () =>
    withRuntime(async (runtime) => {
      const agent = new Agent({ name: "clerk", model: scriptedModel(["Yes."]) });
      await expect(runtime.start(agent as never, null)).rejects.toMatchObject({
        message: expect.stringContaining("use submit() for an agent"),
      });
      await expect(runtime.start(order, { cents: 5 }, { sessionId: "a" } as never)).rejects.toMatchObject({
        message: expect.stringContaining("sessionId"),
      });
    }));

  const wrong = undefined as never;
  test.for<readonly [string, (ctx: WorkflowContext) => Promise<unknown>]>([
    ["invalid branch of ctx.timeout()", (ctx) => ctx.timeout(5, wrong)],
    ["invalid branch of ctx.uncancellable()", (ctx) => ctx.uncancellable(wrong)],
    ["invalid branch a of ctx.parallel()", (ctx) => ctx.parallel({ a: wrong })],
    ["invalid branch a of ctx.race()", (ctx) => ctx.race({ a: wrong })],
    ["invalid branch a of ctx.any()", (ctx) => ctx.any({ a: wrong })],
    ["invalid signal undefined of ctx.waitForSignal()", (ctx) => ctx.waitForSignal(wrong)],
    ["invalid signal undefined of ctx.sendSignal()", (ctx) => ctx.sendSignal("run_a", wrong)],
    ["invalid run undefined of ctx.sendSignal()", (ctx) => ctx.sendSignal(wrong, "go")],
    ["invalid agent undefined of ctx.agent()", (ctx) => ctx.agent(wrong, "Hello")],
  ])("a wrong argument of a ctx method in a workflow fails the run with %s", ([message, body]) =>
    withRuntime(async (runtime) => {
      const run = await runtime.start(workflow("wrong", body as never), null);
      expect((await run.result()).error?.message).toContain(message);
    }),
  );

  test("a message that is sent to a workflow becomes a dead letter that says how to start the workflow", () =>
    withRuntime(async (runtime) => {
      const plain = workflow("plain", async () => null);
      const sender = {
        id: formatAgentId({ name: "sender" }),
        subAgents: [plain],
        run: async (ctx: Parameters<Agent["run"]>[0]) => ctx.send(plain.id, "hello"),
      };
      await (await runtime.submit(sender, null)).result();
      let failed: string | undefined;
      while (failed === undefined) {
        const [run] = (await runtime.list({ agentId: plain.id })).runs;
        failed = run && (await (await runtime.find(run.runId))?.result())?.error?.message;
      }
      expect(failed).toContain("workflow plain takes no messages");
    }));
});

describe("compensations of a workflow", () => {
  test("a compensation calls an agent within compensationBudget, and the exhausted budget of the run is not charged", () =>
    withRuntime(async (runtime) => {
      const clerk = new Agent({ name: "clerk", model: scriptedModel(["Sorry."]) });
      const said: string[] = [];
      const booking = workflow(
        "booking",
        { agents: [clerk], budget: { maxTurns: 0 }, compensationBudget: { maxTurns: 1 } },
        async (ctx) => {
          await ctx.step("book", () => "booked");
          await ctx.compensate("apologise", async ({ ctx: inside, status, reason }) => {
            said.push(status, reason, await inside.agent(clerk, "Apologise."));
          });
          throw new FatalError("full");
        },
      );
      const { status, error } = await (await runtime.start(booking, null)).result();
      expect([status, error?.message, said]).toEqual(["failed", "full", ["failed", "full", "Sorry."]]);
    }));

  test("C2: a step whose request is aborted by a cancel ends the run as cancelled, with and without retries", () =>
    withRuntime(async (runtime) => {
      for (const options of [{}, { retry: false }] as const) {
        const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
        const asking = workflow(`asking-${"retry" in options}`, async (ctx) =>
          ctx.step(
            "ask",
            ({ signal: cancel }) =>
              new Promise<string>((_, reject) => {
                // As node:http does it.
                const abort = (): void => reject(new DOMException("The operation was aborted", "AbortError"));
                cancel.addEventListener("abort", abort);
                begin();
              }),
            options,
          ),
        );
        const run = await runtime.start(asking, null);
        await begun;
        await run.cancel("enough");
        expect((await run.result()).status).toBe("cancelled");
      }
    }));

  test("code of a workflow that ignores a cancel is abandoned, and its compensations run", async () => {
    const clock = new FakeClock();
    const runtime = await openRuntime({ store: "memory:", clock, stopGraceMs: 1_000 });
    try {
      const log: string[] = [];
      const stuck = workflow("stuck", async (ctx) => {
        await ctx.step("a", () => "a");
        await ctx.compensate("undo a", () => void log.push("undone"));
        await ctx.step("b", () => new Promise<string>(() => undefined)).catch(() => null);
        return new Promise<string>(() => undefined);
      });
      const run = await runtime.start(stuck, null);
      for await (const event of run.events()) if (event.type === "step_end") break;
      await run.cancel("enough");
      const result = run.result();
      for await (const event of run.events()) {
        if (event.type === "run_cancel") for (let grace = 0; grace < 3; grace++) await clock.advance(1_000);
        if (event.type === "run_end") break;
      }
      expect([(await result).status, log]).toEqual(["cancelled", ["undone"]]);
    } finally {
      await runtime.close();
    }
  });

  test("compensationBudget refuses a budget of time and an unknown member", () => {
    const declare = (compensationBudget: object): unknown =>
      workflow("wrong", { compensationBudget }, async () => null);
    expect(() => declare({ deadlineMs: 5 })).toThrow(
      /compensationBudget of workflow wrong: each compensation has/u,
    );
    expect(() => declare({ maxUsd: 5 })).toThrow(/compensationBudget of workflow wrong/u);
  });
});

describe("long-lived workflows", () => {
  test("continueAsNew() checks its input by the schema of the workflow, and is refused in a branch", () =>
    withRuntime(async (runtime) => {
      const input = z.object({ round: z.number(), note: z.string().default("none") });
      const rounds = workflow("rounds", { input }, async (ctx, { round, note }) => {
        const refused = await ctx.parallel({
          only: (branch) => branch.continueAsNew({ round: 5 }).catch((error: Error) => error.message),
        });
        if (round === 1) return ctx.continueAsNew({ round: 2 });
        if (round === 3) return ctx.continueAsNew({ round: "4" } as never);
        if (round === 6) return ctx.continueAsNew(undefined as never);
        return { note, refused: refused.only };
      });
      expect(await rounds.run({ round: 1, note: "first" }, { runtime })).toEqual({
        note: "none",
        refused: expect.stringContaining("call it in the function of the workflow"),
      });
      await expect(rounds.run({ round: 3 }, { runtime })).rejects.toThrow(
        /^invalid input of workflow rounds: round /u,
      );
      await expect(rounds.run({ round: 6 }, { runtime })).rejects.toThrow(
        /^missing input of ctx.continueAsNew\(\)/u,
      );
    }));

  test("J8: a fork of a run with agents in several histories continues in the last history and calls no agent again", () =>
    withRuntime(async (runtime) => {
      const clerk = new Agent({ name: "clerk", model: scriptedModel(["one", "two", "three"]) });
      const input = z.object({ round: z.number() });
      let ends = 0;
      const rounds = workflow("rounds", { input, agents: [clerk] }, async (ctx, { round }) => {
        const answer = await ctx.agent(clerk, `round ${round}`);
        if (round < 3) return ctx.continueAsNew({ round: round + 1 });
        return ctx.step("end", () => `${answer} ${++ends}`);
      });
      const origin = await runtime.start(rounds, { round: 1 });
      expect((await origin.result()).output).toBe("three 1");
      let at = 0;
      for await (const event of origin.events({ follow: false }))
        if (event.type === "task_end" && event.taskId !== rootTaskId) at = event.seq;
      const fork = await origin.fork({ at });
      expect((await fork.result()).output).toBe("three 2");
    }));

  test("a versionPolicy of a workflow other than resume, pin and refuse is not accepted", () => {
    const options = { versionPolicy: "keep" as never };
    expect(() => workflow("wrong", options, async () => null)).toThrow(/versionPolicy/u);
  });
});

describe("limits of a workflow", () => {
  const limited = (more: object): unknown => workflow("limited", more as never, (async () => null) as never);

  test("wrong concurrency and rate limits are refused when the workflow is declared", () => {
    expect(() => limited({ concurrency: { limit: 0 } })).toThrow(
      "invalid limit 0 of concurrency of workflow limited: expected an integer from 1",
    );
    expect(() => limited({ concurrency: { max: 1 } })).toThrow(
      /^unknown option "max" of concurrency of workflow limited/u,
    );
    expect(() => limited({ rate: { limit: 5 } })).toThrow(
      "invalid perMs undefined of rate of workflow limited: expected an integer from 1",
    );
    expect(() => limited({ rate: { limit: 10_001, perMs: 1 } })).toThrow(
      "expected an integer from 1 to 10000",
    );
    expect(() => limited({ concurrency: { limit: 1, key: "shop" } })).toThrow(
      'invalid key "shop" of concurrency of workflow limited: expected a function',
    );
  });

  test("a limit key that is no text is refused before a run exists, and the key null means no limit", () =>
    withRuntime(async (runtime) => {
      const key = ({ input }: { readonly input: unknown }): string => input as string;
      const keyed = workflow("keyed", { concurrency: { key, limit: 1 } }, async (ctx) => {
        await ctx.waitForSignal("go");
        return null;
      });
      await expect(runtime.start(keyed, 7)).rejects.toMatchObject({
        code: "invalid_argument",
        message: expect.stringContaining("invalid key 7 of concurrency of workflow keyed: expected a text"),
      });
      expect((await runtime.list()).runs).toEqual([]);
      const free = [await runtime.start(keyed, null), await runtime.start(keyed, null)];
      for (const run of free) await run.signal("go", null);
      const ends = await Promise.all(free.map((run) => run.result()));
      expect(ends.map(({ status }) => status)).toEqual(["completed", "completed"]);
    }));

  test("the key of a workflow's limit is chosen from the parsed input, the tenant and the user", () =>
    withRuntime(async (runtime) => {
      const seen: unknown[] = [];
      const input = z.object({ shop: z.string().default("eu") });
      const shop = workflow(
        "shop",
        {
          input,
          rate: { key: (start) => (seen.push(start), start.input.shop), limit: 9, perMs: 10, name: "crm" },
        },
        async () => null,
      );
      const run = await runtime.start(shop, {}, { tenantId: "acme", userId: "ann" });
      await run.result();
      expect(seen).toEqual([{ input: { shop: "eu" }, tenantId: "acme", userId: "ann" }]);
      const [listed] = (await runtime.list()).runs;
      expect(listed?.flow).toEqual({ rate: { name: "crm", key: "eu", limit: 9, perMs: 10 } });
    }));

  test("an agent accepts the same limits as a workflow", async () => {
    const concurrency = { key: ({ userId }: { readonly userId: string | null }) => userId, limit: 2 };
    const agent = new Agent({ name: "scout", model: scriptedModel(["..."]), concurrency });
    expect(agent.flowOf?.({ input: "hi", tenantId: null, userId: "ann" })).toEqual({
      concurrency: { name: "scout", key: "ann", limit: 2 },
    });
    expect(agent.flowOf?.({ input: "hi", tenantId: null, userId: null })).toBeUndefined();
  });
});
