import { describe, expect, test } from "vitest";
import { Agent, type Architecture } from "../../../src/entries/index.ts";
import { workflow } from "../../../src/entries/workflow.ts";
import { Transcript, userMessage, type HostedAgent, type RunContext } from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { agent, agentId, setUp } from "../runtime-setup.ts";

/** Code as it is written without types. */
type Untyped = (ctx: Record<keyof RunContext, (...args: unknown[]) => unknown>) => unknown;

const child = agent("child", async () => "done");

const mistakes: readonly (readonly [mistake: string, code: Untyped, message: string])[] = [
  [
    "a synchronous run() with a value",
    () => "done",
    'run() of agent clerk returned "done" and no promise; declare it as async run(ctx), and await what the methods of ctx return',
  ],
  ["a synchronous run() without a value", () => undefined, "run() of agent clerk returned undefined and no"],
  [
    "ctx.step() without a body",
    async (ctx) => ctx.step("read"),
    'invalid body of ctx.step("read"): expected a function, not undefined; use ctx.step(name, async () => value)',
  ],
  [
    "ctx.step() without a name",
    async (ctx) => ctx.step(async () => 1),
    "invalid name a function of ctx.step(): expected a text that is not empty; use ctx.step(name, async () =>",
  ],
  [
    "ctx.ask() without a target",
    async (ctx) => ctx.ask(undefined, "Hello?"),
    "invalid target undefined of ctx.ask(): expected the id of an agent, or the handle of a child; use the handle of an outcome of ctx.spawn()",
  ],
  [
    "ctx.ask() of the outcome of a spawn",
    async (ctx) => ctx.ask(await ctx.spawn(agentId("child"), null), "Hello?"),
    "invalid target an object of ctx.ask(): expected the id of an agent, or the handle of a child; pass outcome.handle",
  ],
  [
    "ctx.join() of the outcome of a spawn",
    async (ctx) => ctx.join(await ctx.spawn(agentId("child"), null)),
    "invalid target an object of ctx.join(): expected the handle of a child; pass outcome.handle, not the outcome",
  ],
  [
    "ctx.joinAll() of a refused spawn",
    async (ctx) => ctx.joinAll([{ kind: "refused" }]),
    "invalid target an object of ctx.joinAll(): expected the handle of a child; the spawn was refused",
  ],
  [
    "ctx.cancel() without a handle",
    async (ctx) => ctx.cancel(undefined, "late"),
    "invalid target undefined of ctx.cancel(): expected the handle of a child",
  ],
  [
    "ctx.tools() without calls",
    async (ctx) => ctx.tools(undefined),
    'invalid calls undefined of ctx.tools(): expected an array; use ctx.tools([{ callId: "1", toolName: "read", input: { ... } }])',
  ],
  [
    "ctx.tools() of a call in the form of another library",
    async (ctx) => ctx.tools([{ id: "1", name: "read", arguments: "{}" }]),
    "invalid call an object of ctx.tools(): expected the id of the call, the name of the tool and its input; use {",
  ],
  [
    "ctx.tool() of a name",
    async (ctx) => ctx.tool("read", {}),
    'invalid call "read" of ctx.tools(): expected',
  ],
  [
    "ctx.race() without branches",
    async (ctx) => ctx.race(undefined),
    "invalid branches undefined of ctx.race(): expected an object with a function for each name; use ctx.race({ first: async (branch) => value })",
  ],
  [
    "ctx.race() of a list",
    async (ctx) => ctx.race([async () => 1]),
    "invalid branches an array of ctx.race(): expected an object",
  ],
  [
    "ctx.any() of work that has started",
    async (ctx) => ctx.any({ first: Promise.resolve(1) }),
    "invalid branch first an object of ctx.any(): expected a function; use ctx.any({",
  ],
  [
    "ctx.parallel() without branches",
    async (ctx) => ctx.parallel(undefined),
    "invalid branches undefined of ctx.parallel(): expected an object",
  ],
  [
    "ctx.parallel() of a value",
    async (ctx) => ctx.parallel({ first: 1 }),
    "invalid branch first 1 of ctx.parallel(): expected a function",
  ],
  [
    "ctx.uncancellable() without a branch",
    async (ctx) => ctx.uncancellable(),
    "invalid branch undefined of ctx.uncancellable(): expected a function",
  ],
  [
    "ctx.timeout() without a branch",
    async (ctx) => ctx.timeout("1 minute"),
    "invalid branch undefined of ctx.timeout(): expected a function",
  ],
  [
    "ctx.spawn() without a target",
    async (ctx) => ctx.spawn(undefined),
    'invalid target undefined of ctx.spawn(): expected the id of an agent; use formatAgentId({ name: "scout" }), or agent.id',
  ],
  [
    "ctx.spawn() of an agent in place of its id",
    async (ctx) => ctx.spawn(child, "Go."),
    "invalid target an object of ctx.spawn(): expected the id of an agent; use its id",
  ],
  [
    "ctx.start() without a target",
    async (ctx) => ctx.start(undefined),
    "invalid target undefined of ctx.start(): expected the id of an agent",
  ],
  [
    "ctx.send() of an agent in place of its id",
    async (ctx) => ctx.send(child, "Hello."),
    "invalid target an object of ctx.send(): expected the id of an agent; use its id",
  ],
  [
    "ctx.reply() without a message",
    async (ctx) => ctx.reply(undefined, "Hello."),
    "invalid message undefined of ctx.reply(): expected a message of the inbox; use one of the list",
  ],
  [
    "ctx.joinAll() without handles",
    async (ctx) => ctx.joinAll(undefined),
    "invalid handles undefined of ctx.joinAll(): expected an array; use ctx.joinAll([handle])",
  ],
  [
    "ctx.approval() without a question",
    async (ctx) => ctx.approval(undefined),
    "invalid options of ctx.approval(): expected an object with some of toolName",
  ],
  [
    "ctx.resource() without a function that closes it",
    async (ctx) => ctx.resource(async () => 1),
    "invalid close undefined of ctx.resource(): expected a function; use ctx.resource(async () => connect(), async (connection) => connection.close())",
  ],
  [
    "ctx.turn() without a plan",
    async (ctx) => ctx.turn(undefined),
    "invalid plan undefined of ctx.turn(): expected a function",
  ],
  [
    "ctx.turn() with a plan that returns nothing",
    async (ctx) => ctx.turn(() => undefined),
    "invalid plan undefined of ctx.turn(): expected a text as instructions; use { input, instructions, tools }",
  ],
  [
    "ctx.compact() without a request",
    async (ctx) => ctx.compact(undefined),
    "invalid compact undefined of ctx.compact(): expected a function",
  ],
];

const inWorkflows: typeof mistakes = [
  [
    "ctx.race() without branches",
    async (ctx) => ctx.race(undefined),
    "invalid branches undefined of ctx.race(): expected an object with a function for each name; use ctx.race({ first: async (branch) => branch.step(...) })",
  ],
  [
    "ctx.parallel() with a list of branches",
    async (ctx) => ctx.parallel([async () => 1]),
    "invalid branches an array of ctx.parallel(): expected an object with a function for each name",
  ],
  [
    "ctx.step() with a number as options",
    async (ctx) => ctx.step("charge", async () => 1, 5),
    "invalid options of ctx.step(): expected an object with some of input, retry",
  ],
  [
    "ctx.publish() without a query",
    async (ctx) => ctx.publish(undefined, 1),
    'invalid query undefined of ctx.publish(): expected a name or a query; use query("progress", schema)',
  ],
  [
    "ctx.approval() without a question",
    async (ctx) => ctx.approval(undefined),
    "invalid options of ctx.approval(): expected an object with some of toolName",
  ],
];

describe("mistaken code of an agent fails the run with an error that names the cause and the fix", () => {
  test.each(mistakes)(
    "mistaken code of an agent fails the run, and the error names the cause and the fix: %s",
    async (_mistake, code, message) => {
      const { runtime } = await setUp();
      const clerk = agent("clerk", code as unknown as HostedAgent["run"], { subAgents: [child] });
      const { status, error } = await (await runtime.submit(clerk, null)).result();
      expect({ status, code: error?.code }).toEqual({ status: "failed", code: "invalid_argument" });
      expect(error?.message).toContain(message);
      await runtime.close();
    },
  );
});

describe("mistaken code of a workflow fails the run with an error that names the cause and the fix", () => {
  test.each(inWorkflows)(
    "mistaken code of a workflow fails the run, and the error names the cause and the fix: %s",
    async (_mistake, code, message) => {
      const { runtime } = await setUp();
      const order = workflow("order", async (ctx) => void (await code(ctx as never)));
      const { status, error } = await (await runtime.submit(order, null)).result();
      expect({ status, code: error?.code }).toEqual({ status: "failed", code: "invalid_argument" });
      expect(error?.message).toContain(message);
      await runtime.close();
    },
  );
});

test.each<[string, (transcript: Record<"push" | "filter" | "forEach", () => unknown>) => unknown, string]>([
  ["push", (transcript) => transcript.push(), "session.messages = session.messages.append(message)"],
  ["filter", (transcript) => transcript.filter(), "transcript.slice().filter(...)"],
  ["forEach", (transcript) => transcript.forEach(), "for (const message of transcript)"],
])("%s() of a transcript is refused with an error that names the fix", (method, call, use) => {
  const message = `a Transcript, such as session.messages, has no method ${method}(), because it never changes; use ${use}`;
  expect(() => call(Transcript.empty as never)).toThrow(
    expect.objectContaining({ code: "unsupported", message }),
  );
});

const architectures: readonly (readonly [string, Architecture["run"], string])[] = [
  [
    "assigns a list to session.messages",
    async function* run(session, _deps, prompt) {
      yield* [];
      session.messages = [userMessage(prompt)] as never;
    },
    "invalid session.messages: expected a Transcript, not an array; use session.messages.append(message), or Transcript.of(messages) for a new list",
  ],
  [
    "declares run() as an async function",
    (async () => undefined) as never,
    "run() of architecture own returned a promise and no events; declare it as async *run(session, deps, prompt)",
  ],
  [
    "declares run() as a function",
    (() => undefined) as never,
    "run() of architecture own returned undefined and no events; declare it as async *run(",
  ],
];

test.each(architectures)(
  "an architecture that %s fails with an error that names the fix",
  async (_what, run, message) => {
    const architecture: Architecture = { name: "own", declaredWorkers: () => ({}), run };
    const clerk = new Agent({ name: "clerk", model: scriptedModel(["Hi."]), architecture });
    const { status, error } = await clerk.invoke("Hello?");
    expect({ status, code: error?.code }).toEqual({ status: "failed", code: "invalid_argument" });
    expect(error?.message).toContain(message);
  },
);
