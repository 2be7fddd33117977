// The code blocks of seed 002 in TypeScript. Each comment `002:37` quotes the line of the seed beside it.

import { expect, test } from "vitest";
import {
  Agent,
  BudgetExhaustedError,
  CostTracker,
  ExecutionTracker,
  formatAgentId,
  HookEvent,
  HookManager,
  openRuntime,
  OrchestratorAgent,
  Priority,
  ReActAgent,
  RetryPolicy,
  RunLogger,
  SpawnTracker,
  Supervision,
  tool,
  type HookCallback,
  type HostedAgent,
  type SubAgentConfig,
  type Usage,
} from "../../src/entries/index.ts";
import { Transcript, userMessage } from "../../src/entries/kernel.ts";
import { scriptedModel } from "../../src/entries/testing.ts";

const orchestratorId = formatAgentId({ name: "orchestrator" });
const look = tool({
  name: "look",
  description: "Looks",
  inputSchema: { type: "object" },
  execute: () => "rain",
});
const looks = { toolCalls: [{ name: "look", input: {} }] };

test("002:37 a SpawnTracker is made from the budget of a Supervision and counts the root as 1", () => {
  // 002:37 supervision = Supervision.root(orchestrator_id, spawn_budget=SpawnBudget(max_agents=20))
  const supervision = Supervision.root(orchestratorId, { spawnBudget: { maxAgents: 20 } });
  const tracker = new SpawnTracker(supervision.spawnBudget); // 002:38 tracker = SpawnTracker(supervision.spawn_budget)
  expect(tracker.seatsTaken).toBe(1); // 002:39 the tracker starts at _total = 1
  expect(tracker.budget.maxAgents).toBe(20);
});

test("002:47 acquire() grants a free seat, refuses NORMAL without one, and lets HIGH preempt the lowest priority", async () => {
  const tracker = new SpawnTracker({ maxAgents: 3 });
  await tracker.acquire("scout", Priority.LOW); // 002:49 if self._total < self._max_agents:
  await tracker.acquire("clerk", Priority.NORMAL);
  expect(tracker.seatsTaken).toBe(3); // 002:51 self._total += 1
  // 002:54 if priority <= Priority.NORMAL: raise BudgetExhaustedError(...)
  await expect(tracker.acquire("other", Priority.NORMAL)).rejects.toBeInstanceOf(BudgetExhaustedError);
  const hired = tracker.acquire("urgent", Priority.HIGH); // 002:57 candidates = [... if p < priority]
  expect(tracker.isPaused("scout")).toBe(true); // 002:61 self._paused.add(victim_id)
  tracker.settle("scout"); // the victim's calls are over: it yields its seat
  await hired; // 002:62 self._active[agent_id] = priority
  expect([tracker.hasSeat("urgent"), tracker.hasSeat("scout")]).toEqual([true, false]);
  expect(tracker.seatsTaken).toBe(3); // 002:62 reallocate — total UNCHANGED
});

test("002:59 acquire() refuses HIGH if no agent has a strictly lower priority", async () => {
  const tracker = new SpawnTracker({ maxAgents: 2 });
  await tracker.acquire("first", Priority.HIGH);
  // 002:58 if not candidates: raise BudgetExhaustedError(...)
  await expect(tracker.acquire("second", Priority.HIGH)).rejects.toBeInstanceOf(BudgetExhaustedError);
});

test("002:83 release(), is_paused() and reprioritize() return, show and move seats", async () => {
  const tracker = new SpawnTracker({ maxAgents: 2 });
  await tracker.acquire("scout", "LOW");
  const hired = tracker.acquire("urgent", "HIGH");
  tracker.settle("scout");
  await hired;
  tracker.reprioritize("scout", Priority.NORMAL);
  expect(tracker.isPaused("scout")).toBe(true); // a promoted task queues; it takes no seat of its own accord
  tracker.release("urgent");
  expect(tracker.hasSeat("scout")).toBe(true);
  tracker.release("scout");
  expect(tracker.seatsTaken).toBe(1); // never below 1, so the root's slot is never lost
});

test("002:88 an orchestrator takes a seat, spawns, asks and gives the seat back in all cases", async () => {
  const cfg = { agent: worker("done"), priority: Priority.HIGH, askTimeoutMs: 120_000 };
  const lead: HostedAgent = {
    id: orchestratorId,
    subAgents: [cfg.agent],
    spawnBudget: { maxAgents: 2 },
    async run(ctx) {
      const spawnTracker = new SpawnTracker(ctx); // 002:88 spawn_tracker = SpawnTracker(self._spawn_budget)
      const spawned = await ctx.spawn(cfg.agent.id, "go", { priority: cfg.priority }); // 002:90 acquire; 002:92 spawn
      if (spawned.kind === "refused") return spawned.reason;
      const during = spawnTracker.seatsTaken;
      // 002:93 outcome = await ctx.ask(handle, ..., timeout=cfg.ask_timeout)
      const outcome = await ctx.ask(spawned.handle, null, { timeoutMs: cfg.askTimeoutMs });
      const answer = outcome.kind === "replied" ? outcome.body : outcome.kind;
      return [during, answer, spawnTracker.seatsTaken]; // 002:95 spawn_tracker.release(cfg.agent.id) # always
    },
  };
  await using runtime = await openRuntime();
  const { output } = await (await runtime.submit(lead, null)).result();
  expect(output).toEqual([2, "done", 1]);
});

function worker(answer: string): HostedAgent {
  return { id: formatAgentId({ name: "worker" }), run: async () => answer };
}

test("002:99 class RetryPolicy restarts an agent up to max_retries times and counts each attempt", () => {
  const policy = new RetryPolicy(3); // 002:101 def __init__(self, max_retries: int = 3)
  expect(new RetryPolicy().maxRetries).toBe(3);
  const attempts = [1, 2, 3, 4].map(() => policy.shouldRetry(orchestratorId)); // 002:104 def should_retry(agent_id)
  expect(attempts).toEqual([true, true, true, false]); // 002:109 return False
  policy.reset(orchestratorId); // 002:110 def reset(self, agent_id) # clear after a success
  expect(policy.shouldRetry(orchestratorId)).toBe(true);
});

test("002:118 class ExecutionTracker adds up tokens, cost and turns, and stops at the first cap", () => {
  const tracker = new ExecutionTracker({
    maxTokens: 4_000, // 002:119 max_tokens: int | None = None
    maxCostUsd: null, // 002:120 max_cost_usd: float | None = None
    maxTurns: null, // 002:121 max_turns: int | None = None
  });
  tracker.consume(); // 002:126 def consume(self, tokens: int = 0, cost: float = 0.0, turns: int = 0)
  tracker.consume({ tokens: 2_000, cost: 0.5, turns: 1 }); // 002:127 self._used_tokens += tokens
  expect(tracker.spent).toEqual({ tokens: 2_000, costUsd: 0.5, turns: 1 });
  // 002:131 Token budget exceeded: 4200 > 4000
  expect(() => tracker.consume({ tokens: 2_200 })).toThrow(BudgetExhaustedError); // 002:130 self._check()
  expect(() => tracker.consume(0)).toThrow("4200 > 4000");
});

test("002:134 a loop records each answer on its tracker and stops in the middle of the loop", async () => {
  const tracker = new ExecutionTracker({ maxTurns: 2 });
  const model = scriptedModel(["One.", "Two.", "Three.", "Four."]);
  const loop: HostedAgent = {
    id: orchestratorId,
    models: { main: model },
    async run(ctx) {
      const transcript = Transcript.of([userMessage("Go.")]);
      for (;;) {
        const resp = await ctx.llm({ transcript }); // 002:134 resp = await ctx.llm(llm_messages, options=options)
        const { inputTokens, outputTokens } = resp.usage;
        tracker.consume({
          tokens: inputTokens + outputTokens, // 002:138 tokens=resp.usage.total_tokens if resp.usage else 0,
          turns: 1, // 002:139 turns=1,
        });
      }
    },
  };
  await using runtime = await openRuntime();
  const { status, error } = await (await runtime.submit(loop, null)).result();
  expect(status).toBe("budget_exhausted"); // 002:141 BudgetExhaustedError is raised mid-loop and the run stops
  expect(error?.code).toBe("budget_exhausted");
  expect(model.calls).toHaveLength(3);
  const budgeted = new Agent({
    name: "bot",
    model: scriptedModel([looks, looks, "Done."]),
    tools: [look],
    budget: { maxTurns: 2 },
  });
  expect((await budgeted.invoke("Go.")).status).toBe("budget_exhausted"); // the same without a line of code
});

test("002:202 hooks are registered with on() or register() and watch the agent that has them", async () => {
  const printed: string[] = [];
  const timings: [string, number][] = [];
  const hooks = new HookManager(); // 002:202 hooks = HookManager()
  // 002:203 @hooks.on(HookEvent.RUN_START)  async def log_start(ctx):
  hooks.on(HookEvent.RUN_START)(async ({ agentName, runId }) => {
    printed.push(`Agent ${agentName} starting run ${runId}`); // 002:205 print(f"Agent {ctx['agent_name']} ...")
  });
  // 002:206 @hooks.on(HookEvent.TOOL_END)  def track_tool(ctx): # sync callbacks are fine too
  hooks.on(HookEvent.TOOL_END, ({ toolName, durationMs }) => void timings.push([toolName, durationMs]));
  const ended: string[] = [];
  const onEnd: HookCallback<"run_end"> = ({ status }) => void ended.push(status);
  hooks.register({ event: HookEvent.RUN_END, callback: onEnd });
  const model = scriptedModel([looks, "It rains."]);
  const agent = new ReActAgent({ name: "bot", model, tools: [look], hooks }); // 002:209 agent = ReActAgent("bot", ...)
  const { runId } = await agent.invoke("Rain?");
  await new ReActAgent({ name: "other", model: scriptedModel(["Hi."]) }).invoke("Hi."); // per agent, not globally
  expect(printed).toEqual([`Agent bot starting run ${runId}`]);
  expect(timings).toEqual([["look", expect.any(Number)]]);
  expect(ended).toEqual(["completed"]);
});

test("002:217 a hook callback that throws or rejects in _safe_call is recorded, and the agent continues", async () => {
  const failures: unknown[] = [];
  const hooks = new HookManager({ onError: ({ error }) => void failures.push(error) });
  hooks.on(HookEvent.LLM_END, () => {
    throw new Error("metrics are down"); // 002:219 result = cb(context)
  });
  hooks.on(HookEvent.LLM_END, async () => Promise.reject(new Error("network is down"))); // 002:221 await result
  await using runtime = await openRuntime({ onError: () => undefined });
  const { status } = await new Agent({ name: "bot", model: scriptedModel(["Hi."]), hooks }).invoke("Hi.", {
    runtime,
  });
  expect(status).toBe("completed"); // 002:224 swallowed — the agent keeps running
  expect(failures.map(String)).toEqual([
    expect.stringContaining("metrics are down"), // 002:223 logger.error("Hook error in %s for %s: %s", ...)
    expect.stringContaining("network is down"),
  ]);
});

test("002:227 CostTracker and RunLogger are ready-made hooks", async () => {
  const hooks = new HookManager();
  const [costs, logger] = [new CostTracker(), new RunLogger()];
  hooks.register(costs);
  hooks.register(logger);
  await new Agent({
    name: "bot",
    model: scriptedModel([{ text: "Hi.", usage: { inputTokens: 3, outputTokens: 2 } }]),
    hooks,
  }).invoke("Hi.");
  expect(logger.entries().map(({ hook }) => hook)).toEqual(
    expect.arrayContaining([HookEvent.RUN_START, HookEvent.LLM_END, HookEvent.RUN_END]),
  );
});

test("002:233 one orchestrated run uses the limit of agents, the budget and the hooks", async () => {
  const recorded: Usage[] = [];
  const hooks = new HookManager(); // 002:233 hooks = HookManager()
  // 002:234 @hooks.on(HookEvent.LLM_END)  async def watch_cost(ctx): # camera: observe only
  hooks.on(HookEvent.LLM_END)(async ({ usage }) => void recorded.push(usage)); // 002:236 record(ctx["usage"])
  const researcher = new ReActAgent({
    name: "researcher", // 002:238 "researcher",
    model: scriptedModel([{ text: "It rains.", usage: { inputTokens: 100, outputTokens: 5 } }]), // 002:239 model=model
    budget: { maxTokens: 50_000, maxTurns: 20 }, // 002:240 ExecutionTracker(max_tokens=50_000, max_turns=20), # the tab
    hooks, // 002:241 hooks=hooks,
  });
  // 002:246 sub_agents=[SubAgentConfig(agent=researcher, priority=Priority.HIGH, ask_timeout=120)]
  const config: SubAgentConfig = { agent: researcher, priority: Priority.HIGH, askTimeoutMs: 120_000 };
  const model = scriptedModel([
    { toolCalls: [{ name: "handoff_researcher", input: { task: "Weather?" } }] },
    "Take an umbrella.",
  ]);
  const orchestrator = new OrchestratorAgent({
    name: "lead", // 002:244 "lead",
    model, // 002:245 model=model,
    subAgents: [config],
    spawnBudget: { maxAgents: 10, allowPreempt: true }, // 002:247 SpawnBudget(max_agents=10, allow_preempt=True)
  });
  const { status, output, turns } = await orchestrator.invoke("Umbrella?");
  expect({ status, output, turns }).toEqual({ status: "completed", output: "Take an umbrella.", turns: 3 });
  expect(recorded).toMatchObject([{ inputTokens: 100, outputTokens: 5 }]);
  expect(JSON.stringify(model.calls[1]?.messages)).toContain("It rains.");
});
