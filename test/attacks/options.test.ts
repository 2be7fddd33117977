import { describe, expect, test } from "vitest";
import * as architectures from "../../src/agents/architectures/index.ts";
import { BrowserSession } from "../../src/capabilities/browser/index.ts";
import * as guardrails from "../../src/assembly/guardrails.ts";
import * as tools from "../../src/capabilities/tools/index.ts";
import * as reeve from "../../src/entries/index.ts";
import { mcpServer, mcpServers } from "../../src/assembly/mcp.ts";
import { openMemory } from "../../src/assembly/memory.ts";
import * as middleware from "../../src/assembly/middleware.ts";
import { sqliteStore } from "../../src/runtime/stores/sqlite/store.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { refusal, type Untyped } from "./refused-option.ts";

const { Agent, ExecutionTracker, Priority, SpawnTracker, tool } = reeve;
const model = scriptedModel(["Done.", "Done.", "Done."]);
const agent = new Agent({ name: "worker", model });
const other = new Agent({ name: "other", model });
const look = tool({ name: "look", description: "", inputSchema: {}, execute: () => "" });
const stages = { input: "block" } as const;

/** A function that takes options, a call with one misspelt option, and the option that the error must name. */
type Row = readonly [what: string, call: () => unknown, nearest: string];

function row(what: string, call: unknown, args: readonly unknown[], nearest: string): Row {
  const isClass = typeof call === "function" && /^class\b/u.test(Function.prototype.toString.call(call));
  return [
    what,
    () => (isClass ? Reflect.construct(call as never, [...args]) : (call as Untyped)(...args)),
    nearest,
  ];
}

const named = { name: "a", model };

const rows: readonly Row[] = [
  // Agents and their kinds.
  row("Agent maxturns", Agent, [{ ...named, maxturns: 1 }], "maxTurns"),
  row("Agent permission", Agent, [{ ...named, permission: {} }], "permissions"),
  row("Agent spawn_budget", Agent, [{ ...named, spawn_budget: { max_agents: 1 } }], "spawnBudget"),
  row("Agent middlewares", Agent, [{ ...named, middlewares: [] }], "middleware"),
  row("Agent budget.max_cost_usd", Agent, [{ ...named, budget: { max_cost_usd: 1 } }], "maxCostUsd"),
  row("Agent budget.deadline_s", Agent, [{ ...named, budget: { deadline_s: 1 } }], "deadlineMs"),
  row(
    "Agent spawnBudget.allowPreemption",
    Agent,
    [{ ...named, spawnBudget: { allowPreemption: false } }],
    "allowPreempt",
  ),
  row(
    "ReActAgent initial_tool_choice",
    reeve.ReActAgent,
    [{ ...named, initial_tool_choice: "none" }],
    "initialToolChoice",
  ),
  row(
    "OrchestratorAgent sub_agents",
    reeve.OrchestratorAgent,
    [{ ...named, sub_agents: [agent] }],
    "subAgents",
  ),
  row(
    "InformationAgent topics",
    reeve.InformationAgent,
    [{ ...named, sources: ["a/b"], topics: "c/d" }],
    "topic",
  ),
  row("Sequential step", reeve.Sequential, [{ name: "a", step: [agent] }], "steps"),
  row("Parallel branch", reeve.Parallel, [{ name: "a", branch: [agent] }], "branches"),
  row(
    "Conditional iftrue",
    reeve.Conditional,
    [{ name: "a", predicate: () => true, iftrue: agent, ifFalse: agent }],
    "ifTrue",
  ),
  row("Graph max_visits", reeve.Graph, [{ name: "a", nodes: {}, edges: [], max_visits: 1 }], "maxVisits"),
  row("SubAgentConfig timeout", Agent, [{ ...named, subAgents: [{ agent, askTimeout: 1 }] }], "askTimeoutMs"),
  // Architectures.
  row("react()", architectures.react, [{ initialToolchoice: "none" }], "initialToolChoice"),
  row("reflexion()", architectures.reflexion, [undefined, { maxAttempt: 1 }], "maxAttempts"),
  row("selfRefine()", architectures.selfRefine, [undefined, { max_rounds: 1 }], "maxRounds"),
  row("planAndExecute()", architectures.planAndExecute, [{ maxStep: 1 }], "maxSteps"),
  row("rewoo()", architectures.rewoo, [{ maxstep: 1 }], "maxSteps"),
  row("treeOfThoughts()", architectures.treeOfThoughts, [{ branch: 1 }], "branches"),
  row("graphOfThoughts()", architectures.graphOfThoughts, [{ operation: [] }], "operations"),
  row("deepAgent()", architectures.deepAgent, [{ maxTodo: 1 }], "maxTodos"),
  row("router()", architectures.router, [{ routes: { agent }, fallback: "agent" }], "fallbackRoute"),
  row("supervisor()", architectures.supervisor, [{ workers: { agent }, max_spawned: 1 }], "maxSpawned"),
  row(
    "actorCritic()",
    architectures.actorCritic,
    [{ actor: agent, critic: other, maxRound: 1 }],
    "maxRounds",
  ),
  row("debate()", architectures.debate, [{ debaters: { agent, other }, round: 1 }], "rounds"),
  row("swarm()", architectures.swarm, [{ peers: { agent, other }, maxHandoff: 1 }], "maxHandoffs"),
  row("blackboard()", architectures.blackboard, [{ agents: { agent }, max_rounds: 1 }], "maxRounds"),
  row(
    "a member of a team",
    architectures.router,
    [{ routes: { agent: { agent, onfull: "wait" } } }],
    "onFull",
  ),
  // Guardrails and permissions.
  row("contentFilter()", guardrails.contentFilter, [{ topics: { a: ["b"] }, stage: stages }], "stages"),
  row("llmJudge()", guardrails.llmJudge, [{ criteria: "x", stages, on_error: "allow" }], "onError"),
  row("loopDetection()", guardrails.loopDetection, [{ exactFailures: {} }], "exactFailure"),
  row("loopDetection() thresholds", guardrails.loopDetection, [{ exactFailure: { blocks: 1 } }], "block"),
  row("maxTokens()", guardrails.maxTokens, [{ limit: { input: 1 } }], "limits"),
  row("pii()", guardrails.pii, [{ kind: ["card"] }], "kinds"),
  row("promptInjection()", guardrails.promptInjection, [{ stage: stages }], "stages"),
  row("regex()", guardrails.regex, [{ pattern: { a: /a/u } }], "patterns"),
  row("toolCallValidation()", guardrails.toolCallValidation, [{ maxCall: { a: 1 } }], "maxCalls"),
  row("permissions()", reeve.permissions, [{ on_ask: "wait" }], "onAsk"),
  row("a rule of permissions()", reeve.permissions, [{ deny: [{ tool: "x", When: () => true }] }], "when"),
  row("toolHooks()", reeve.toolHooks, [{ timeout: 1 }], "timeoutMs"),
  row("HookManager", reeve.HookManager, [{ onerror: () => {} }], "onError"),
  row("RunLogger", reeve.RunLogger, [{ Capacity: 1 }], "capacity"),
  row("ExecutionTracker", ExecutionTracker, [{}, { warnat: 0.5 }], "warnAt"),
  // Middleware and compaction.
  row("auditLogger()", middleware.auditLogger, [{ log: { record: () => {} }, require: true }], "required"),
  row("cache()", middleware.cache, [{ ttl: 1 }], "ttlMs"),
  row("contentTruncator()", middleware.contentTruncator, [{ maxChar: 1 }], "maxChars"),
  row("fileValidator()", middleware.fileValidator, [{ root: ["/tmp"] }], "roots"),
  row("historyTruncator()", middleware.historyTruncator, [{ max_messages: 1 }], "maxMessages"),
  row("humanApproval()", middleware.humanApproval, [{ tool: ["x"] }], "tools"),
  row("injectionMarking()", middleware.injectionMarking, [{ tool: ["x"] }], "tools"),
  row("modelFallback()", middleware.modelFallback, [{ model: [model] }], "models"),
  row("piiRedaction()", middleware.piiRedaction, [{ tomodel: false }], "toModel"),
  row("rateLimiter()", middleware.rateLimiter, [{ burst: 1, per_second: 1 }], "perSecond"),
  row("retry()", middleware.retry, [{ retries: 1 }], "maxRetries"),
  row("schemaValidator()", middleware.schemaValidator, [{ schema: {}, maxRepair: 1 }], "maxRepairs"),
  row("tracing()", middleware.tracing, [{ telemetry: {}, contents: true }], "content"),
  row("structuredOutput()", reeve.structuredOutput, [{ schema: {}, max_repairs: 1 }], "maxRepairs"),
  row("summarization()", reeve.summarization, [{ summarize: () => {}, maxToken: 1 }], "maxTokens"),
  row("slidingWindow()", reeve.slidingWindow, [{ maxMessage: 1 }], "maxMessages"),
  row("tokenBudget()", reeve.tokenBudget, [{ strategies: [], max_tokens: 1 }], "maxTokens"),
  row("truncation()", reeve.truncation, [{ maxchars: 1 }], "maxChars"),
  // Models, tools and stores.
  row("withSettings()", reeve.withSettings, [model, { max_output_tokens: 1 }], "maxOutputTokens"),
  row("fallback()", reeve.fallback, [[model], { When: () => true }], "when"),
  row("route()", reeve.route, [{ model: {}, choose: () => "a" }], "models"),
  row("namedModel()", reeve.namedModel, ["openai/gpt-5", { apikey: "k" }], "apiKey"),
  row("priceCatalog()", reeve.priceCatalog, [{ override: [] }], "overrides"),
  row(
    "tool()",
    tool,
    [{ name: "t", description: "", inputSchema: {}, execute: () => "", needsapproval: true }],
    "needsApproval",
  ),
  row("bashTool()", tools.bashTool, [{ root: "/tmp", sandBox: "off" }], "sandbox"),
  row("fetchTool()", tools.fetchTool, [{ allowprivate: false }], "allowPrivate"),
  row("fileTools()", tools.fileTools, [{ root: "/tmp", readonly: true }], "readOnly"),
  row("readTool()", tools.readTool, [{ root: "/tmp", max_bytes: 1 }], "maxBytes"),
  row("writeTool()", tools.writeTool, [{ root: "/tmp", max_bytes: 1 }], "maxBytes"),
  row("grepTool()", tools.grepTool, [{ root: "/tmp", maxmatches: 1 }], "maxMatches"),
  row("toolSearch()", tools.toolSearch, [{ tools: [look], maxResult: 1 }], "maxResults"),
  row("BrowserSession", BrowserSession, [{ allowed: () => false }], "allow"),
  row("mcpServers()", mcpServers, [{}, { onwarning: () => {} }], "onWarning"),
  row(
    "mcpServers() config",
    mcpServers,
    [{ a: { command: "x", trustAnnotation: true } }],
    "trustAnnotations",
  ),
  row("mcpServers() config of HTTP", mcpServers, [{ a: { url: "http://a.example", header: {} } }], "headers"),
  row("imageResult()", reeve.imageResult, [{ url: "https://a.example" }, "image/png", { Text: "x" }], "text"),
  row(
    "fileResult()",
    reeve.fileResult,
    [{ url: "https://a.example" }, "text/csv", { fileName: "x" }],
    "filename",
  ),
  row("summarizeWith()", reeve.summarizeWith, [model, { max_output_tokens: 1 }], "maxOutputTokens"),
  row("summarizeIn()", reeve.summarizeIn, [{}, { Role: "cheap" }], "role"),
  row("composeGate()", reeve.composeGate, [{ guardrail: [] }], "guardrails"),
  row("scriptedModel()", scriptedModel, [["Done."], { modelID: "x" }], "modelId"),
  row(
    "Supervision.root()",
    (...args: readonly unknown[]) => reeve.Supervision.root(agent.id, args[0] as never),
    [{ spawn_budget: { maxAgents: 1 } }],
    "spawnBudget",
  ),
  row(
    "Supervision.spawnChild()",
    (options: unknown) => reeve.Supervision.root(agent.id).spawnChild(options as never),
    [{ parentId: agent.id, execution_budget: { maxTokens: 1 } }],
    "executionBudget",
  ),
  row(
    "RunMeta.standalone()",
    (options: unknown) => reeve.RunMeta.standalone(options as never),
    [{ dead_line: 1 }],
    "deadline",
  ),
  row(
    "RunMeta.child()",
    (options: unknown) => reeve.RunMeta.standalone().child(options as never),
    [{ Deadline: 1 }],
    "deadline",
  ),
  row("memoryStore()", reeve.memoryStore, [{ hash: reeve.sha256, Inbox: {} }], "inbox"),
];

const promised: readonly (readonly [what: string, call: () => Promise<unknown>, nearest: string])[] = [
  ["openRuntime()", () => reeve.openRuntime({ auditkey: "k" } as never), "auditKey"],
  ["openStore()", () => reeve.openStore("memory:", { audit_key: "k" } as never), "auditKey"],
  [
    "sqliteStore()",
    () => sqliteStore({ path: "/nonexistent/x.db", Durability: "full" } as never),
    "durability",
  ],
  ["openMemory()", () => openMemory({ path: "/nonexistent/x.db", clocks: 1 } as never), "clock"],
  ["openTelemetry()", () => reeve.openTelemetry({ if_missing: "ignore" } as never), "ifMissing"],
  ["mcpServer()", () => mcpServer({ name: "x", tool: [] } as never), "tools"],
  ["mcpServer() http", () => mcpServer({ name: "x", http: { allowedHost: ["a"] } } as never), "allowedHosts"],
  [
    "mcpServer() agents",
    () => mcpServer({ name: "x", agents: [{ agent, description: "", input_schema: {} }] } as never),
    "inputSchema",
  ],
  ["resume()", () => agent.resume("run_1", { Runtime: 1 } as never), "runtime"],
  ["signal()", () => agent.signal("run_1", "go", null, { runTime: 1 } as never), "runtime"],
  ["acquire()", () => new SpawnTracker({}).acquire("a", "LOW", { Parent: "b" } as never), "parent"],
  ["invoke()", () => agent.invoke("Go.", { user_id: "ann" } as never), "userId"],
  ["submit()", () => agent.submit("Go.", { tenant: "acme" } as never), "tenantId"],
  ["runUntil()", () => agent.runUntil("Go.", { until: () => true, max_cost_usd: 1 } as never), "maxCostUsd"],
];

describe("careless code: a misspelt option would switch a limit off", () => {
  test.each(rows)("careless code: %s is refused, and the error names the option", (_what, call, nearest) => {
    expect(call).toThrow(refusal(nearest));
  });

  test.each(promised)(
    "%s refuses a misspelt option and names the right one",
    async (_what, call, nearest) => {
      await expect(call()).rejects.toThrow(refusal(nearest));
    },
  );
});

describe("careless code: a value that looks like a limit but is none", () => {
  test.each([
    ["an ExecutionTracker as budget", { budget: new ExecutionTracker({ maxTokens: 5 }) }],
    ["a SpawnTracker as spawnBudget", { spawnBudget: new SpawnTracker({ maxAgents: 1 }) }],
    ["a Map as budget", { budget: new Map([["maxTokens", 5]]) }],
    ["a number as budget", { budget: 5 }],
    ["a text as budget", { budget: "5 USD" }],
    ["an array as spawnBudget", { spawnBudget: [5] }],
    ["NaN tokens", { budget: { maxTokens: Number.NaN } }],
    ["negative dollars", { budget: { maxCostUsd: -1 } }],
    ["tokens as a text", { budget: { maxTokens: "5000" } }],
    ["a priority in lower case", { subAgents: [{ agent: other, priority: "high" }] }],
    ["a priority in mixed case", { subAgents: [{ agent: other, priority: "High" }] }],
    ["a priority that is no weight", { subAgents: [{ agent: other, priority: 3 }] }],
    ["an unknown inbox mode", { inbox: "all" }],
    ["rules in place of permissions", { permissions: { deny: ["*"] } }],
    ["a function in place of permissions", { permissions: () => ({ decision: "deny" }) }],
    ["a HookManager in place of tool hooks", { toolHooks: new reeve.HookManager() }],
    ["tool hooks in place of a HookManager", { hooks: reeve.toolHooks() }],
    ["middleware with process() and no level", { middleware: [{ process: () => {} }] }],
    ["middleware with a level in capitals", { middleware: [{ level: "CHAT", process: () => {} }] }],
    ["a bare function as middleware", { middleware: [() => {}] }],
    [
      "a guardrail in snake case",
      { guardrails: [{ name: "g", before_call: () => ({ decision: "block" }) }] },
    ],
    ["a guardrail with an unknown stage", { guardrails: [{ name: "g", onToolCall: () => ({}) }] }],
    ["an extension in snake case", { extensions: [{ name: "e", tool_call: () => ({ block: true }) }] }],
    ["a tool without execute", { tools: [{ name: "t", description: "", inputSchema: {} }] }],
    ["a tool of another library", { tools: [{ type: "function", function: { name: "t" } }] }],
    ["an architecture without declaredWorkers", { architecture: { name: "x", run: () => [] } }],
    ["an architecture without run", { architecture: { name: "x", declaredWorkers: () => ({}) } }],
    ["a class in place of an architecture", { architecture: Agent }],
  ])("new Agent() refuses %s", (_what, options) => {
    expect(() => new Agent({ ...named, ...options } as never)).toThrow(
      expect.objectContaining({ code: "invalid_argument" }),
    );
  });

  class Beforecall {
    readonly name = "g";
    beforecall(): object {
      return { decision: "block", reason: "No." };
    }
  }

  test.each<[string, object, string]>([
    [
      "a guardrail in snake case",
      { guardrails: [{ name: "g", before_call: () => ({ decision: "block" }) }] },
      "invalid guardrail g of composeGate(): unknown method before_call; use beforeCall",
    ],
    [
      "an instance of a class whose method is misspelt",
      { guardrails: [new Beforecall()] },
      "invalid guardrail g of composeGate(): unknown method beforecall; use beforeCall",
    ],
    [
      "a bare function as guardrail",
      { guardrails: [() => ({ decision: "block" })] },
      "of composeGate(): expected an object, not",
    ],
    [
      "one guardrail without a list",
      { guardrails: { name: "g", beforeCall: () => ({}) } },
      "expected an array",
    ],
    [
      "a function in place of permissions",
      { permissions: () => ({ decision: "deny" }) },
      "invalid permissions of composeGate(): it has no method check; use permissions({ ... })",
    ],
    ["rules in place of permissions", { permissions: { deny: ["*"] } }, "it has no method check"],
    [
      "a HookManager in place of tool hooks",
      { hooks: new reeve.HookManager() },
      "invalid hooks of composeGate(): it has no method preTool; use toolHooks()",
    ],
  ])("composeGate() refuses %s, because it would let every call pass", (_what, parts, message) => {
    expect(() => reeve.composeGate(parts as never)).toThrow(
      expect.objectContaining({ code: "invalid_argument", message: expect.stringContaining(message) }),
    );
  });

  test("composeGate() accepts null for a part that is not configured", () => {
    const parts = { hooks: null, guardrails: null, permissions: null };
    expect(reeve.composeGate(parts as never)).toBeUndefined();
  });

  test("limits in their right form are accepted as options", () => {
    const options: reeve.AgentOptions = {
      ...named,
      budget: { maxTokens: 5 },
      spawnBudget: { maxAgents: 1 },
      subAgents: [{ agent: other, priority: Priority.HIGH }],
      permissions: reeve.permissions({ deny: ["*"] }),
      middleware: [
        { name: "m", level: "chat", process: async (_context: unknown, next: () => Promise<void>) => next() },
      ],
      tools: [look],
    };
    expect(() => new Agent(options)).not.toThrow();
  });
});
