import { describe, expect, test } from "vitest";
import { z } from "zod";
import { Agent, openRuntime, tool } from "../../src/index.ts";
import {
  formatAgentId,
  type HostedAgent,
  type JsonValue,
  type Model,
  type RunContext,
  type Runtime,
} from "../../src/kernel/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { removeStoresAfterEach, twoStores } from "../runtime/two-stores.ts";

removeStoresAfterEach();

interface Call {
  readonly name: string;
  readonly call: (inner: Agent, runtime: Runtime) => Promise<JsonValue>;
}

const calls: readonly Call[] = [
  {
    name: "agent.invoke()",
    call: async (inner, runtime) => (await inner.invoke("Think", { runtime })).output,
  },
  {
    name: "a loop over agent.stream()",
    call: async (inner, runtime) => {
      const types: string[] = [];
      for await (const { type } of inner.stream("Think", { runtime })) types.push(type);
      return types;
    },
  },
  {
    name: "a loop over agent.stream().text()",
    call: async (inner, runtime) => {
      let answer = "";
      for await (const text of inner.stream("Think", { runtime }).text()) answer += text;
      return answer;
    },
  },
];

/** A model that never answers. `isAsked` resolves with its first call. */
function silentModel(): { readonly model: Model; readonly isAsked: Promise<void> } {
  const { promise: isAsked, resolve } = Promise.withResolvers<void>();
  const generate = (): Promise<never> => {
    resolve();
    return new Promise(() => {});
  };
  const stream = async function* stream(): AsyncGenerator<never> {
    yield await generate();
  };
  return { model: { provider: "test", modelId: "silent", generate, stream }, isAsked };
}

/** Cancels a run whose tool calls another agent. Returns the results of both runs. */
async function cancelDuring(runtime: Runtime, { call }: Call): Promise<readonly unknown[]> {
  const { model: silent, isAsked } = silentModel();
  const inner = new Agent({ name: "inner", model: silent });
  const consult = tool({
    name: "consult",
    description: "Asks another agent",
    inputSchema: z.object({}),
    execute: () => call(inner, runtime),
  });
  const model = scriptedModel([{ toolCalls: [{ name: "consult", input: {} }] }, "unreached"]);
  const outer = new Agent({ name: "outer", model, tools: [consult] });
  const run = await outer.submit("go", { runtime });
  await isAsked;
  await run.cancel("no longer needed");
  const outerResult = await run.result();
  const [{ runId } = { runId: "" }] = (await runtime.list({ agentId: "inner" })).runs;
  const innerRun = await runtime.find(runId);
  return [outerResult, await innerRun?.result()];
}

describe.each(twoStores)("on a %s store", (_name, prepare) => {
  test.each(calls)("$name inside a tool is cancelled with the run that called the tool", async (way) => {
    const open = await prepare();
    const runtime = await openRuntime({ store: await open(), unknownPrice: "ignore", stopGraceMs: 10 });
    expect(await cancelDuring(runtime, way)).toMatchObject([
      { status: "cancelled" },
      { status: "cancelled", interruptionReason: "no longer needed" },
    ]);
    await runtime.close();
  });
});

/** Ways in which a part of a task stops while the rest of the task continues. `call` waits for another run. */
const stops: readonly (readonly [
  string,
  (ctx: RunContext, call: () => Promise<JsonValue>, isAsked: Promise<void>) => Promise<JsonValue>,
])[] = [
  [
    "a branch that has lost a race",
    async (ctx, call, isAsked) =>
      (await ctx.race({ slow: () => call(), fast: () => isAsked.then(() => "fast") })).winner,
  ],
  [
    "a branch of parallel() beside a failed one",
    async (ctx, call, isAsked) => {
      const failing = (): Promise<never> =>
        isAsked.then(() => {
          throw new Error("no");
        });
      try {
        await ctx.parallel({ slow: () => call(), failing }, { stopOnFault: true });
        return "not stopped";
      } catch (error) {
        return (error as Error).message;
      }
    },
  ],
  ["a tool that takes too long", async (ctx) => (await ctx.tool(consults)).isError],
];
const consults = { callId: "call_1", toolName: "consult", input: {} };

describe.each(twoStores)("a part of a task on a %s store", (_name, prepare) => {
  test.each(stops.flatMap(([part, stop]) => calls.map((way) => ({ part, stop, way, call: way.name }))))(
    "$part cancels the run that $call started for it",
    async ({ stop, way }) => {
      const open = await prepare();
      await using runtime = await openRuntime({
        store: await open(),
        unknownPrice: "ignore",
        stopGraceMs: 10,
      });
      const { model, isAsked } = silentModel();
      const inner = new Agent({ name: "inner", model });
      const call = (): Promise<JsonValue> => way.call(inner, runtime);
      const consult = tool({
        name: "consult",
        description: "Asks another agent",
        inputSchema: z.object({}),
        timeoutMs: 50,
        execute: call,
      });
      const outer: HostedAgent = {
        id: formatAgentId({ name: "outer" }),
        tools: [consult],
        run: async (ctx) => {
          const outcome = await stop(ctx, call, isAsked);
          // The task continues until the inner run has ended.
          const [{ runId } = { runId: "" }] = (await runtime.list({ agentId: "inner" })).runs;
          return [outcome, (await (await runtime.find(runId))?.result())?.status ?? null];
        },
      };
      const { output } = await (await runtime.submit(outer, null)).result();
      expect(output).toEqual([expect.anything(), "cancelled"]);
    },
  );
});

test("a loop over agent.stream() that is busy when its tool is cancelled cancels the inner run", async () => {
  const runtime = await openRuntime({ unknownPrice: "ignore", stopGraceMs: 10 });
  const { model: silent } = silentModel();
  const isBusy = Promise.withResolvers<void>();
  const inner = new Agent({ name: "inner", model: silent });
  const consult = tool({
    name: "consult",
    description: "Asks another agent",
    inputSchema: z.object({}),
    execute: async (_input, { signal }) => {
      const types: string[] = [];
      for await (const { type } of inner.stream("Think", { runtime })) {
        if (types.push(type) > 1) continue;
        isBusy.resolve();
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      }
      return types;
    },
  });
  const model = scriptedModel([{ toolCalls: [{ name: "consult", input: {} }] }, "unreached"]);
  const outer = new Agent({ name: "outer", model, tools: [consult] });
  const run = await outer.submit("go", { runtime });
  await isBusy.promise;
  await run.cancel("no longer needed");
  expect(await run.result()).toMatchObject({ status: "cancelled" });
  const [{ runId } = { runId: "" }] = (await runtime.list({ agentId: "inner" })).runs;
  expect(await (await runtime.find(runId))?.result()).toMatchObject({ status: "cancelled" });
  await runtime.close();
});
