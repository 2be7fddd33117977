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

/** What another run comes to, waited for by code that stands in none of ours but its own task. */
async function ask(runtime: Runtime): Promise<JsonValue> {
  const run = await runtime.submit(inner, null);
  return (await run.result()).output;
}

async function follow(runtime: Runtime): Promise<number> {
  const run = await runtime.submit(inner, null);
  let seen = 0;
  for await (const _ of run.events()) seen++;
  return seen;
}

/** One whose code calls a tool that does this. */
function caller(body: (tool: ToolContext) => Promise<unknown>): HostedAgent {
  const execute: Tool["execute"] = async (_input, tool) => text(JSON.stringify(await body(tool)));
  return agent("outer", calls, { tools: [simpleTool({ name: "asks", execute })] });
}

async function calls(ctx: RunContext): Promise<JsonValue> {
  const { isError } = await ctx.tool({ callId: "1", toolName: "asks", input: {} });
  return isError ? "failed" : "done";
}

type Waiting = (runtime: Runtime) => HostedAgent;

const places: readonly (readonly [string, Waiting])[] = [
  ["its own code", (runtime) => agent("outer", () => ask(runtime).then(() => "done"))],
  ["a tool", (runtime) => caller(() => ask(runtime))],
  ["a tool that reads its events", (runtime) => caller(() => follow(runtime))],
  ["a step of a tool", (runtime) => caller(({ ctx }) => ctx.step("asks", () => ask(runtime)))],
  ["a tool that asks two", (runtime) => caller(() => Promise.all([ask(runtime), ask(runtime)]))],
  [
    "one branch, while another takes steps",
    (runtime) =>
      agent("outer", async (ctx) => {
        const { works } = await ctx.parallel({
          asks: () => ask(runtime),
          works: async (branch) => {
            await branch.step("one", () => settle().then(() => 1));
            await settle();
            return branch.step("two", async () => "done");
          },
        });
        return works;
      }),
  ],
];

for (const [where, outerOf] of places)
  it(`gives the slot to the run that is waited for in ${where}`, async () => {
    const { runtime, errors } = await setUp({ concurrency: 1 });
    const outer = outerOf(runtime);
    const runs = await Promise.all([runtime.submit(outer, null), runtime.submit(outer, null)]);
    const results = await Promise.all(runs.map((run) => run.result()));
    expect(results.map(({ output }) => output)).toEqual(["done", "done"]);
    await runtime.close();
    expect(errors).toEqual([]);
  });

it("gives the slot of a child that waits for another run, not that of whoever hired it", async () => {
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

it("works on again with a slot only: what another run came to is not heard before", async () => {
  const { runtime } = await setUp({ concurrency: 1 });
  const order: string[] = [];
  const released = Promise.withResolvers<void>();
  const outer = caller(async () => {
    await ask(runtime);
    order.push("outer goes on");
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
  expect(order).toEqual(["slot is free", "outer goes on"]);
  await runtime.close();
});

it("has room for the runs that others wait for, however many wait", async () => {
  const { runtime } = await setUp();
  const outer = caller(() => ask(runtime));
  const runs = await Promise.all(Array.from({ length: 1_100 }, () => runtime.submit(outer, null)));
  const results = await Promise.all(runs.map((run) => run.result()));
  expect(results.every(({ output }) => output === "done")).toBe(true);
  await runtime.close();
});

it("leaves the slot of a run that waits for a person free when an observer has asked another run", async () => {
  const { runtime } = await setUp({ concurrency: 1 });
  let asked = 0;
  const observer = {
    observe: ({ type }: { readonly type: string }) => {
      if (type === "task_suspend") void ask(runtime).then(() => asked++);
    },
    settled: async () => {},
  };
  const patient = agent("patient", async (ctx) => (await ctx.waitForSignal("go")) ?? null, {
    callPath: { observer },
  });
  const run = await runtime.submit(patient, null);
  await until(() => asked === 1);
  await settle();
  expect(await ask(runtime)).toBe("answer");
  await run.signal("go", 1);
  expect((await run.result()).output).toBe(1);
  await runtime.close();
});

it("a stop ends the wait at once: code that obeys comes to its finally, in a tool as outside of one", async () => {
  const { runtime } = await setUp({ stopGraceMs: 1_000 });
  const patient = agent("patient", async (ctx) => (await ctx.waitForSignal("go")) ?? null);
  for (const kind of ["code", "tool"]) {
    const seen: string[] = [];
    const wait = async (): Promise<JsonValue> => {
      const run = await runtime.submit(patient, null);
      try {
        return (await run.result()).output;
      } finally {
        seen.push("finally");
      }
    };
    const outer = kind === "code" ? agent("code", wait) : caller(wait);
    const run = await runtime.submit(outer, null);
    await settle();
    await run.cancel("enough");
    // No time passes: nobody has to be given up.
    expect((await run.result()).status).toBe("cancelled");
    await settle();
    expect(seen).toEqual(["finally"]);
  }
});

it("who closes does not wait for a call that only waits for another run", async () => {
  const { runtime } = await setUp({ closeGraceMs: 3_000 });
  const patient = agent("patient", async (ctx) => (await ctx.waitForSignal("go")) ?? null);
  const outer = caller(async () => (await (await runtime.submit(patient, null)).result()).output);
  await runtime.submit(outer, null);
  await settle();
  // No time passes.
  await expect(runtime.close()).resolves.toBeUndefined();
});
