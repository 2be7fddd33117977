import { describe, expect, test } from "vitest";
import { z } from "zod";
import { Agent, openRuntime, tool } from "../../../src/entries/index.ts";
import {
  Fault,
  type JsonValue,
  type Model,
  type ModelCallOptions,
  type RunContext,
  type Runtime,
  type Store,
} from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { agent } from "../../runtime/runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../../runtime/two-stores.ts";

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

/**
 * A model that never answers. With `obeys`, it ends its call when the call is cancelled. `isAsked` resolves at its first
 * call.
 */
function silentModel(obeys = false): { readonly model: Model; readonly isAsked: Promise<void> } {
  const { promise: isAsked, resolve } = Promise.withResolvers<void>();
  const generate = (_request: unknown, { signal }: ModelCallOptions = {}): Promise<never> => {
    resolve();
    return new Promise((_resolve, reject) => {
      if (obeys) signal?.addEventListener("abort", () => reject(new Error("the call was cancelled")));
    });
  };
  const stream = async function* stream(request: unknown, options?: ModelCallOptions): AsyncGenerator<never> {
    yield await generate(request, options);
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

describe.each(twoStores)("a nested call of an agent on a %s store", (_name, prepare) => {
  test.each(calls)("$name inside a tool is cancelled with the run that called the tool", async (way) => {
    const open = await prepare();
    const runtime = await openRuntime({ store: await open(), unknownPrice: "ignore", stopGraceMs: 10 });
    expect(await cancelDuring(runtime, way)).toMatchObject([
      { status: "cancelled" },
      { status: "cancelled", interruptionReason: "no longer needed" },
    ]);
    await runtime.close();
  });

  test.each(calls)("$name in a branch is cancelled when the branch is abandoned", async ({ call }) => {
    const open = await prepare();
    const runtime = await openRuntime({ store: await open(), unknownPrice: "ignore", stopGraceMs: 10 });
    for (const construct of ["race", "parallel"]) {
      const { model, isAsked } = silentModel();
      const inner = new Agent({ name: `inner-${construct}`, model });
      const outer = agent(`outer-${construct}`, async (ctx) => {
        const slow = (): Promise<JsonValue> => call(inner, runtime);
        if (construct === "race") return ctx.race({ slow, fast: () => isAsked.then(() => "fast") });
        const failing = (): Promise<never> => isAsked.then(() => Promise.reject(new Error("no luck")));
        return ctx.parallel({ slow, failing }, { stopOnFault: true }).catch(() => "failed");
      });
      const run = await runtime.submit(outer, null);
      expect(await run.result()).toMatchObject({ status: "completed" });
      const [{ runId } = { runId: "" }] = (await runtime.list({ agentId: inner.id })).runs;
      expect(await (await runtime.find(runId))?.result()).toMatchObject({ status: "cancelled" });
    }
    await runtime.close();
  });
});

describe.each(twoStores)("a tool that takes too long on a %s store", (_name, prepare) => {
  test.each(calls)("a tool that takes too long cancels the run of $name in its body", async (way) => {
    const open = await prepare();
    await using runtime = await openRuntime({ store: await open(), unknownPrice: "ignore", stopGraceMs: 10 });
    const { model: silent } = silentModel();
    const inner = new Agent({ name: "inner", model: silent });
    const consult = tool({
      name: "consult",
      description: "Asks another agent",
      inputSchema: z.object({}),
      timeoutMs: 50,
      execute: () => way.call(inner, runtime),
    });
    const model = scriptedModel([{ toolCalls: [{ name: "consult", input: {} }] }, "Done."]);
    const { status } = await new Agent({ name: "outer", model, tools: [consult] }).invoke("go", { runtime });
    expect(status).toBe("completed");
    const [{ runId } = { runId: "" }] = (await runtime.list({ agentId: "inner" })).runs;
    expect(await (await runtime.find(runId))?.result()).toMatchObject({
      status: "cancelled",
      interruptionReason: "consult took longer than 50 ms",
    });
  });
});

/** A store that creates no run of the agent `inner` before `release` is called. */
function holdingStore(store: Store) {
  const isHeld = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const { journal } = store;
  const held = new Proxy(journal, {
    get(_target, name) {
      const member = Reflect.get(journal, name) as unknown;
      if (typeof member !== "function") return member;
      if (name !== "create" && name !== "createAndClaim") return member.bind(journal) as unknown;
      return async (...given: Parameters<typeof journal.create>): Promise<unknown> => {
        if (given[0].agentId === "inner") {
          isHeld.resolve();
          await released.promise;
        }
        return Reflect.apply(member, journal, given) as unknown;
      };
    },
  });
  return { store: { ...store, journal: held }, isHeld: isHeld.promise, release: released.resolve };
}

const ways: readonly Call[] = [
  ...calls,
  {
    name: "agent.stream().result()",
    call: async (inner, runtime) => (await inner.stream("Think", { runtime }).result()).output,
  },
  {
    name: "agent.runUntil()",
    call: async (inner, runtime) =>
      (await inner.runUntil("Think", { runtime, until: () => false, maxIterations: 3 })).output,
  },
];

describe.each(twoStores)(
  "a tool that is cancelled while it submits a run to a %s store",
  (_name, prepare) => {
    const cases = ways.flatMap((way) =>
      (["before", "after"] as const).flatMap((when) => [
        { ...way, when, timeoutMs: 1, reason: "consult took longer than 1 ms" },
        { ...way, when, timeoutMs: null, reason: "no longer needed" },
      ]),
    );
    test.each(cases)(
      "a run of $name that exists $when the end of its tool is cancelled with the tool: $reason",
      async (nested) => {
        const { call, when, timeoutMs, reason } = nested;
        const { store, isHeld, release } = holdingStore(await (await prepare())());
        await using runtime = await openRuntime({ store, unknownPrice: "ignore", stopGraceMs: 10 });
        const inner = new Agent({ name: "inner", model: silentModel(true).model });
        const settled = Promise.withResolvers<void>();
        const consult = tool({
          name: "consult",
          description: "Asks another agent",
          inputSchema: z.object({}),
          ...(timeoutMs !== null && { timeoutMs }),
          execute: (_input, { signal }) => {
            if (when === "before") signal.addEventListener("abort", () => release(), { once: true });
            return call(inner, runtime).finally(settled.resolve);
          },
        });
        const model = scriptedModel([{ toolCalls: [{ name: "consult", input: {} }] }, "Done."]);
        const run = await new Agent({ name: "outer", model, tools: [consult] }).submit("go", { runtime });
        await isHeld;
        if (timeoutMs === null) await run.cancel(reason);
        if (when === "after") {
          await run.result();
          release();
        }
        await settled.promise;
        const [{ runId } = { runId: "" }] = (await runtime.list({ agentId: "inner" })).runs;
        expect(await (await runtime.find(runId))?.result()).toMatchObject({
          status: "cancelled",
          interruptionReason: reason,
        });
        await run.result();
      },
    );
  },
);

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

describe.each(twoStores)("J6: a tool body or step that starts again on a %s store", (_name, prepare) => {
  /**
   * Executes the body of a step in a process that ends before the body returns, and then in another process. The first
   * `failures` executions of the agent that the body calls fail. Returns the result, and how often that agent has
   * worked.
   */
  async function runTwice(
    body: (ask: (input: string) => Promise<JsonValue>) => Promise<JsonValue>,
    failures = 0,
  ) {
    const open = await prepare();
    let worked = 0;
    const inner = agent("inner", (ctx) =>
      ctx.step("work", async () => {
        if (++worked <= failures) throw new Fault("invalid_argument", "no luck");
        return `${JSON.stringify(ctx.input)} ${worked}`;
      }),
    );
    const start = async (hangs: boolean) => {
      const runtime = await openRuntime({ store: await open(), unknownPrice: "ignore", closeGraceMs: 0 });
      const reached = Promise.withResolvers<void>();
      const ask = async (input: string): Promise<JsonValue> => {
        const { status, output } = await (await runtime.submit(inner, input)).result();
        return status === "completed" ? (output ?? null) : status;
      };
      const outer = agent("outer", (ctx) =>
        ctx.step("consult", async () => {
          const value = await body(ask);
          reached.resolve();
          return hangs ? new Promise<never>(() => undefined) : value;
        }),
      );
      runtime.register(inner);
      return { runtime, outer, reached: reached.promise };
    };
    const one = await start(true);
    const { runId } = await one.runtime.submit(one.outer, null);
    await one.reached;
    await one.runtime.close();
    const two = await start(false);
    two.runtime.register(two.outer);
    const result = await (await two.runtime.find(runId))?.result();
    const { runs } = await two.runtime.list({ agentId: inner.id });
    await two.runtime.close();
    return { output: result?.output, worked, runs: runs.length };
  }

  test("a repeated step joins the run that its earlier execution submitted, and does not pay its answer again", async () => {
    const { output, worked, runs } = await runTwice((ask) => ask("Think"));
    expect([output, worked, runs]).toEqual(['"Think" 1', 1, 1]);
  });

  test("equal submissions within one step are separate runs, and a repeated step finds each of them", async () => {
    const { output, worked, runs } = await runTwice(async (ask) => [
      await ask("Think"),
      await ask("Think"),
      await ask("Rest"),
    ]);
    expect([output, worked, runs]).toEqual([['"Think" 1', '"Think" 2', '"Rest" 3'], 3, 3]);
  });

  test("a repeated step does not join a run that ended without completing", async () => {
    const { output, worked, runs } = await runTwice((ask) => ask("Think"), 1);
    expect([output, worked, runs]).toEqual(['"Think" 2', 2, 2]);
  });

  /** How the body of a tool calls the agent: directly, or in the branches of its context. */
  type Ask = (input: string) => Promise<JsonValue>;
  const bodies: Record<string, (ctx: RunContext, ask: Ask) => Promise<unknown>> = {
    "agent.invoke()": (_ctx, ask) => ask("Think"),
    "agent.invoke() in the branches of ctx.parallel()": (ctx, ask) =>
      ctx.parallel({ one: () => ask("Think"), two: () => ask("Think"), three: () => ask("Rest") }),
  };
  const cases = Object.entries(bodies).map(([name, body]) => ({ name, body }));

  test.each(cases)("a repeated tool body joins the runs of $name", async ({ body }) => {
    const open = await prepare();
    const model = scriptedModel(["42", "42", "42"]);
    const inner = new Agent({ name: "inner", model });
    const outerModel = scriptedModel([{ toolCalls: [{ name: "consult", input: {} }] }, "It is 42."]);
    const asked: number[] = [];
    const start = async (hangs: boolean) => {
      const runtime = await openRuntime({ store: await open(), unknownPrice: "ignore", closeGraceMs: 0 });
      const reached = Promise.withResolvers<void>();
      const consult = tool({
        name: "consult",
        description: "Asks another agent",
        inputSchema: z.object({}),
        execute: async (_input, { ctx }) => {
          await body(ctx, async (input) => (await inner.invoke(input, { runtime })).output);
          asked.push(model.calls.length);
          reached.resolve();
          return hangs ? new Promise<never>(() => undefined) : "42";
        },
      });
      runtime.register(inner);
      const outer = new Agent({ name: "outer", model: outerModel, tools: [consult] });
      return { runtime, outer, reached: reached.promise };
    };
    const one = await start(true);
    const { runId } = await one.outer.submit("go", { runtime: one.runtime });
    await one.reached;
    await one.runtime.close();
    const two = await start(false);
    two.runtime.register(two.outer);
    const result = await (await two.runtime.find(runId))?.result();
    await two.runtime.close();
    expect(result?.output).toBe("It is 42.");
    expect(asked[0]).toBeGreaterThan(0);
    expect(asked[1]).toBe(asked[0]);
  });
});
