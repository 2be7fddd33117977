import { describe, expect, test } from "vitest";
import { z } from "zod";
import { Agent, openRuntime, tool } from "../../../src/entries/index.ts";
import type { JsonValue, Model, Runtime } from "../../../src/kernel/index.ts";
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
