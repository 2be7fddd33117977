import { describe, expect, test } from "vitest";
import {
  Agent,
  Conditional,
  END,
  ExecutionTracker,
  Graph,
  HookManager,
  InformationAgent,
  openRuntime,
  OrchestratorAgent,
  Parallel,
  permissions,
  Priority,
  ReActAgent,
  Sequential,
  SpawnTracker,
  START,
  tool,
  toolHooks,
  UserProxyAgent,
  withSettings,
  type AgentOptions,
} from "../../../src/entries/index.ts";
import {
  debate,
  planAndExecute,
  reflexion,
  router,
  selfRefine,
} from "../../../src/agents/architectures/index.ts";
import { agentKinds } from "../../../src/agents/definition/agent-settings.ts";
import { invokeKinds } from "../../../src/agents/calling/invoke-options.ts";
import { callSettingKinds } from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { scout } from "../scout.ts";

const model = scriptedModel(["Done."]);

/** Creates an agent as a caller without types does. */
function untyped(options: object): Agent {
  return new Agent({ name: "scout", model, ...options });
}

function refusal(message: string): unknown {
  return expect.objectContaining({ code: "invalid_argument", message: expect.stringContaining(message) });
}

describe("options of an architecture", () => {
  const members = ["a", "b"].map((name) => new Agent({ name, model }));
  test.each<[string, (options: never) => unknown, object, string]>([
    ["reflexion()", reflexion, { maxTrials: 2 }, "invalid base of reflexion(): it has no method run"],
    ["selfRefine()", selfRefine, { maxRounds: 2 }, "invalid base of selfRefine(): it has no method run"],
    [
      "planAndExecute()",
      planAndExecute,
      { base: { name: "mine", run: () => {} } },
      "invalid base of planAndExecute(): it has no method declaredWorkers",
    ],
    ["router()", router, { routes: members }, "invalid routes of router: expected an object"],
    ["debate()", debate, { debaters: members }, "invalid debaters of debate: expected an object"],
  ])(
    "%s refuses a base that is no architecture, and members without names",
    (_name, create, options, message) => {
      expect(() => create(options as never)).toThrow(refusal(message));
    },
  );
});

describe("an option in the wrong place", () => {
  test.each(Object.keys(invokeKinds).filter((name) => !Object.hasOwn(agentKinds, name)))(
    "Agent({ %s }) is refused with the advice that invoke() has this option",
    (name) => {
      expect(() => untyped({ [name]: 1 })).toThrow(
        refusal(
          `unknown option "${name}" of agent scout: pass it to invoke(): agent.invoke(input, { ${name} })`,
        ),
      );
    },
  );

  test.each(Object.keys(callSettingKinds))(
    "new Agent() refuses %s with the advice that it is a setting of a call",
    async (name) => {
      const fix = `use \`settings: { ${name} }\` of invoke(), or withSettings(model, { ${name} })`;
      expect(() => untyped({ [name]: 1 })).toThrow(
        refusal(`unknown option "${name}" of agent scout: ${fix}`),
      );
      await expect(scout(["Rain."]).agent.invoke("Weather?", { [name]: 1 })).rejects.toThrow(refusal(fix));
    },
  );

  test("the advice for an option in the wrong place recognises other spellings", () => {
    expect(() => untyped({ tool_choice: "auto" })).toThrow(refusal("use `settings: { toolChoice }`"));
    expect(() => untyped({ timeout_ms: 5 })).toThrow(refusal("agent.invoke(input, { timeoutMs })"));
  });

  test.each(["outputSchema", "output_schema", "output"])(
    "tool({ %s }) is refused with the advice that a tool needs no schema of its result",
    (name) => {
      const options = { name: "look", description: "Looks.", inputSchema: { type: "object" }, [name]: {} };
      expect(() => tool({ ...options, execute: () => "Rain." })).toThrow(
        refusal("omit it, because the result of a tool has no schema"),
      );
    },
  );
});

describe("options of an agent", () => {
  test.each([
    ["max_turns", { max_turns: 3 }, 'unknown option "max_turns" of agent scout: use "maxTurns"'],
    [
      "execution_budget",
      { execution_budget: {} },
      'unknown option "execution_budget" of agent scout: use "budget"',
    ],
    ["sub_agents", { sub_agents: [] }, 'unknown option "sub_agents" of agent scout: use "subAgents"'],
    ["guardrail", { guardrail: [] }, 'unknown option "guardrail" of agent scout: use "guardrails"'],
    ["toolhooks", { toolhooks: toolHooks() }, 'unknown option "toolhooks" of agent scout: use "toolHooks"'],
    [
      "inbox: Each",
      { inbox: "Each" },
      'invalid inbox "Each" of agent scout: expected one of each, together; use "each"',
    ],
    [
      "steering: ALL",
      { steering: "ALL" },
      'invalid steering "ALL" of agent scout: expected one of one, all; use "all"',
    ],
    [
      "middleware with a level and without process",
      { middleware: [{ name: "log", level: "chat" }] },
      "invalid middleware log: it has no method process",
    ],
    [
      "middleware that is no array",
      { middleware: { chat: () => {} } },
      "invalid middleware: expected an array, not an object",
    ],
    ["budget: maxToken", { budget: { maxToken: 1 } }, 'unknown option "maxToken" of budget: use "maxTokens"'],
    [
      "a tracker as budget",
      { budget: new ExecutionTracker({ maxTokens: 1 }) },
      "not an instance of ExecutionTracker",
    ],
    [
      "spawnBudget: max_agents",
      { spawnBudget: { max_agents: 1 } },
      'unknown option "max_agents" of spawnBudget: use "maxAgents"',
    ],
    [
      "a tracker as spawnBudget",
      { spawnBudget: new SpawnTracker({ maxAgents: 1 }) },
      "not an instance of SpawnTracker",
    ],
    ["hooks: toolHooks()", { hooks: toolHooks() }, "invalid hooks of agent scout: it has no method observe"],
    [
      "toolHooks: HookManager",
      { toolHooks: new HookManager() },
      "invalid toolHooks of agent scout: it has no method preTool",
    ],
    [
      "permissions: rules",
      { permissions: { deny: ["*"] } },
      "invalid permissions of agent scout: it has no method check; use permissions({ ... })",
    ],
    ["a stop hook without its method", { stopHooks: [{ name: "s" }] }, "it has no method shouldContinue"],
    [
      "an extension without setup",
      { extensions: [{ name: "e", tool_call: () => 1 }] },
      "invalid extension e of agent scout: it has no method setup; use { name, setup(api) { api.on(type, handler) } }",
    ],
    [
      "two extensions of one name",
      {
        extensions: [
          { name: "e", setup: () => {} },
          { name: "e", setup: () => {} },
        ],
      },
      "agent scout has two extensions named e; rename one of them",
    ],
    [
      "a guardrail in snake case",
      { guardrails: [{ name: "g", before_call: () => 1 }] },
      "invalid guardrail g of agent scout: unknown method before_call; use beforeCall",
    ],
    [
      "a guardrail without a stage",
      { guardrails: [{ name: "g", check: () => 1 }] },
      "invalid guardrail g of agent scout: it has none of the methods onTurnStart, onInput, beforeCall, afterCall, onOutput",
    ],
    [
      "a guardrail with onError: Allow",
      { guardrails: [{ name: "g", onError: "Allow", onInput: () => 1 }] },
      'invalid onError "Allow" of guardrail g of agent scout: expected one of block, allow; use "allow"',
    ],
    [
      "a tool without execute",
      { tools: [{ name: "look", description: "", inputSchema: {} }] },
      "invalid tool look: it has no method execute; use tool({ name, description, inputSchema, execute })",
    ],
    ["null as a tool", { tools: [null] }, "it has no method execute"],
    [
      "an architecture without declaredWorkers",
      { architecture: { name: "mine", run: () => [] } },
      "invalid architecture of agent scout: it has no method declaredWorkers; expected { name, run, declaredWorkers }",
    ],
    [
      "a sub-agent under another key",
      { subAgents: [{ agnet: 1 }] },
      "invalid entry of subAgents: an object is no agent",
    ],
    [
      "a sub-agent with ask_timeout",
      { subAgents: [{ agent: scout([]).agent, ask_timeout: 1 }] },
      'unknown option "ask_timeout" of sub-agent scout: use "askTimeoutMs"',
    ],
    [
      "a sub-agent with a priority in lower case",
      { subAgents: [{ agent: scout([]).agent, priority: "high" }] },
      'invalid priority "high": expected one of BACKGROUND, LOW, NORMAL, HIGH, CRITICAL; use Priority.HIGH',
    ],
    [
      "a sub-agent with a tracker as budget",
      { subAgents: [{ agent: scout([]).agent, budget: new ExecutionTracker() }] },
      "not an instance of ExecutionTracker",
    ],
  ])("new Agent() refuses %s and says what to use", (_what, options, message) => {
    expect(() => untyped(options)).toThrow(refusal(message));
  });

  test.each([
    ["a text", "scout", "invalid options of Agent: expected an object with some of name, key"],
    ["nothing", undefined, "not undefined"],
  ])("new Agent() refuses %s in place of its options", (_what, options, message) => {
    expect(() => new Agent(options as unknown as AgentOptions)).toThrow(refusal(message));
  });

  test.each([
    [
      "ReActAgent",
      () => new ReActAgent({ name: "a", model, architecture: "rewoo" } as never),
      '"architecture" of ReActAgent',
    ],
    [
      "OrchestratorAgent",
      () => new OrchestratorAgent({ name: "a", model, subagents: [] } as never),
      'use "subAgents"',
    ],
    [
      "InformationAgent",
      () => new InformationAgent({ name: "a", model, source: [], topic: "t/u" } as never),
      'use "sources"',
    ],
    [
      "UserProxyAgent",
      () => new UserProxyAgent({ name: "a", tools: [] } as never),
      '"tools" of UserProxyAgent',
    ],
    [
      "Sequential",
      () => new Sequential({ name: "a", steps: [scout([]).agent], instructions: "x" } as never),
      '"instructions" of Sequential',
    ],
    ["Parallel", () => new Parallel({ name: "a", branch: [scout([]).agent] } as never), 'use "branches"'],
  ])("new %s() refuses an option that it does not have", (_kind, create, message) => {
    expect(create).toThrow(refusal(message));
  });
});

describe("policy for calls that a flow does not make itself", () => {
  const step = new Agent({ name: "worker", model });
  const other = new Agent({ name: "other", model });
  const flows: readonly (readonly [create: (policy: object) => Agent, steps: string])[] = [
    [(policy) => new Sequential({ name: "f", steps: [step, other], ...policy }), "worker, other"],
    [(policy) => new Parallel({ name: "f", branches: [step], ...policy }), "worker"],
    [
      (policy) =>
        new Conditional({ name: "f", predicate: () => true, ifTrue: step, ifFalse: other, ...policy }),
      "worker, other",
    ],
    [
      (policy) =>
        new Graph({
          name: "f",
          nodes: { a: step },
          edges: [
            [START, "a"],
            ["a", END],
          ],
          ...policy,
        } as never),
      "worker",
    ],
    [(policy) => new Sequential({ name: "f", steps: [step] }).with(policy), "worker"],
  ];
  const chat = async (_ctx: unknown, next: () => Promise<void>): Promise<void> => next();
  const verdict = { decision: "block", reason: "No." } as const;
  const policies: readonly (readonly [string, object, string])[] = [
    ["permissions", { permissions: permissions({ deny: ["*"] }) }, "permissions"],
    ["toolHooks", { toolHooks: toolHooks() }, "toolHooks"],
    ["repairToolCall", { repairToolCall: () => undefined }, "repairToolCall"],
    ["prepareStep", { prepareStep: () => ({}) }, "prepareStep"],
    ["stopWhen", { stopWhen: () => true }, "stopWhen"],
    ["maxToolCallsPerTurn", { maxToolCallsPerTurn: 1 }, "maxToolCallsPerTurn"],
    ["maxParallelToolCalls", { maxParallelToolCalls: 1 }, "maxParallelToolCalls"],
    ["a layer around calls", { middleware: [{ name: "m", chat, function: chat }] }, "middleware m"],
    ["a guardrail of tool calls", { guardrails: [{ name: "g", beforeCall: () => verdict }] }, "guardrail g"],
    ["a guardrail of results", { guardrails: [{ name: "g", afterCall: () => verdict }] }, "guardrail g"],
  ];

  test.each(policies)("%s of a flow is refused and the error names the steps", (_what, policy, part) => {
    for (const [create, steps] of flows)
      expect(() => create(policy)).toThrow(
        expect.objectContaining({
          code: "invalid_argument",
          message: expect.stringMatching(
            new RegExp(`^invalid ${part} of agent f: .*set it on the steps: ${steps}$`, "u"),
          ),
        }),
      );
    expect(() => new UserProxyAgent({ name: "f", ...policy })).toThrow(
      refusal(`invalid ${part} of agent f: its architecture user_proxy calls no model and no tool itself`),
    );
  });

  test("a flow accepts middleware and guardrails that reach it", async () => {
    const seen: string[] = [];
    const note = (what: string) => async (_ctx: unknown, next: () => Promise<void>) => {
      seen.push(what);
      await next();
    };
    const flow = new Sequential({
      name: "f",
      steps: [new Agent({ name: "worker", model: scriptedModel(["Done."]) })],
      middleware: [{ name: "m", agent: note("agent"), chat: note("chat") }],
      guardrails: [{ name: "g", onInput: () => ({ decision: "allow" }), beforeCall: () => verdict }],
    });
    expect(await flow.invoke("Go.")).toMatchObject({ status: "completed", output: "Done." });
    expect(seen).toEqual(["agent"]);
  });

  test("a flow with a model of its own accepts middleware around model calls", () => {
    const judged = { model, middleware: [{ name: "m", chat }] };
    expect(new Sequential({ name: "f", steps: [step], ...judged }).name).toBe("f");
    const both = { model, middleware: [{ name: "m", function: chat }] };
    expect(() => new Sequential({ name: "f", steps: [step], ...both })).toThrow(refusal("middleware m"));
  });
});

describe("options of a run", () => {
  test.each([
    ["timeout", { timeout: 5 }, 'unknown option "timeout" of a run of agent scout: use "timeoutMs"'],
    [
      "session_id",
      { session_id: "s" },
      'unknown option "session_id" of a run of agent scout: use "sessionId"',
    ],
    [
      "a tracker as budget",
      { budget: new ExecutionTracker({ maxTokens: 9 }), timeoutMs: 5 },
      "not an instance of ExecutionTracker",
    ],
    ["a misspelt limit", { budget: { maxCost: 9 } }, 'unknown option "maxCost" of budget: use "maxCostUsd"'],
    ["a priority in lower case", { priority: "critical" }, "use Priority.CRITICAL"],
    [
      "whenBusy in another case",
      { whenBusy: "Steer" },
      'invalid whenBusy "Steer" of a run of agent scout: expected one of refuse, steer; use "steer"',
    ],
    [
      "a retention in capitals",
      { retention: "NONE" },
      'invalid history retention "NONE": expected one of none, run, permanent',
    ],
  ])("invoke(), submit() and stream() refuse %s before a call is paid", async (_what, options, message) => {
    const { agent, model: asked } = scout(["Done."]);
    await expect(agent.invoke("Go.", options as never)).rejects.toThrow(refusal(message));
    await expect(agent.submit("Go.", options as never)).rejects.toThrow(refusal(message));
    const streamed = async (): Promise<unknown> => agent.stream("Go.", options as never).result();
    await expect(streamed()).rejects.toThrow(refusal(message));
    expect(asked.calls).toHaveLength(0);
  });

  test("runUntil() and runtime.list() refuse an unknown option", async () => {
    const { agent } = scout(["Done."]);
    await expect(agent.runUntil("Go.", { until: () => true, maxIteration: 1 } as never)).rejects.toThrow(
      refusal('unknown option "maxIteration" of runUntil(): use "maxIterations"'),
    );
    const runtime = await openRuntime();
    await expect(runtime.list({ tenant: "acme" } as never)).rejects.toThrow(refusal('use "tenantId"'));
    await runtime.close();
  });

  test("ctx.spawn() refuses an unknown option and an invalid one, as a fault that the agent receives", async () => {
    const runtime = await openRuntime();
    const spawner = {
      id: scout([]).agent.id,
      run: async (ctx: Parameters<Agent["run"]>[0]) => {
        const said: string[] = [];
        for (const options of [{ on_full: "wait" }, { priority: "high" }, { onFull: "Wait" }])
          await ctx
            .spawn(ctx.agentId, null, options as never)
            .catch((error: Error) => said.push(error.message));
        return said;
      },
    };
    const { output } = await (await runtime.submit(spawner, null)).result();
    expect(output).toEqual([
      'unknown option "on_full" of ctx.spawn(): use "onFull"',
      expect.stringContaining("use Priority.HIGH"),
      'invalid onFull "Wait" of ctx.spawn(): expected one of refuse, wait; use "wait"',
    ]);
    await runtime.close();
  });
});

describe("options of runtimes, models, tools and permissions", () => {
  test.each([
    ["auditkey", { auditkey: "k" }, 'unknown option "auditkey" of openRuntime(): use "auditKey"'],
    [
      "max_concurrency",
      { maxConcurrency: 1 },
      'unknown option "maxConcurrency" of openRuntime(): use "concurrency"',
    ],
    ["versionPolicy: Pin", { versionPolicy: "Pin" }, 'use "pin"'],
    ["unknownPrice: reject", { unknownPrice: "reject" }, "expected one of refuse, ignore"],
    ["sameName: Replace", { sameName: "Replace" }, 'use "replace"'],
    [
      "retry.maxRetry",
      { retry: { maxRetry: 1 } },
      'unknown option "maxRetry" of retry of openRuntime(): use "maxRetries"',
    ],
    ["runRetry.retries", { runRetry: { retries: 1 } }, 'use "maxRetries"'],
    ["inbox.maxDelivery", { inbox: { maxDelivery: 1 } }, 'use "maxDeliveries"'],
  ])("openRuntime() refuses %s", async (_what, options, message) => {
    await expect(openRuntime(options as never)).rejects.toThrow(refusal(message));
  });

  test.each([
    [
      "withSettings()",
      () => withSettings(model, { maxTokens: 5 } as never),
      'unknown option "maxTokens" of withSettings(): use "maxOutputTokens"',
    ],
    ["withSettings()", () => withSettings(model, { temprature: 0 } as never), 'use "temperature"'],
    [
      "withSettings()",
      () => withSettings(model, { temperature: Number.NaN }),
      "invalid temperature NaN of withSettings(): expected a finite number from 0",
    ],
    ["withSettings()", () => withSettings(model, { topP: 2 }), "invalid topP 2 of withSettings()"],
    [
      "withSettings()",
      () => withSettings(model, { toolChoice: "any" as never }),
      'invalid toolChoice "any" of withSettings()',
    ],
    [
      "permissions()",
      () => permissions({ Deny: ["*"] } as never),
      'unknown option "Deny" of permissions(): use "deny"',
    ],
    [
      "permissions()",
      () => permissions({ users: { ann: { allowed: [] } } } as never),
      'unknown option "allowed" of permissions of ann: use "allow"',
    ],
    [
      "permissions()",
      () => permissions({ deny: [{ tool: "x", if: () => true }] } as never),
      'unknown option "if" of a rule of deny',
    ],
    [
      "tool()",
      () =>
        tool({
          name: "t",
          description: "",
          inputSchema: {},
          execute: () => "",
          needs_approval: true,
        } as never),
      'use "needsApproval"',
    ],
    ["tool()", () => tool({ name: "t", description: "", inputSchema: {} } as never), "tool t has no execute"],
    [
      "tool()",
      () => tool({ description: "", inputSchema: {}, execute: () => "" } as never),
      "invalid tool name undefined",
    ],
  ])("%s refuses options that it does not know (%#)", (_what, create, message) => {
    expect(create).toThrow(refusal(message));
  });

  test("priorities of tasks are accepted as weights and as names in capitals", async () => {
    const { agent } = scout(["Done.", "Done."]);
    for (const priority of [Priority.HIGH, "HIGH"])
      expect(await agent.invoke("Go.", { priority } as never)).toMatchObject({ status: "completed" });
  });
});
