import { describe, expect, it } from "vitest";
import { CostTracker, HookManager, RunLogger } from "../../../../src/agents/index.ts";
import {
  formatTaskId,
  HookEvent,
  MiddlewareTermination,
  Transcript,
  userMessage,
  type HostedAgent,
  type RunContext,
} from "../../../../src/kernel/index.ts";
import { createRuntime } from "../../../../src/runtime/local-runtime.ts";
import { FakeClock, scriptedModel, type ScriptStep } from "../../../../src/testing/index.ts";
import { agent, agentId, gate, readAll, simpleTool, text, typesOf } from "../../../runtime/runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../../../runtime/two-stores.ts";

removeStoresAfterEach();

const prices = { find: () => ({ inputUsd: 1e-6, outputUsd: 2e-6 }) };
const usage = { inputTokens: 100, outputTokens: 10 };
const request = { transcript: Transcript.of([userMessage("hello")]), maxOutputTokens: 50 };

interface Watched {
  readonly agent: HostedAgent;
  readonly seen: string[];
}

function watched(code: (ctx: RunContext) => Promise<string>, more: Partial<HostedAgent> = {}): Watched {
  const hooks = new HookManager();
  const seen: string[] = [];
  for (const hook of Object.values(HookEvent))
    hooks.on(hook, () => {
      seen.push(hook);
    });
  return { agent: agent("watched", code, { ...more, callPath: { observer: hooks } }), seen };
}

describe.each(twoStores)("hooks and costs of a run with the %s store", (_name, prepare) => {
  it("R13: each hook of a run fires once, in order, across a suspension and a second process", async () => {
    const open = await prepare();
    const look = simpleTool({ name: "look", execute: async () => text("rain") });
    const life = (): Watched =>
      watched(
        async (ctx) => {
          await ctx.llm(request);
          await ctx.tool({ callId: "c", toolName: "look", input: {} });
          await ctx.waitForSignal("go");
          await ctx.llm(request);
          return "done";
        },
        {
          models: {
            main: scriptedModel([
              { text: "a", usage },
              { text: "b", usage },
            ]),
          },
          tools: [look],
        },
      );
    const [one, two] = [life(), life()];
    const first = await createRuntime({ store: await open(), pollMs: 10 });
    const { runId } = await first.submit(one.agent, "go");
    const before = ["run_start", "llm_start", "llm_end", "tool_start", "tool_end"];
    await expect.poll(() => one.seen).toEqual(before);
    await first.close();
    expect(one.seen).toEqual(before);
    const second = await createRuntime({ store: await open(), pollMs: 10 });
    second.register(two.agent);
    const handle = await second.find(runId);
    await handle?.signal("go");
    expect((await handle?.result())?.status).toBe("completed");
    expect(two.seen).toEqual(["llm_start", "llm_end", "run_end"]);
    await second.close();
  });

  it("B3: CostTracker reads costs from the run's ledger, per agent and model, with unreported costs separate, also after a restart", async () => {
    const open = await prepare();
    const seen: unknown[] = [];
    const never = new FakeClock();
    const life = (script: readonly ScriptStep[]): HostedAgent => {
      const named = { provider: "acme", modelId: "large", clock: never };
      const child = agent("child", async (ctx) => (await ctx.llm(request)).stopReason, {
        models: { main: scriptedModel([{ text: "x", usage }], { provider: "acme", modelId: "small" }) },
      });
      const code = async (ctx: RunContext): Promise<string> => {
        seen.push(new CostTracker(ctx).total);
        const hired = await ctx.spawn(child.id, null);
        if (hired.kind === "spawned") await ctx.join(hired.handle);
        await ctx.llm(request);
        return "done";
      };
      return agent("parent", code, { models: { main: scriptedModel(script, named) }, subAgents: [child] });
    };
    const first = await createRuntime({ store: await open(), prices, pollMs: 10, closeGraceMs: 0 });
    const { runId } = await first.submit(life([{ text: "never", delayMs: 1 }]), null);
    const held = async (): Promise<number> => {
      const standing = await (await first.find(runId))?.snapshot();
      return standing?.ledger.open.filter(({ taskId }) => taskId === formatTaskId(0)).length ?? 0;
    };
    await expect.poll(held).toBe(1);
    await first.close();
    const second = await createRuntime({ store: await open(), prices, pollMs: 10 });
    second.register(life([{ text: "done", usage }]));
    const handle = await second.find(runId);
    const result = await handle?.result();
    const standing = await handle?.snapshot();
    if (standing === undefined || result === undefined) throw new Error("the run is gone");
    const { likelyUsd, ...lost } = result.unreported;
    // The child's call is the only one that was reported when the run counted its unreported call for the last time.
    expect(likelyUsd).toBe(120e-6);
    expect(lost.tokens).toBeGreaterThan(50);
    expect(lost.costUsd).toBeGreaterThan(100e-6);
    const child = { calls: 1, tokens: 110, costUsd: 120e-6, lost: { tokens: 0, costUsd: 0 } };
    const again = { calls: 2, tokens: 110 + lost.tokens, lost };
    expect(seen).toMatchObject([{ calls: 0, tokens: 0 }, again]);
    const costs = new CostTracker({ snapshot: standing });
    expect(costs.byAgent().get(agentId("child"))).toEqual(child);
    expect(costs.byModel().get("acme/small")).toEqual(child);
    expect(costs.byModel().get("acme/large")).toMatchObject(again);
    expect(costs.total.costUsd).toBeCloseTo(result.costUsd ?? 0, 12);
    expect(costs.lines().map(({ agentId: of, modelId }) => `${of} ${modelId}`)).toEqual([
      "child small",
      "parent large",
    ]);
    await second.close();
  });

  it("S4: a run's result waits for its hooks, but its turns do not", async () => {
    const open = await prepare();
    const [slow, order] = [gate(), [] as string[]];
    const hooks = new HookManager();
    hooks.on(HookEvent.LLM_END, async () => {
      await slow.promise;
      order.push("hook");
      throw new Error("broken camera");
    });
    hooks.on(HookEvent.RUN_END, () => {
      order.push("run_end");
    });
    const reached = gate();
    const code = async (ctx: RunContext): Promise<string> => {
      await ctx.llm(request);
      await ctx.step("after", async () => "stepped");
      order.push("loop");
      reached.resolve();
      await ctx.waitForSignal("go");
      return "done";
    };
    const watchedAgent = agent("slow", code, {
      models: { main: scriptedModel([{ text: "a", usage }]) },
      callPath: { observer: hooks },
    });
    const store = await open();
    const runtime = await createRuntime({ store, pollMs: 10 });
    const run = await runtime.submit(watchedAgent, null);
    await reached.promise;
    expect(order).toEqual(["loop"]);
    slow.resolve();
    await expect.poll(async () => typesOf(await readAll(store, run.runId))).toContain("hook_error");
    await run.signal("go");
    expect((await run.result()).status).toBe("completed");
    expect(order).toEqual(["loop", "hook", "run_end"]);
    await runtime.close();
  });

  it("hooks of a task that middleware stops receive guardrail_trip and run_end once each", async () => {
    const open = await prepare();
    const { agent: stopped, seen } = watched(async (ctx) => (await ctx.llm(request)).stopReason, {
      models: { main: scriptedModel([]) },
    });
    const chat = {
      process: async () => {
        throw new MiddlewareTermination("not this one", { by: "filter" });
      },
    };
    const runtime = await createRuntime({ store: await open(), pollMs: 10 });
    const run = await runtime.submit(
      { ...stopped, callPath: { ...stopped.callPath, model: { around: chat } } },
      null,
    );
    expect((await run.result()).status).toBe("guardrail_tripped");
    expect(seen).toEqual(["run_start", "llm_start", "guardrail_trip", "run_end"]);
    await runtime.close();
  });
});

it("a task whose code crashes fires run_start and run_end once, and tool_end reports the status of each tool", async () => {
  const runtime = await createRuntime({ runRetry: { maxRetries: 0 } });
  const hooks = new HookManager();
  const seen: string[] = [];
  hooks.on(HookEvent.RUN_START, ({ runId, agentName }) => {
    seen.push(`start ${agentName} ${runId}`);
  });
  hooks.on(HookEvent.TOOL_END, ({ toolName, status, durationMs }) => {
    seen.push(`${toolName} ${status} ${durationMs >= 0}`);
  });
  hooks.on(HookEvent.RUN_END, ({ runId, status, error }) => {
    seen.push(`end ${status} ${error?.message} ${runId}`);
  });
  const tools = [
    simpleTool({ name: "works", execute: async () => text("fine") }),
    simpleTool({ name: "breaks", execute: () => Promise.reject(new Error("no")) }),
    simpleTool({ name: "asks", execute: async () => text("never"), needsApproval: true }),
  ];
  const code = async (ctx: RunContext): Promise<string> => {
    for (const { name } of tools) await ctx.tool({ callId: name, toolName: name, input: {} });
    throw new Error("my own bug");
  };
  const clumsy = agent("clumsy", code, { tools, callPath: { observer: hooks } });
  const run = await runtime.submit(clumsy, null);
  for await (const event of run.events())
    if (event.type === "approval_request") await run.approve(event.data.approvalId, { decision: "denied" });
  expect((await run.result()).status).toBe("failed");
  expect(seen).toEqual([
    `start clumsy ${run.runId}`,
    "works ok true",
    "breaks error true",
    "asks denied true",
    `end failed my own bug ${run.runId}`,
  ]);
  await runtime.close();
});

it("hooks of an agent receive no events of another agent", async () => {
  const runtime = await createRuntime();
  const [parentHooks, childHooks] = [new HookManager(), new HookManager()];
  const seen: string[] = [];
  for (const [name, hooks] of [
    ["parent", parentHooks],
    ["child", childHooks],
  ] as const)
    hooks.on(HookEvent.RUN_END, ({ agentName, taskId }) => {
      seen.push(`${name}: ${agentName} ${taskId}`);
    });
  const child = agent("child", async () => "done", { callPath: { observer: childHooks } });
  const parent = agent(
    "parent",
    async (ctx) => {
      const hired = await ctx.spawn(child.id, null);
      return hired.kind === "spawned" ? (await ctx.join(hired.handle)).output : null;
    },
    { subAgents: [child], callPath: { observer: parentHooks } },
  );
  await (await runtime.submit(parent, null)).result();
  expect(seen).toEqual(["child: child t1", "parent: parent t0"]);
  await runtime.close();
});

it("run_end fires once for a task that exhausted its budget and completed after topUp()", async () => {
  const runtime = await createRuntime();
  const { agent: spender, seen } = watched(
    async (ctx) => {
      await ctx.llm(request);
      await ctx.llm(request);
      return "done";
    },
    {
      models: {
        main: scriptedModel([
          { text: "a", usage },
          { text: "b", usage },
        ]),
      },
    },
  );
  const run = await runtime.submit(spender, null, { budget: { maxTurns: 1 } });
  expect((await run.result()).status).toBe("budget_exhausted");
  await run.topUp({ maxTurns: 1 });
  expect((await run.result()).status).toBe("completed");
  expect(seen.filter((hook) => hook === "run_start" || hook === "run_end")).toEqual(["run_start", "run_end"]);
  await runtime.close();
});

it("S4: an error of a hook after the run's end goes to the runtime's onError", async () => {
  const errors: string[] = [];
  const runtime = await createRuntime({ onError: ({ message }) => errors.push(message) });
  const hooks = new HookManager();
  hooks.on(HookEvent.RUN_END, () => {
    throw new Error("too late");
  });
  const short = agent("short", async () => "done", { callPath: { observer: hooks } });
  expect((await (await runtime.submit(short, null)).result()).status).toBe("completed");
  expect(errors).toEqual([expect.stringMatching(/run_end.*too late/)]);
  await runtime.close();
});

it("RunLogger keeps only the newest entries up to its capacity", async () => {
  const runtime = await createRuntime();
  const hooks = new HookManager();
  const logger = new RunLogger({ capacity: 3 });
  const stop = logger.watch(hooks);
  const script = Array.from({ length: 3 }, () => ({ text: "a", usage }));
  const talker = agent(
    "talker",
    async (ctx) => {
      for (let turn = 0; turn < 3; turn++) await ctx.llm(request);
      return "done";
    },
    { models: { main: scriptedModel(script) }, callPath: { observer: hooks } },
  );
  await (await runtime.submit(talker, null)).result();
  expect(logger.entries().map(({ hook }) => hook)).toEqual(["llm_start", "llm_end", "run_end"]);
  expect(logger.dropped).toBe(5);
  stop();
  expect(() => new RunLogger({ capacity: 0 })).toThrow("invalid capacity 0");
  await runtime.close();
});
