// The code blocks of seeds 000 and 001 in TypeScript. Each comment `000:47` quotes the line of the seed beside it.

import { expect, test } from "vitest";
import {
  Agent,
  CancellationError,
  CancellationToken,
  formatAgentId,
  HistoryRetention,
  MiddlewareTermination,
  openRuntime,
  Priority,
  RunMeta,
  slidingWindow,
  Supervision,
  type AgentContext,
  type AgentId,
  type AgentRunContext,
  type Architecture,
  type ChatContext,
  type ChatMessage,
  type CompactionStrategy,
  type ExecutionBudget,
  type FunctionContext,
  type Middleware,
  type SpawnBudget,
  tool,
} from "../../src/entries/index.ts";
import { messageText, userMessage } from "../../src/entries/kernel.ts";
import { FakeClock, scriptedModel } from "../../src/entries/testing.ts";

const agentId = formatAgentId({ name: "lead" });

test("000:21 class Supervision is frozen, with ids, both budgets, retention and priority", () => {
  const sup = Supervision.root(agentId);
  expect(sup.runId).toMatch(/^run_/u); // 000:23 run_id: str # one execution tree
  expect(sup.sessionId).toMatch(/^ses_/u); // 000:24 session_id: str # one conversation thread
  expect(sup.rootId satisfies AgentId).toBe("lead"); // 000:25 root_id: AgentId # the top of this tree
  expect(sup.parentId satisfies AgentId | null).toBeNull(); // 000:26 parent_id: AgentId | None
  expect(sup.depth).toBe(0); // 000:27 depth: int = 0
  expect(sup.spawnBudget).toEqual({ maxAgents: 50, allowPreempt: true }); // 000:28 spawn_budget: SpawnBudget = ...
  const unlimited = { maxTokens: null, maxCostUsd: null, maxTurns: null, deadlineMs: null };
  expect(sup.executionBudget).toEqual(unlimited); // 000:29 execution_budget: ExecutionBudget = ...
  const child = sup.spawnChild({ parentId: sup.rootId });
  expect(child.retention).toBe(HistoryRetention.RUN); // 000:30 retention: HistoryRetention = HistoryRetention.RUN
  expect(child.priority).toBe(Priority.NORMAL); // 000:31 priority: Priority = Priority.NORMAL
  expect(() => Object.assign(sup, { depth: 7 })).toThrow(TypeError); // 000:21 @dataclass(frozen=True, slots=True)
});

test("000:47 Supervision.root() and spawn_child() build the tree", () => {
  const sup = Supervision.root(agentId, {
    sessionId: undefined, // 000:49 session_id=None, # None → fresh uuid
    spawnBudget: undefined, // 000:50 spawn_budget=None, # None → SpawnBudget()
    retention: HistoryRetention.PERMANENT, // 000:52 retention=HistoryRetention.PERMANENT
    priority: Priority.NORMAL, // 000:53 priority=Priority.NORMAL
  });
  const childSup = sup.spawnChild({
    parentId: sup.rootId, // 000:57 parent_id=sup.root_id,
    retention: HistoryRetention.RUN, // 000:58 retention=HistoryRetention.RUN, # default for children
    priority: Priority.HIGH, // 000:59 priority=Priority.HIGH,
  });
  const { runId, sessionId } = sup;
  expect(childSup).toMatchObject({ runId, sessionId, parentId: "lead", depth: 1, priority: Priority.HIGH });
  expect(childSup.spawnBudget).toBe(sup.spawnBudget); // 000:65 the same SpawnBudget instance
  expect(childSup.executionBudget).toEqual(sup.executionBudget); // 000:60 None → inherit the parent's budget
  expect([sup.isRoot, childSup.isRoot]).toEqual([true, false]);
  expect(childSup.progressTopic).toBe(`agent.progress/${runId}`);
});

test("000:86 the class SpawnBudget caps the agents of a run, and 000:92 the class ExecutionBudget the spending of one", async () => {
  const spawnBudget: SpawnBudget = {
    maxAgents: 50, // 000:87 max_agents: int = 50 # root counts as 1
    allowPreempt: true, // 000:88 allow_preempt: bool = True
  };
  const budget: Partial<ExecutionBudget> = {
    maxTokens: null, // 000:93 max_tokens: int | None = None
    maxCostUsd: null, // 000:94 max_cost_usd: float | None = None
    maxTurns: 1, // 000:95 max_turns: int | None = None # LLM round-trips
    deadlineMs: 60_000, // 000:96 deadline_s: float | None = None
  };
  const look = tool({ name: "look", description: "", inputSchema: { type: "object" }, execute: () => "" });
  const model = scriptedModel([{ toolCalls: [{ name: "look", input: {} }] }, "Done."]);
  const { status } = await new Agent({ name: "lead", model, tools: [look], budget, spawnBudget }).invoke(
    "Go.",
  );
  expect(status).toBe("budget_exhausted");
});

test("000:110 HistoryRetention says how long the history is kept, and 000:103 Priority has its weights", async () => {
  expect(HistoryRetention).toEqual({
    NONE: "none", // 000:111 NONE = "none"
    RUN: "run", // 000:112 RUN = "run"
    PERMANENT: "permanent", // 000:113 PERMANENT = "permanent"
  });
  expect(Priority).toEqual({ BACKGROUND: 0, LOW: 1, NORMAL: 2, HIGH: 4, CRITICAL: 8 });
  await using runtime = await openRuntime();
  const agent = new Agent({ name: "lead", model: scriptedModel(["One.", "Two."]) });
  const kept = await agent.invoke("Go.", { runtime, retention: HistoryRetention.PERMANENT });
  const deleted = await agent.invoke("Go.", { runtime, retention: HistoryRetention.RUN });
  expect(await runtime.sessions.path(kept.sessionId)).toHaveLength(2);
  expect(await runtime.sessions.get(deleted.sessionId)).toBeUndefined();
});

test("000:167 the class RunMeta is the frozen identity of a run", () => {
  const meta = RunMeta.standalone({ deadline: 5_000, tenantId: "acme" });
  expect(meta.runId).toMatch(/^run_/u); // 000:168 run_id: str
  expect(meta.cancellation).toBeInstanceOf(CancellationToken); // 000:169 cancellation: CancellationToken
  expect(meta.supervision).toBeNull(); // 000:170 supervision: Supervision | None = None
  expect(meta.deadline).toBe(5_000); // 000:171 deadline: datetime | None = None
  expect(meta.traceId).not.toBe(RunMeta.standalone().traceId); // 000:172 trace_id: str = ... (auto-generated)
  expect(meta.tenantId).toBe("acme"); // 000:173 tenant_id: str | None = None
  expect(() => Object.assign(meta, { tenantId: "other" })).toThrow(TypeError); // 000:174 RunMeta is immutable
});

test("000:179 a CancellationToken is cancelled once, checked, awaited and handed to children", async () => {
  const token = new CancellationToken();
  const child = token.child(); // 000:182 child = token.child() # cancelled when this one is
  const waiting = child.wait(); // 000:181 await token.wait() # inside: block until cancelled
  token.check();
  token.cancel("user stopped"); // 000:179 token.cancel("user stopped") # from outside — idempotent
  token.cancel("again");
  expect(() => token.check()).toThrow(CancellationError); // 000:180 token.check() # raises CancellationError
  expect((await waiting).reason).toBe("user stopped");
  expect(() => child.check()).toThrow("user stopped");
});

test("000:185 meta.check() stops at a cancel and at the deadline", async () => {
  const clock = new FakeClock();
  const meta = RunMeta.standalone({ clock, deadline: clock.now() + 1_000 });
  meta.check();
  await clock.advance(1_001);
  expect(() => meta.check()).toThrow(CancellationError); // 000:187 if self.deadline and now() > self.deadline:
  expect(() => meta.check()).toThrow(/deadline/u); // 000:188 raise CancellationError("deadline exceeded")
  const cancelled = RunMeta.standalone({ clock });
  cancelled.cancellation.cancel("stop"); // 000:186 self.cancellation.check() # cancelled? -> CancellationError
  expect(() => cancelled.check()).toThrow("stop");
});

test("000:204 class CompactionStrategy shortens the raw history that a model sees", async () => {
  const lastTwo: CompactionStrategy = {
    // 000:205 async def compact(self, raw_history: list[ChatMessage]) -> list[ChatMessage]:
    compact: async (rawHistory: readonly ChatMessage[]) => rawHistory.slice(-2),
  };
  const model = scriptedModel(["One.", "Two.", "Three."]);
  await using runtime = await openRuntime();
  for (const strategy of [lastTwo, slidingWindow({ maxMessages: 2 })]) {
    const history = ["a", "b", "c", "d"].map((text) => userMessage(text));
    expect((await strategy.compact(history)).map(messageText)).toEqual(["c", "d"]);
  }
  const agent = new Agent({ name: "lead", model, compaction: { strategy: () => lastTwo } });
  const { sessionId } = await agent.invoke("first", { runtime });
  await agent.invoke("second", { runtime, sessionId });
  await agent.invoke("third", { runtime, sessionId });
  expect(model.calls[2]?.messages.map(messageText)).toEqual(["Two.", "third"]);
});

test("000:210 AgentContextProtocol gives the loop its id and the window that the loop sends", async () => {
  let seen: unknown;
  const architecture: Architecture = {
    name: "window",
    declaredWorkers: () => ({}),
    async *run(session, deps, prompt) {
      yield* [];
      const context: AgentContext = deps.history;
      session.messages = session.messages.append(userMessage(prompt));
      const window = await context.getPromptWindow(session.id); // 000:213 async def get_prompt_window(session_id)
      seen = { agentId: context.agentId, window: window.slice().map(messageText) }; // 000:212 def agent_id
    },
  };
  await new Agent({ name: "lead", model: scriptedModel([]), architecture }).invoke("Hello?");
  expect(seen).toEqual({ agentId: "lead", window: ["Hello?"] });
});

/** 000:220, 001:90 class Middleware(Protocol[CtxT]): one shape for all three levels. */
class Checkpoint<Context extends object> implements Middleware<Context> {
  readonly noted: string[];
  readonly name: string;

  constructor(name: string, noted: string[]) {
    this.name = name;
    this.noted = noted;
  }

  // 000:221, 001:91 async def process(self, context: CtxT, call_next: Callable[[], Awaitable[None]]) -> None
  async process(_context: Context, next: () => Promise<void>): Promise<void> {
    this.noted.push(`${this.name} in`);
    await next();
    this.noted.push(`${this.name} out`);
  }
}

test("000:220 and 001:90 class Middleware works before and after next() around the run, the model call and the tool call", async () => {
  const noted: string[] = [];
  const look = tool({
    name: "look",
    description: "Looks",
    inputSchema: { type: "object" },
    execute: () => (noted.push("tool"), "rain"),
  });
  const model = scriptedModel([{ toolCalls: [{ name: "look", input: {} }] }, "It rains."]);
  const middleware = [
    { agent: new Checkpoint<AgentRunContext>("agent", noted) },
    { chat: new Checkpoint<ChatContext>("chat", noted) },
    { function: new Checkpoint<FunctionContext>("function", noted) },
  ];
  await new Agent({ name: "scout", model, tools: [look], middleware }).invoke("Rain?");
  expect(noted).toEqual([
    "agent in",
    "chat in",
    "chat out",
    "function in",
    "tool",
    "function out",
    "chat in",
    "chat out",
    "agent out",
  ]);
});

test("000:226 middleware that skips next() answers itself, and 001:94 MiddlewareTermination halts the run", async () => {
  const model = scriptedModel(["The model's."]);
  const cached = await scriptedModel(["The cache's."]).generate({ messages: [userMessage("Hi")] });
  const cache: Middleware<ChatContext> = {
    process: async (context) => {
      context.result = cached;
    },
  };
  const hit = await new Agent({ name: "scout", model, middleware: [{ chat: cache }] }).invoke("Hi");
  expect(hit.output).toBe("The cache's.");
  const guard: Middleware<ChatContext> = {
    process: async () => {
      throw new MiddlewareTermination("blocked");
    },
  };
  const blocked = await new Agent({ name: "guarded", model, middleware: [{ chat: guard }] }).invoke("Hi");
  expect(blocked).toMatchObject({ status: "guardrail_tripped", interruptionReason: "blocked" });
  expect(model.calls).toEqual([]);
});
