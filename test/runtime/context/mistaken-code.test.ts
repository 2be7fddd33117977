import { describe, expect, test } from "vitest";
import { Agent, type Architecture } from "../../../src/entries/index.ts";
import { userMessage, type HostedAgent, type RunContext } from "../../../src/kernel/index.ts";
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
];

describe("mistaken code of an agent fails the run with an error that names the cause and the fix", () => {
  test.each(mistakes)("%s", async (_mistake, code, message) => {
    const { runtime } = await setUp();
    const clerk = agent("clerk", code as unknown as HostedAgent["run"], { subAgents: [child] });
    const { status, error } = await (await runtime.submit(clerk, null)).result();
    expect({ status, code: error?.code }).toEqual({ status: "failed", code: "invalid_argument" });
    expect(error?.message).toContain(message);
    await runtime.close();
  });
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

test.each(architectures)("an architecture that %s fails with its fix", async (_what, run, message) => {
  const architecture: Architecture = { name: "own", declaredWorkers: () => ({}), run };
  const clerk = new Agent({ name: "clerk", model: scriptedModel(["Hi."]), architecture });
  const { status, error } = await clerk.invoke("Hello?");
  expect({ status, code: error?.code }).toEqual({ status: "failed", code: "invalid_argument" });
  expect(error?.message).toContain(message);
});
