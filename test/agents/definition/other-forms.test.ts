import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  Agent,
  Conditional,
  END,
  openRuntime,
  OrchestratorAgent,
  Parallel,
  Sequential,
  START,
  tool,
  Graph,
} from "../../../src/entries/index.ts";
import { blackboard, debate, router, supervisor, swarm } from "../../../src/agents/architectures/index.ts";
import { contentFilter, maxTokens, promptInjection, regex } from "../../../src/assembly/guardrails.ts";
import { foreignNames } from "../../../src/kernel/base/foreign-names.ts";
import { scriptedModel } from "../../../src/testing/index.ts";

const model = scriptedModel([]);
const member = new Agent({ name: "member", model });
const other = new Agent({ name: "other", model });
const name = "eye";

/** Creates parts as a caller without types does. */
function agentOf(options: object): Agent {
  return new Agent({ name, model, ...options });
}
function graphOf(options: object): unknown {
  return new Graph({ name: "w", nodes: { a: member }, edges: [[START, "a"]], ...options } as never);
}
function toolOf(options: object): unknown {
  const whole = { name: "weather", description: "", inputSchema: z.object({}), execute: () => "" };
  return tool({ ...whole, ...options });
}
function invoked(input: unknown, options: object = {}): Promise<unknown> {
  return agentOf({}).invoke(input as never, options);
}

type Mistake = readonly [mistake: string, attempt: () => unknown, message: string];

const foreign: readonly Mistake[] = [
  ["`system` of an agent", () => agentOf({ system: "Be brief." }), 'of agent eye: use "instructions"'],
  ["`max_steps` of an agent", () => agentOf({ max_steps: 5 }), 'of agent eye: use "maxTurns"'],
  ["`prompt` of an agent", () => agentOf({ prompt: "Hello" }), "pass it to the call: agent.invoke(input)"],
  ["`temperature` of an agent", () => agentOf({ temperature: 0 }), "withSettings(model, { temperature })"],
  ["`handoffs` of an agent", () => agentOf({ handoffs: [] }), 'use "subAgents"'],
  ["`store` of an agent", () => agentOf({ store: "x" }), "and the option `runtime` of invoke()"],
  ["`sessionId` of an agent", () => agentOf({ sessionId: "x" }), "agent.invoke(input, { sessionId })"],
  ["`thread_id` of invoke()", () => invoked("Hello", { thread_id: "x" }), 'use "sessionId"'],
  ["`abortSignal` of invoke()", () => invoked("Hello", { abortSignal: 1 }), 'use "signal"'],
  ["`schema` of invoke()", () => invoked("Hello", { schema: {} }), 'use "output"'],
  [
    "`maxTurns` of invoke()",
    () => invoked("Hello", { maxTurns: 5 }),
    "agent.with({ maxTurns }).invoke(input)",
  ],
  ["`parameters` of a tool", () => toolOf({ parameters: {} }), 'of tool weather: use "inputSchema"'],
  ["`requireApproval` of a tool", () => toolOf({ requireApproval: true }), 'use "needsApproval"'],
  ["`agents` of Sequential", () => new Sequential({ name, agents: [member] } as never), 'use "steps"'],
  ["`agents` of Parallel", () => new Parallel({ name, agents: [member] } as never), 'use "branches"'],
  ["`agents` of supervisor()", () => supervisor({ agents: { member } } as never), 'use "workers"'],
  ["`workers` of router()", () => router({ workers: { member } } as never), 'use "routes"'],
  ["`agents` of debate()", () => debate({ agents: { member } } as never), 'use "debaters"'],
  ["`agents` of swarm()", () => swarm({ agents: { member, other } } as never), 'use "peers"'],
  ["`workers` of blackboard()", () => blackboard({ workers: { member } } as never), 'use "agents"'],
];

test.each([...foreignNames.keys()])("new Agent() says what replaces the foreign option %s", (option) => {
  expect(() => agentOf({ [option]: 1 })).toThrow(/^unknown option "\w+" of agent eye: (?:use|pass) /u);
});

const agents: readonly Mistake[] = [
  [
    "a guardrail in place of a list",
    () => agentOf({ guardrails: promptInjection() }),
    "invalid guardrails of agent eye: expected an array, not an object; use guardrails: [guardrail]",
  ],
  [
    "a guardrail whose function was not called",
    () => agentOf({ guardrails: [promptInjection] }),
    "invalid guardrail promptInjection of agent eye: expected an object, not a function; if promptInjection creates it, use promptInjection()",
  ],
  [
    "a function as a guardrail",
    () => agentOf({ guardrails: [() => ({ decision: "allow" })] }),
    "invalid guardrail without a name of agent eye: expected an object, not a function",
  ],
  [
    "null as a guardrail",
    () => agentOf({ guardrails: [null] }),
    "of agent eye: expected an object, not null",
  ],
  [
    "a function as an extension",
    () => agentOf({ extensions: [() => undefined] }),
    "of agent eye: expected an object, not a function",
  ],
  [
    "an extension in place of a list",
    () => agentOf({ extensions: { name: "e" } }),
    "invalid extensions of agent eye: expected an array, not an object; use extensions: [extension]",
  ],
  [
    "patterns without names",
    () => regex({ patterns: [/secret/u] } as never),
    "invalid patterns of regex(): expected an object with the patterns by name, not an array; use patterns: {",
  ],
  [
    "topics without names",
    () => contentFilter({ topics: ["casino"] } as never),
    "invalid topics of contentFilter(): expected an object with the words by name, not an array",
  ],
  [
    "one limit for all stages",
    () => maxTokens({ limits: 100 } as never),
    "invalid limits 100 of maxTokens(): expected an object with the limits by name; use limits: { input: 8_000 }",
  ],
  [
    "a stop hook in place of a list",
    () => agentOf({ stopHooks: { name: "s" } }),
    "invalid stopHooks of agent eye: expected an array, not an object; use stopHooks: [{ name, shouldContinue }]",
  ],
  [
    "sub-agents by name",
    () => agentOf({ subAgents: { member } }),
    "invalid subAgents of agent eye: expected an array, not an object; use subAgents: [agent]",
  ],
  [
    "an OrchestratorAgent without sub-agents",
    () => new OrchestratorAgent({ name, model } as never),
    "invalid subAgents of an OrchestratorAgent: expected an array",
  ],
  [
    "a promise of tools",
    () => agentOf({ tools: Promise.resolve([]) }),
    "invalid tools of agent eye: expected a list of tools, not a promise; use tools: await",
  ],
  [
    "MCP servers in place of their tools",
    () => agentOf({ tools: { tools: async () => [] } }),
    "use tools: await servers.tools()",
  ],
  [
    "an architecture that was not called",
    () => agentOf({ architecture: supervisor }),
    "invalid architecture of agent eye: expected an object, not a function; if supervisor creates it, use supervisor()",
  ],
  ["run() of an agent", () => member.run("Hello" as never, undefined as never), "use invoke(input)"],
];

const calls: readonly Mistake[] = [
  [
    "a promise of a runtime",
    () => invoked("Hello", { runtime: openRuntime() }),
    "invalid runtime of a run of agent eye: it has no method submit; use runtime: await openRuntime(",
  ],
  [
    "the address of a store as runtime",
    () => invoked("Hello", { runtime: "sqlite:./a.db" }),
    "invalid runtime of a run of agent eye: it has no method submit",
  ],
  [
    "the address of a store as runtime of resume()",
    () => member.resume("run_1", { runtime: "sqlite:./a.db" } as never),
    "invalid runtime of resume(): it has no method submit",
  ],
  [
    "resume() of a stored run without its runtime",
    () => member.resume("run_1"),
    "not found in this runtime's store, which is in memory: pass the runtime",
  ],
  [
    "an image part of the AI SDK in a message",
    () => invoked([{ role: "user", content: [{ type: "image", image: "AAAA" }] }]),
    'expected a text; use { type: "image", mediaType, source: { kind: "base64", data }',
  ],
  [
    "a function of tools that returns a promise",
    () => agentOf({ tools: async () => [] }).invoke("Hello"),
    "invalid tools: the function returned a promise; expected a list of tools; await the list",
  ],
];

/** Opens a runtime for one call and closes it afterwards. */
async function onRuntime(call: (runtime: Awaited<ReturnType<typeof openRuntime>>) => unknown): Promise<void> {
  await using runtime = await openRuntime();
  await call(runtime);
}

/** Answers the question of a run with a value that is no decision. */
function decided(decision: unknown): Promise<void> {
  return onRuntime(async (runtime) => {
    const pay = tool({ ...payment, needsApproval: true });
    const payer = new Agent({ name: "payer", model: scriptedModel([asksToPay]), tools: [pay] });
    const run = await runtime.submit(payer, "Pay.");
    const [question] = await run.untilPersonIsNeeded();
    await run.approve(question?.approvalId ?? "", decision as never);
  });
}

const payment = { name: "pay", description: "Pays.", inputSchema: z.object({}), execute: () => "paid" };
const asksToPay = { toolCalls: [{ name: "pay", input: {} }] };

const runtimes: readonly Mistake[] = [
  [
    "a store address with two slashes",
    () => openRuntime({ store: "sqlite://./a.db" }),
    'invalid store "sqlite://./a.db": an address has no // after sqlite:; use "sqlite:./a.db"',
  ],
  [
    "an option in the address of a SQLite store",
    () => openRuntime({ store: "sqlite:./a.db?mode=ro" }),
    'invalid store "sqlite:./a.db?mode=ro": an address of SQLite takes no options after "?"; use "sqlite:./a.db"',
  ],
  [
    "the name of an agent for submit()",
    () => onRuntime((runtime) => runtime.submit("member" as never, "Hello")),
    'invalid agent "member": expected an agent; use new Agent({ ... })',
  ],
  [
    "nothing for register()",
    () => onRuntime((runtime) => runtime.register(undefined as never)),
    "invalid agent undefined: expected an agent",
  ],
  [
    "a decision in another tense",
    () => decided({ decision: "approve" }),
    'is { decision: "approve" }: it must be { decision: "approved" | "denied" | "skipped" }',
  ],
  [
    "a decision as a flag",
    () => decided({ approved: true }),
    'is an object without `decision`: it must be { decision: "approved"',
  ],
];

const tools: readonly Mistake[] = [
  [
    "the properties of a zod schema",
    () => toolOf({ inputSchema: { town: z.string() } }),
    "the input schema of tool weather is an object of schemas; wrap it in an object schema: z.object({ town: ... })",
  ],
  [
    "the properties of a JSON Schema",
    () => toolOf({ inputSchema: { town: { type: "string" } } }),
    'the input schema of tool weather has no keyword of JSON Schema; use { type: "object", properties: { town: ... }',
  ],
  [
    "a schema of a library without Standard Schema",
    () => toolOf({ inputSchema: { _def: {}, parse: () => ({}) } }),
    "the input schema of tool weather is neither a Standard Schema nor a JSON Schema; use zod 4",
  ],
  [
    "a schema of texts",
    () => toolOf({ inputSchema: z.string() }),
    "invalid inputSchema of tool weather: arguments are an object, not of type string; use z.object({ value: ... })",
  ],
  [
    "no description",
    () => toolOf({ description: undefined }),
    "invalid description undefined of tool weather",
  ],
];

const flows: readonly Mistake[] = [
  [
    "branches by name",
    () => new Parallel({ name, branches: { member } } as never),
    "invalid branches of a parallel flow: expected an array, not an object; use branches: [agent]",
  ],
  [
    "a function as a step",
    () => new Sequential({ name, steps: [member, () => "x"] } as never),
    "invalid entry 2 of steps of a sequential flow: a function is no agent",
  ],
  [
    "a Conditional with one branch",
    () => new Conditional({ name, predicate: () => true, ifTrue: member } as never),
    "invalid ifFalse of a conditional flow: undefined is no agent",
  ],
  [
    "a graph without nodes",
    () => graphOf({ nodes: undefined }),
    "invalid nodes of the graph: expected an object with the agents and functions by name, not undefined",
  ],
  ["a graph without edges", () => graphOf({ edges: undefined }), "invalid edges of the graph"],
  [
    "edges that are objects",
    () => graphOf({ edges: [{ from: START, to: "a" }] }),
    'has an invalid edge 1: expected a pair of names, not an object; use edges: [[START, "writer"]',
  ],
  [
    "a function as a router",
    () => graphOf({ routers: { a: () => END } }),
    "has an invalid router at a: expected { to: [node], choose: (value, text) => node }",
  ],
  ["`__start__`", () => graphOf({ edges: [["__start__", "a"]] }), 'use START, imported from "reeve"'],
  [
    "`__end__`",
    () =>
      graphOf({
        edges: [
          [START, "a"],
          ["a", "__end__"],
        ],
      }),
    'use END, imported from "reeve"',
  ],
  ["a node without a way to END", () => graphOf({}), 'add an edge such as ["a", END]'],
  ["a node without a way from START", () => graphOf({ edges: [] }), 'add an edge such as [START, "a"]'],
];

const teams: readonly Mistake[] = [
  [
    "a supervisor without workers",
    () => supervisor({} as never),
    "invalid workers of supervisor: expected an object with the agents by name, not undefined",
  ],
];

describe.each([
  ["a name", foreign],
  ["an agent", agents],
  ["a call", calls],
  ["a runtime", runtimes],
  ["a tool", tools],
  ["a flow", flows],
  ["a team", teams],
])(
  "%s in the form of another library, or half written, is refused, and the message names what to use",
  (_what, mistakes) => {
    test.each(mistakes)(
      "a form of another library is refused with what to use: %s",
      async (_mistake, attempt, message) => {
        await expect((async () => attempt())()).rejects.toMatchObject({
          code: expect.stringMatching(/^(?:invalid_argument|not_found)$/u) as unknown,
          message: expect.stringContaining(message) as unknown,
        });
      },
    );
  },
);

test("tool() accepts JSON Schemas without properties, with references and with alternatives", () => {
  for (const inputSchema of [
    {},
    { $ref: "#/$defs/a", $defs: { a: { type: "object" } } },
    { anyOf: [{ type: "object" }] },
  ])
    expect(toolOf({ inputSchema })).toMatchObject({ inputSchema });
});
