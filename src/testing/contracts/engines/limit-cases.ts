import {
  Fault,
  Priority,
  Transcript,
  userMessage,
  type Branch,
  type HostedAgent,
  type Model,
  type RunContext,
  type RunHandle,
  type Runtime,
  type TaskHandle,
  type Tool,
} from "../../../kernel/index.ts";
import { scriptedModel } from "../../scripted-model.ts";
import {
  agentOf,
  casesOf,
  eventOf,
  eventsOf,
  spawnChild,
  suspended,
  type EngineHarness,
  type EngineRuntimeOptions,
  type EngineWorld,
} from "./engine-world.ts";

const request = { transcript: Transcript.of([userMessage("hello")]), maxOutputTokens: 20 };
const twoSeats = { spawnBudget: { maxAgents: 2, allowPreempt: true } };

async function callModel(ctx: RunContext, times: number): Promise<string> {
  for (let call = 0; call < times; call++) await ctx.llm(request);
  return "done";
}

/** Functions that abandon an unsettled branch at the signal `go`, by name. */
const abandoning: Readonly<Record<string, (ctx: RunContext, slow: Branch<null>) => Promise<unknown>>> = {
  "ctx.race": (ctx, slow) => ctx.race({ slow, fast: takeGo }),
  "ctx.race with a fault": (ctx, slow) => faultOf(ctx.race({ slow, failing: failAtGo })),
  "ctx.parallel with stopOnFault": (ctx, slow) =>
    faultOf(ctx.parallel({ slow, failing: failAtGo }, { stopOnFault: true })),
};

async function takeGo(ctx: RunContext): Promise<null> {
  await ctx.waitForSignal("go");
  return null;
}

async function failAtGo(ctx: RunContext): Promise<null> {
  await ctx.waitForSignal("go");
  throw new Fault("tool_failed", "no luck");
}

async function faultOf(work: Promise<unknown>): Promise<void> {
  await work.catch((error: unknown) => {
    if (!Fault.is(error) || error.code !== "tool_failed") throw error;
  });
}

/**
 * Returns a tool that works until its timeout. It does not only wait for a step, because then the run could be
 * suspended.
 */
function slowTool(name: string, timeoutMs: number, start: (ctx: RunContext) => Promise<unknown>): Tool {
  return {
    name,
    description: "Does not end",
    inputSchema: { type: "object" },
    risk: "safe",
    destructive: false,
    edits: false,
    concurrency: "parallel",
    timeoutMs,
    suspends: false,
    needsApproval: () => false,
    parse: (input) => input,
    execute: async (_input, { ctx, signal }) => {
      await start(ctx);
      return new Promise((_resolve, reject) => signal.addEventListener("abort", reject));
    },
  };
}

const usage = { inputTokens: 10, outputTokens: 0 };
const callUsd = 10e-9;
/**
 * A cap that allows only one open call. A call reserves 80e-6 USD for its output and less than 1e-6 for its input,
 * so that the rest is not sufficient for even one output token of a second call. When the first call has ended, its
 * cost leaves enough for a second call.
 */
const oneCall: EngineRuntimeOptions = {
  caps: { perDayUsd: 82e-6 },
  prices: { find: () => ({ inputUsd: 1e-9, outputUsd: 4e-6 }) },
};

/** Returns a model whose calls stay open until `answer()` is called. `begun` resolves at the first call. */
function heldModel(answers: Model) {
  const [begun, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const open = async (): Promise<void> => {
    begun.resolve();
    await answered.promise;
  };
  const model: Model = {
    provider: "scripted",
    modelId: "held",
    generate: async (...call) => (await open(), answers.generate(...call)),
    async *stream(...call) {
      await open();
      yield* answers.stream(...call);
    },
  };
  return { model, begun: begun.promise, answer: answered.resolve };
}

/**
 * Starts two workers and two runs that make one call each. The call of `holder` stays open until `answer()` is
 * called.
 */
async function besideAnOpenCall(world: EngineWorld, options: EngineRuntimeOptions) {
  const models = {
    holder: scriptedModel([{ text: "hm", usage }]),
    waiter: scriptedModel([{ text: "hm", usage }]),
  };
  const { model: held, begun, answer } = heldModel(models.holder);
  const agents = [held, models.waiter].map((main, index) =>
    agentOf(index === 0 ? "holder" : "waiter", (ctx) => callModel(ctx, 1), { models: { main } }),
  ) as [HostedAgent, HostedAgent];
  const [one, two] = [await world.open("one", options), await world.open("two", options)];
  for (const runtime of [one, two]) for (const agent of agents) runtime.register(agent);
  const holder = await one.submit(agents[0], null);
  await begun;
  const waiter = await two.submit(agents[1], null);
  return { holder, waiter, models, two, answer };
}

async function spentUsd(runtime: Runtime): Promise<number> {
  return (await runtime.usage({ by: "day" })).reduce((sum, { costUsd }) => sum + costUsd, 0);
}

/** Cases about cancellation, budgets, seats and pauses. */
export function limitCases(harness: EngineHarness): void {
  const { expect } = harness;
  const declare = casesOf(harness);

  declare("C1, cancel: cancelling a run cancels all its tasks and gives them the reason", async (world) => {
    const runtime = await world.open();
    const leaf = agentOf("leaf", async (ctx) => void (await ctx.waitForSignal("never")));
    const middle = agentOf("middle", async (ctx) => void (await ctx.join(await spawnChild(ctx, leaf))), {
      subAgents: [leaf],
    });
    const root = agentOf("root", async (ctx) => void (await ctx.join(await spawnChild(ctx, middle))), {
      subAgents: [middle],
    });
    const run = await runtime.submit(root, null);
    await suspended(run, "t0", "t1", "t2");
    await run.cancel("enough");
    const { status, interruptionReason } = await run.result();
    expect({ status, interruptionReason }).toEqual({ status: "cancelled", interruptionReason: "enough" });
    const ended = (await eventsOf(run)).filter(({ type }) => type === "task_end");
    expect(ended.map(({ taskId }) => taskId).toSorted()).toEqual(["t0", "t1", "t2"]);
  });

  declare("C1, cancel: a parent cancels a child with its descendants and continues", async (world) => {
    const runtime = await world.open();
    const leaf = agentOf("leaf", async (ctx) => void (await ctx.waitForSignal("never")));
    const middle = agentOf("middle", async (ctx) => void (await ctx.join(await spawnChild(ctx, leaf))), {
      subAgents: [leaf],
    });
    const root = agentOf(
      "root",
      async (ctx) => {
        const handle = await spawnChild(ctx, middle);
        await ctx.waitForSignal("cancel it");
        await ctx.cancel(handle, "enough");
        return [(await ctx.join(handle)).status, await ctx.step("next", async () => "continued")];
      },
      { subAgents: [middle] },
    );
    const run = await runtime.submit(root, null);
    await suspended(run, "t0", "t1", "t2");
    await run.signal("cancel it");
    expect((await run.result()).output).toEqual(["cancelled", "continued"]);
  });

  declare("C1, cancel: another process cancels a run that no worker has in memory", async (world) => {
    const worker = (): HostedAgent =>
      agentOf("worker", async (ctx) => void (await ctx.waitForSignal("never")));
    const one = await world.open("one");
    const run = await one.submit(worker(), null);
    await eventOf(run, "task_suspend");
    const found = await world.takeOver(one, run, worker());
    await found.cancel("late");
    expect((await found.result()).status).toBe("cancelled");
  });

  const leaf = agentOf("leaf", async (ctx) => void (await ctx.waitForSignal("never")));
  const hirer = agentOf("hirer", async (ctx) => void (await ctx.join(await spawnChild(ctx, leaf))), {
    subAgents: [leaf],
  });
  /** Spawns two levels of tasks. */
  const hire = (ctx: RunContext): Promise<TaskHandle> => spawnChild(ctx, hirer);
  const endless: Branch<null> = async (ctx) => {
    await hire(ctx);
    await ctx.waitForSignal("never");
    return null;
  };
  /**
   * Returns an agent that abandons the branch in which it has started `hirer`. Its next child needs the seat of an
   * abandoned task.
   */
  const abandoner = (abandon: (ctx: RunContext) => Promise<unknown>, tools: readonly Tool[] = []) =>
    agentOf(
      "abandoner",
      async (ctx) => {
        await abandon(ctx);
        const next = await spawnChild(ctx, leaf, { onFull: "wait" });
        await ctx.cancel(next, "enough");
        return (await ctx.join(next)).status;
      },
      { subAgents: [hirer], spawnBudget: { maxAgents: 3 }, tools },
    );
  const endsOf = async (run: RunHandle): Promise<readonly string[]> => {
    const ends = (await eventsOf(run)).flatMap((event) =>
      event.type === "task_end"
        ? [`${event.taskId}: ${event.data.failure?.message ?? event.data.status}`]
        : [],
    );
    return ends.toSorted();
  };
  const abandonedEnds = [
    "t0: completed",
    "t1: the code that spawned it was abandoned",
    "t2: the code that spawned it was abandoned",
    "t3: enough",
  ];

  for (const [construct, abandon] of Object.entries(abandoning))
    declare(`C1, cancel: ${construct} cancels the tasks of the branch that it abandons`, async (world) => {
      const runtime = await world.open();
      const run = await runtime.submit(
        abandoner((ctx) => abandon(ctx, endless)),
        null,
      );
      await suspended(run, "t1", "t2");
      await run.signal("go");
      await run.result();
      expect(await endsOf(run)).toEqual(abandonedEnds);
    });

  declare("C1, cancel: a tool that exceeds its timeout leaves no task behind", async (world) => {
    const runtime = await world.open();
    const timeouts = [100, 1_000, 10_000];
    const tools = timeouts.map((timeoutMs) => slowTool(`slow${timeoutMs}`, timeoutMs, hire));
    for (const { name: toolName } of tools) {
      const call = { callId: "1", toolName, input: {} };
      const run = await runtime.submit(
        abandoner((ctx) => ctx.tool(call), tools),
        null,
      );
      await run.result();
      const ends = await endsOf(run);
      // On a busy machine a short timeout may come before the tasks have been spawned.
      if (ends.length < abandonedEnds.length && toolName !== tools.at(-1)?.name) continue;
      expect(ends).toEqual(abandonedEnds);
      return;
    }
  });

  declare("B5, budget: a run without turns left ends as budget_exhausted", async (world) => {
    const runtime = await world.open();
    const model = scriptedModel(["one", "two", "three"]);
    const talker = agentOf("talker", (ctx) => callModel(ctx, 3), { models: { main: model } });
    const run = await runtime.submit(talker, null, { budget: { maxTurns: 2 } });
    const { status, turns } = await run.result();
    expect([status, turns, model.calls.length]).toEqual(["budget_exhausted", 2, 2]);
  });

  declare("J5, top-up: an exhausted run continues after a top-up and repeats no paid call", async (world) => {
    const runtime = await world.open();
    const model = scriptedModel(["one", "two", "three"]);
    const talker = agentOf("talker", (ctx) => callModel(ctx, 3), { models: { main: model } });
    const run = await runtime.submit(talker, null, { budget: { maxTurns: 2 } });
    await run.result();
    await run.topUp({ maxTurns: 1 });
    const { status, turns } = await run.result();
    expect([status, turns, model.calls.length]).toEqual(["completed", 3, 3]);
  });

  declare("J5, top-up: the next worker continues an exhausted run after a top-up", async (world) => {
    const [first, second] = [scriptedModel(["one"]), scriptedModel(["two"])];
    const talker = (model: typeof first): HostedAgent =>
      agentOf("talker", (ctx) => callModel(ctx, 2), { models: { main: model } });
    const one = await world.open("one");
    const run = await one.submit(talker(first), null, { budget: { maxTurns: 1 } });
    expect((await run.result()).status).toBe("budget_exhausted");
    const found = await world.takeOver(one, run, talker(second));
    await found.topUp({ maxTurns: 1 });
    expect([(await found.result()).status, first.calls.length, second.calls.length]).toEqual([
      "completed",
      1,
      1,
    ]);
  });

  declare("B6, budget: the turns of a child count against the budget of its parent", async (world) => {
    const runtime = await world.open();
    const model = scriptedModel(["one", "two", "three"]);
    const child = agentOf("child", (ctx) => callModel(ctx, 3), { models: { main: model } });
    const parent = agentOf("parent", async (ctx) => (await ctx.join(await spawnChild(ctx, child))).status, {
      subAgents: [child],
    });
    const run = await runtime.submit(parent, null, { budget: { maxTurns: 2 } });
    expect([(await run.result()).turns, model.calls.length]).toEqual([2, 2]);
  });

  declare(
    "B7, caps: a call waits while the open call of another worker holds the rest of the cap, and is made once it is returned",
    async (world) => {
      const { holder, waiter, answer, models, two } = await besideAnOpenCall(world, oneCall);
      await suspended(waiter, "t0");
      const { status, waitsFor } = await waiter.summary();
      expect([status, waitsFor, models.waiter.calls.length]).toEqual(["waiting", ["cap"], 0]);
      answer();
      const results = [await holder.result(), await waiter.result()];
      expect(results.map((result) => result.status)).toEqual(["completed", "completed"]);
      expect([models.waiter.calls.length, await spentUsd(two)]).toEqual([1, 2 * callUsd]);
    },
  );

  declare(
    "B7, caps: a call that still does not fit its cap after capWaitMs ends the run as budget_exhausted; resume() repeats it",
    async (world) => {
      const options = { ...oneCall, capWaitMs: 20 };
      const { holder, waiter, answer, models, two } = await besideAnOpenCall(world, options);
      expect([(await waiter.result()).status, models.waiter.calls.length]).toEqual(["budget_exhausted", 0]);
      answer();
      await holder.result();
      await waiter.resume();
      expect([(await waiter.result()).status, models.waiter.calls.length]).toEqual(["completed", 1]);
      expect(await spentUsd(two)).toBe(2 * callUsd);
    },
  );

  declare(
    "B7, caps: a call that waits for the cap of its agent does not wait for earlier calls of other agents",
    async (world) => {
      const options = { ...oneCall, caps: { perAgentPerDayUsd: 82e-6 } };
      const held = ["slow", "quick"].map((name) => {
        const replies = [
          { text: "one", usage },
          { text: "two", usage },
        ];
        const { model, begun, answer } = heldModel(scriptedModel(replies));
        const agent = agentOf(name, (ctx) => callModel(ctx, 1), { models: { main: model } });
        return { name, agent, begun, answer };
      });
      const hosting = async (name: string) => {
        const runtime = await world.open(name, options);
        for (const { agent } of held) runtime.register(agent);
        return runtime;
      };
      const holders: RunHandle[] = [];
      for (const { name, agent, begun } of held) {
        holders.push(await (await hosting(name)).submit(agent, null));
        await begun;
      }
      const other = await hosting("other");
      const waiters: RunHandle[] = [];
      for (const { agent } of held) {
        const waiter = await other.submit(agent, null);
        await suspended(waiter, "t0");
        waiters.push(waiter);
      }
      const [slow, quick] = waiters as [RunHandle, RunHandle];
      held[1]?.answer();
      expect((await quick.result()).status).toBe("completed");
      expect((await slow.summary()).waitsFor).toEqual(["cap"]);
      held[0]?.answer();
      for (const run of [slow, ...holders]) expect((await run.result()).status).toBe("completed");
    },
  );

  declare(
    "B5, budget: a run whose deadline passes while it sleeps ends as deadline_exceeded",
    async (world) => {
      const runtime = await world.open();
      const sleeper = agentOf("sleeper", async (ctx) => ctx.sleep(600_000));
      const run = await runtime.submit(sleeper, null, { budget: { deadlineMs: 20 } });
      expect((await run.result()).status).toBe("deadline_exceeded");
    },
  );

  declare(
    "B5, top-up: a run that stopped at its deadline continues after a top-up of time",
    async (world) => {
      const runtime = await world.open();
      const sleeper = agentOf("sleeper", async (ctx) => (await ctx.sleep(300), "in time"));
      const run = await runtime.submit(sleeper, null, { budget: { deadlineMs: 20 } });
      expect((await run.result()).status).toBe("deadline_exceeded");
      await run.topUp({ deadlineMs: 600_000 });
      const { status, output } = await run.result();
      expect([status, output]).toEqual(["completed", "in time"]);
    },
  );

  declare(
    "H4, seats: a spawn without a free seat is refused, and the result names the tasks that hold the seats",
    async (world) => {
      const runtime = await world.open();
      const idle = agentOf("idle", async (ctx) => void (await ctx.waitForSignal("never")));
      const parent = agentOf(
        "parent",
        async (ctx) => {
          await spawnChild(ctx, idle);
          const refused = await ctx.spawn(idle.id, null);
          return refused.kind === "refused" ? refused.holders.map(({ taskId }) => taskId) : null;
        },
        { subAgents: [idle] },
      );
      const run = await runtime.submit(parent, null, twoSeats);
      expect((await run.result()).output).toEqual(["t0", "t1"]);
    },
  );

  declare("H4, seats: a child that waits for a seat starts when one frees", async (world) => {
    const runtime = await world.open();
    const child = agentOf("child", async (ctx) => (await ctx.waitForSignal("end")) ?? null);
    const parent = agentOf(
      "parent",
      async (ctx) => {
        const first = await spawnChild(ctx, child);
        const second = await spawnChild(ctx, child, { onFull: "wait" });
        return (await ctx.joinAll([first, second])).map(({ output }) => output);
      },
      { subAgents: [child] },
    );
    const run = await runtime.submit(parent, null, twoSeats);
    await eventOf(run, "spawn_wait");
    await run.signal("end", 1, "t1");
    await eventOf(run, "task_start", 3);
    await run.signal("end", 2, "t2");
    expect((await run.result()).output).toEqual([1, 2]);
  });

  declare(
    "H2, H5, preemption: an urgent child takes the seat of another task, which is recalled afterwards",
    async (world) => {
      const runtime = await world.open();
      const steps: string[] = [];
      const low = agentOf("low", async (ctx) => {
        await ctx.step("first", async () => (steps.push("first"), null));
        await ctx.waitForSignal("go");
        return ctx.step("second", async () => (steps.push("second"), "low"));
      });
      const high = agentOf("high", async (ctx) =>
        ctx.step("urgent", async () => (steps.push("urgent"), "high")),
      );
      const run = await runtime.submit(preempting(low, high), null, twoSeats);
      await suspended(run, "t0", "t1");
      await run.signal("hurry");
      await eventOf(run, "seat_recall");
      await run.signal("go", null, "t1");
      expect((await run.result()).output).toEqual(["low", "high"]);
      expect(steps).toEqual(["first", "urgent", "second"]);
      const seats = (await eventsOf(run)).map(({ type }) => type).filter((type) => type.startsWith("seat_"));
      // A suspended victim pauses at once, so that the urgent task need not wait for its seat.
      expect(seats).toEqual(["seat_pause", "seat_recall"]);
    },
  );

  declare(
    "H5, preemption: a task with onPause return-partial ends as paused when it loses its seat",
    async (world) => {
      const runtime = await world.open();
      const low = agentOf("low", async (ctx) => void (await ctx.waitForSignal("never")));
      const high = agentOf("high", async () => "urgent");
      const parent = agentOf(
        "parent",
        async (ctx) => {
          const victim = await spawnChild(ctx, low, { priority: Priority.LOW, onPause: "return-partial" });
          await ctx.waitForSignal("hurry");
          await ctx.join(await spawnChild(ctx, high, { priority: Priority.HIGH }));
          return (await ctx.ask(victim, null)).kind;
        },
        { subAgents: [low, high] },
      );
      const run = await runtime.submit(parent, null, twoSeats);
      await suspended(run, "t0", "t1");
      await run.signal("hurry");
      expect((await run.result()).output).toBe("target_paused");
    },
  );

  declare("H5, recall: the next worker recalls a preempted task whose worker has closed", async (world) => {
    const team = (): HostedAgent => {
      const low = agentOf("low", async (ctx) => {
        await ctx.waitForSignal("go");
        return "low";
      });
      const high = agentOf("high", async (ctx) => (await ctx.waitForSignal("end")) ?? null);
      return preempting(low, high);
    };
    const one = await world.open("one");
    const run = await one.submit(team(), null, twoSeats);
    await suspended(run, "t0", "t1");
    await run.signal("hurry");
    await eventOf(run, "seat_pause");
    const found = await world.takeOver(one, run, team());
    await found.signal("end", "high", "t2");
    await eventOf(found, "seat_recall");
    await found.signal("go", null, "t1");
    expect((await found.result()).output).toEqual(["low", "high"]);
  });

  declare("H8, priority: the priority of a task that waits can be changed", async (world) => {
    const runtime = await world.open();
    const worker = agentOf("worker", async (ctx) => void (await ctx.waitForSignal("go")));
    const run = await runtime.submit(worker, null);
    await eventOf(run, "task_suspend");
    await run.reprioritize("t0", Priority.CRITICAL);
    await eventOf(run, "task_reprioritize");
    await run.signal("go");
    expect((await run.result()).status).toBe("completed");
  });

  declare("pause: a paused run starts no call until it is resumed", async (world) => {
    const runtime = await world.open();
    const steps: string[] = [];
    const worker = agentOf("worker", async (ctx) => {
      await ctx.waitForSignal("go");
      return ctx.step("work", async () => (steps.push("work"), "done"));
    });
    const run = await runtime.submit(worker, null);
    await eventOf(run, "task_suspend");
    await run.pause();
    await eventOf(run, "run_pause");
    await run.signal("go");
    expect([(await run.summary()).status, steps]).toEqual(["paused", []]);
    await run.resume();
    expect([(await run.result()).output, steps]).toEqual(["done", ["work"]]);
  });

  declare(
    "pause: a run stays paused when its worker closes, and the next worker resumes it",
    async (world) => {
      const worker = (): HostedAgent =>
        agentOf("worker", async (ctx) => {
          await ctx.waitForSignal("go");
          return "done";
        });
      const one = await world.open("one");
      const run = await one.submit(worker(), null);
      await eventOf(run, "task_suspend");
      await run.pause();
      await eventOf(run, "run_pause");
      const found = await world.takeOver(one, run, worker());
      await found.signal("go");
      await found.resume();
      expect((await found.result()).output).toBe("done");
    },
  );
}

/**
 * Returns a parent that starts `low`, and after the signal `hurry` the more urgent `high`. It returns the outputs
 * of both.
 */
function preempting(low: HostedAgent, high: HostedAgent): HostedAgent {
  return agentOf(
    "parent",
    async (ctx) => {
      const victim = await spawnChild(ctx, low, { priority: Priority.LOW });
      await ctx.waitForSignal("hurry");
      const urgent = await spawnChild(ctx, high, { priority: Priority.HIGH });
      return (await ctx.joinAll([victim, urgent])).map(({ output }) => output);
    },
    { subAgents: [low, high] },
  );
}
