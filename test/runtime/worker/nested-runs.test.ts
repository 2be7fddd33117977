import { expect, it } from "vitest";
import type {
  HostedAgent,
  JsonValue,
  RunContext,
  Runtime,
  Tool,
  ToolContext,
} from "../../../src/kernel/index.ts";
import { agent, agentId, setUp, settle, simpleTool, text, until, type Code } from "../runtime-setup.ts";

const inner = agent("inner", async (ctx) => ctx.step("answer", async () => "answer"));

/** Starts another run from the code of a task, and waits for its output. */
async function ask(runtime: Runtime): Promise<JsonValue> {
  const run = await runtime.submit(inner, null);
  return (await run.result()).output;
}

/** Starts another run from the code of a task, and reads its events to the end. */
async function follow(runtime: Runtime): Promise<number> {
  const run = await runtime.submit(inner, null);
  let count = 0;
  for await (const _ of run.events()) count++;
  return count;
}

/** An agent whose code calls a tool with this body. */
function toolCaller(body: (tool: ToolContext) => Promise<unknown>): HostedAgent {
  const execute: Tool["execute"] = async (_input, tool) => text(JSON.stringify(await body(tool)));
  return agent("outer", callTool, { tools: [simpleTool({ name: "nested", execute })] });
}

async function callTool(ctx: RunContext): Promise<JsonValue> {
  const { isError } = await ctx.tool({ callId: "1", toolName: "nested", input: {} });
  return isError ? "failed" : "done";
}

type OuterAgent = (runtime: Runtime) => HostedAgent;

const places: readonly (readonly [string, OuterAgent])[] = [
  ["the agent's code", (runtime) => agent("outer", () => ask(runtime).then(() => "done"))],
  ["a tool", (runtime) => toolCaller(() => ask(runtime))],
  ["a tool that reads events", (runtime) => toolCaller(() => follow(runtime))],
  ["a step of a tool", (runtime) => toolCaller(({ ctx }) => ctx.step("nested", () => ask(runtime)))],
  ["a tool that awaits two runs", (runtime) => toolCaller(() => Promise.all([ask(runtime), ask(runtime)]))],
  [
    "one branch, while another branch runs steps",
    (runtime) =>
      agent("outer", async (ctx) => {
        const { steps } = await ctx.parallel({
          nested: () => ask(runtime),
          steps: async (branch) => {
            await branch.step("one", () => settle().then(() => 1));
            await settle();
            return branch.step("two", async () => "done");
          },
        });
        return steps;
      }),
  ],
];

for (const [where, makeOuter] of places)
  it(`a task that awaits another run in ${where} gives its slot to that run`, async () => {
    const { runtime, errors } = await setUp({ concurrency: 1 });
    const outer = makeOuter(runtime);
    const runs = await Promise.all([runtime.submit(outer, null), runtime.submit(outer, null)]);
    const results = await Promise.all(runs.map((run) => run.result()));
    expect(results.map(({ output }) => output)).toEqual(["done", "done"]);
    await runtime.close();
    expect(errors).toEqual([]);
  });

it("a child that awaits another run gives its own slot to that run, not the slot of its parent", async () => {
  const { runtime } = await setUp({ concurrency: 1 });
  runtime.register(agent("child", async () => ask(runtime)));
  const outer: Code = async (ctx) => {
    const spawned = await ctx.spawn(agentId("child"), null);
    return spawned.kind === "spawned" ? (await ctx.join(spawned.handle)).output : "refused";
  };
  const run = await runtime.submit(agent("outer", outer), null);
  expect((await run.result()).output).toBe("answer");
  await runtime.close();
});

it("a task that awaited another run takes a slot again before its code continues", async () => {
  const { runtime } = await setUp({ concurrency: 1 });
  const order: string[] = [];
  const released = Promise.withResolvers<void>();
  const outer = toolCaller(async () => {
    await ask(runtime);
    order.push("outer continues");
  });
  const busy = agent("busy", async (ctx) => {
    await ctx.step("holds the slot", () => released.promise.then(() => null));
    order.push("slot is free");
    return null;
  });
  const run = await runtime.submit(outer, null);
  const other = await runtime.submit(busy, null);
  await settle();
  released.resolve();
  await Promise.all([run.result(), other.result()]);
  expect(order).toEqual(["slot is free", "outer continues"]);
  await runtime.close();
});

it("1,100 runs that each await another run all complete, because a run that waits takes no slot", async () => {
  const { runtime } = await setUp();
  const outer = toolCaller(() => ask(runtime));
  const runs = await Promise.all(Array.from({ length: 1_100 }, () => runtime.submit(outer, null)));
  const results = await Promise.all(runs.map((run) => run.result()));
  expect(results.every(({ output }) => output === "done")).toBe(true);
  await runtime.close();
});

it("a suspended run takes no slot again when its observer awaits another run", async () => {
  const { runtime } = await setUp({ concurrency: 1 });
  let answers = 0;
  const observer = {
    observe: ({ type }: { readonly type: string }) => {
      if (type === "task_suspend") void ask(runtime).then(() => answers++);
    },
    settled: async () => {},
  };
  const waiting = agent("waiting", async (ctx) => (await ctx.waitForSignal("go")) ?? null, {
    callPath: { observer },
  });
  const run = await runtime.submit(waiting, null);
  await until(() => answers === 1);
  await settle();
  expect(await ask(runtime)).toBe("answer");
  await run.signal("go", 1);
  expect((await run.result()).output).toBe(1);
  await runtime.close();
});

it("cancel() ends the wait for another run at once, so that a finally block is executed in agent code and in a tool", async () => {
  const { runtime } = await setUp({ stopGraceMs: 1_000 });
  const waiting = agent("waiting", async (ctx) => (await ctx.waitForSignal("go")) ?? null);
  for (const kind of ["code", "tool"]) {
    const log: string[] = [];
    const wait = async (): Promise<JsonValue> => {
      const run = await runtime.submit(waiting, null);
      try {
        return (await run.result()).output;
      } finally {
        log.push("finally");
      }
    };
    const outer = kind === "code" ? agent("code", wait) : toolCaller(wait);
    const run = await runtime.submit(outer, null);
    await settle();
    await run.cancel("enough");
    // The clock does not move: the grace period is not needed.
    expect((await run.result()).status).toBe("cancelled");
    await settle();
    expect(log).toEqual(["finally"]);
  }
});

it("close() of a runtime does not wait for a call that only waits for another run", async () => {
  const { runtime } = await setUp({ closeGraceMs: 3_000 });
  const waiting = agent("waiting", async (ctx) => (await ctx.waitForSignal("go")) ?? null);
  const outer = toolCaller(async () => (await (await runtime.submit(waiting, null)).result()).output);
  await runtime.submit(outer, null);
  await settle();
  // The clock does not move.
  await expect(runtime.close()).resolves.toBeUndefined();
});
