import { describe, expect, test } from "vitest";
import {
  Agent,
  CostTracker,
  formatAgentId,
  HookEvent,
  HookManager,
  openRuntime,
  RunLogger,
  RunMeta,
  SpawnTracker,
  Supervision,
  tool,
  type CostReport,
  type HookFailure,
} from "../../../../src/entries/index.ts";
import {
  formatRunId,
  formatSessionId,
  formatTaskId,
  type HistoryProvider,
  type HookPayload,
  type ModelCallMeta,
} from "../../../../src/kernel/index.ts";
import { scriptedModel } from "../../../../src/testing/index.ts";

const base = {
  agentName: "scout",
  agentId: formatAgentId({ name: "scout" }),
  runId: formatRunId("1"),
  taskId: formatTaskId(0),
  sessionId: formatSessionId("1"),
  at: 7,
};

describe("HookManager", () => {
  test("on(event) of HookManager with one argument registers the function it is applied to and returns it", async () => {
    const hooks = new HookManager();
    const seen: string[] = [];
    const logStart = hooks.on(HookEvent.RUN_START)(({ agentName }) => {
      seen.push(agentName);
    });
    expect(typeof logStart).toBe("function");
    const agent = new Agent({ name: "scout", model: scriptedModel(["Found."]), hooks });
    await agent.invoke("Go");
    expect(seen).toEqual(["scout"]);
  });

  test("register() of HookManager accepts a callback with its event and a set of hooks, and its result removes them", async () => {
    const hooks = new HookManager();
    const logger = new RunLogger();
    const seen: number[] = [];
    const removeCallback = hooks.register({
      event: HookEvent.TOOL_END,
      callback: ({ durationMs }) => void seen.push(durationMs),
    });
    const removeLogger = hooks.register(logger);
    const payload = { ...base, toolName: "look", callId: "c1", status: "ok", durationMs: 3 } as const;
    await hooks.dispatch(HookEvent.TOOL_END, payload);
    removeCallback();
    removeLogger();
    await hooks.dispatch(HookEvent.TOOL_END, payload);
    expect(seen).toEqual([3]);
    expect(logger.entries().map(({ hook }) => hook)).toEqual(["tool_end"]);
    expect(() => hooks.register({ event: "tool_over" } as never)).toThrow("expected { event, callback }");
    expect(() => hooks.on("tool_over" as never)).toThrow("invalid hook event");
  });

  test("dispatch() of HookManager calls all callbacks of the event at once, waits for them, and returns their failures", async () => {
    const reported: HookFailure[] = [];
    const hooks = new HookManager({ onError: (failure) => void reported.push(failure) });
    const order: string[] = [];
    const gate = Promise.withResolvers<void>();
    hooks.on(HookEvent.STEP_START, async function slow() {
      order.push("slow starts");
      await gate.promise;
      order.push("slow ends");
    });
    hooks.on(HookEvent.STEP_START, function broken() {
      throw new Error("camera on fire");
    });
    hooks.on(HookEvent.STEP_START, () => {
      order.push("quick");
      gate.resolve();
    });
    const payload: HookPayload<"step_start"> = { ...base, step: 1 };
    const failures = await hooks.dispatch(HookEvent.STEP_START, payload);
    expect(order).toEqual(["slow starts", "quick", "slow ends"]);
    expect(failures).toMatchObject([{ hook: "step_start", callback: "broken" }]);
    expect(failures[0]?.error.message).toContain("camera on fire");
    expect(reported).toEqual(failures);
    expect(await hooks.dispatch(HookEvent.RUN_END, payload as never)).toEqual([]);
  });
});

describe("CostTracker", () => {
  test("a CostTracker that is registered with a HookManager adds up LLM_END and reports at RUN_END", async () => {
    const reports: CostReport[] = [];
    const tracker = new CostTracker({ onReport: (report) => void reports.push(report) });
    const hooks = new HookManager();
    const stop = hooks.register(tracker);
    const usage = { inputTokens: 100, outputTokens: 10, costUsd: 0.25 };
    const look = tool({
      name: "look",
      description: "Looks",
      inputSchema: { type: "object" },
      execute: () => "",
    });
    const model = scriptedModel([
      { toolCalls: [{ name: "look", input: {} }], usage },
      { text: "Found.", usage },
      { text: "Again.", usage },
      { text: "Unseen.", usage },
    ]);
    const agent = new Agent({ name: "scout", model, tools: [look], hooks });
    const runtime = await openRuntime({ unknownPrice: "ignore" });
    const { runId } = await agent.invoke("Go", { runtime });
    expect(reports).toMatchObject([
      { runId, agentId: "scout", status: "completed", cost: { calls: 2, tokens: 220, costUsd: 0.5 } },
    ]);
    await agent.invoke("Go", { runtime });
    expect(reports[1]?.cost).toMatchObject({ calls: 1, costUsd: 0.25 });
    stop();
    await agent.invoke("Go", { runtime });
    expect(tracker.total).toMatchObject({ calls: 3, tokens: 330, costUsd: 0.75 });
    expect(tracker.byModel().get("scripted/script")).toMatchObject({ calls: 3 });
    expect(reports).toHaveLength(2);
    await runtime.close();
  });

  test("CostTracker reports null if a call has no known price, and a CostTracker of a run watches no hooks", async () => {
    const tracker = new CostTracker();
    const hooks = new HookManager();
    tracker.watch(hooks);
    const runtime = await openRuntime({ unknownPrice: "ignore" });
    const run = await runtime.submit(
      new Agent({ name: "scout", model: scriptedModel(["Found."]), hooks }),
      "Go",
    );
    await run.result();
    expect(tracker.total).toMatchObject({ calls: 1, costUsd: null });
    const ofRun = new CostTracker({ snapshot: await run.snapshot() });
    expect(() => ofRun.watch(hooks)).toThrow("cannot watch hooks");
    await runtime.close();
  });
});

describe("Supervision and RunMeta without ids and clock", () => {
  test("Supervision.root(id) and RunMeta.standalone() need neither ids nor clock", () => {
    const root = Supervision.root(formatAgentId({ name: "lead" }));
    expect(root.runId).toMatch(/^run_[0-9a-f-]{36}$/u);
    expect(root.progressTopic).toBe(`agent.progress/${root.runId}`);
    expect(root).toBeInstanceOf(Supervision);
    const meta = RunMeta.standalone();
    expect(meta.runId).toMatch(/^run_[0-9a-f-]{36}$/u);
    expect(RunMeta.standalone({ supervision: root }).runId).toBe(root.runId);
    expect(() => RunMeta.standalone({ deadline: 1 }).check()).toThrow("deadline exceeded");
    meta.check();
    expect(meta.child()).toBeInstanceOf(RunMeta);
    expect({}).not.toBeInstanceOf(RunMeta);
  });

  test("the RunMeta of the task reaches Model.generate, Model.stream and HistoryProvider", async () => {
    const seen: string[] = [];
    const note = (where: string, meta: ModelCallMeta | undefined): void =>
      void seen.push(`${where} ${meta?.runId} ${typeof meta?.traceId}`);
    const model = scriptedModel(["One.", "Two."]);
    const [generate, stream] = [model.generate.bind(model), model.stream.bind(model)];
    model.generate = (request, options) => {
      note("generate", options?.meta);
      return generate(request, options);
    };
    model.stream = (request, options) => {
      note("stream", options?.meta);
      return stream(request, options);
    };
    const history: HistoryProvider = {
      read: async (_key, meta) => {
        note("read", meta);
        return [];
      },
      append: async (_key, _runId, _messages, meta) => note("append", meta),
      count: async () => 0,
      clearRun: async () => {},
      clear: async () => {},
    };
    const agent = new Agent({ name: "scout", model, history });
    const runtime = await openRuntime({ unknownPrice: "ignore" });
    const plain = await (await runtime.submit(agent, "Go")).result();
    const streamed = await (await runtime.submit(agent, "Go", { streaming: true })).result();
    await runtime.close();
    const [first, second] = [plain, streamed].map(({ runId }) => `${runId} string`);
    expect(seen).toEqual([
      `read ${first}`,
      `generate ${first}`,
      `append ${first}`,
      `read ${second}`,
      `stream ${second}`,
      `append ${second}`,
    ]);
  });

  test("H3: acquire() of SpawnTracker with the name of a priority pauses only a task of lower priority", async () => {
    const tracker = new SpawnTracker({ maxAgents: 2, allowPreempt: true });
    await tracker.acquire("critical", "CRITICAL");
    for (const name of ["LOW", "NORMAL", "HIGH", "CRITICAL"] as const)
      await expect(tracker.acquire(`next ${name}`, name)).rejects.toMatchObject({ code: "budget_exhausted" });
    expect(tracker.isPaused("critical")).toBe(false);
    tracker.reprioritize("critical", "LOW");
    const waiting = tracker.acquire("urgent", "HIGH");
    expect(tracker.isPaused("critical")).toBe(true);
    tracker.settle("critical");
    await waiting;
    await expect(tracker.acquire("wrong", "high" as never)).rejects.toThrow("use Priority.HIGH");
  });
});
