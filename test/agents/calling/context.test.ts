import { describe, expect, test } from "vitest";
import {
  Agent,
  getRunContext,
  HookEvent,
  HookManager,
  openRuntime,
  OrchestratorAgent,
  tool,
  toolHooks,
  type ContextFactory,
  type Guardrail,
  type RunFacts,
  type Runtime,
  type ToolContext,
} from "../../../src/entries/index.ts";
import { type RegisterOptions } from "../../../src/kernel/index.ts";
import type { RunHandle, Store } from "../../../src/kernel/index.ts";
import { scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { removeStoresAfterEach, twoStores } from "../../runtime/two-stores.ts";

removeStoresAfterEach();

/** A context that JSON cannot hold. */
interface Shop {
  readonly price: (item: string) => number;
}

const shop: Shop = { price: (item) => item.length };
const schema = {
  type: "object",
  properties: { item: { type: "string" } },
  required: ["item"],
} as const;
const price = tool({
  name: "price",
  description: "The price of an item",
  inputSchema: schema,
  execute: ({ item }, { context }: ToolContext<Shop>) => `${context.price(item)} EUR`,
});
const asks: ScriptStep = { toolCalls: [{ name: "price", input: { item: "pear" } }] };

/** The results that the last request of a model contains. */
function resultsIn(model: ReturnType<typeof scriptedModel>): readonly unknown[] {
  const { messages = [] } = model.calls.at(-1) ?? {};
  return messages.flatMap((message) =>
    message.role === "tool" ? message.content.map(({ output }) => output) : [],
  );
}

describe("the context of a run", () => {
  test("tools, instructions, guardrails and hooks of a call receive the context that the call was given", async () => {
    const received: unknown[] = [];
    const guardrail: Guardrail<Shop> = {
      name: "prices",
      onInput: (_input, { facts }) => {
        received.push(["guardrail", facts.context]);
        return { decision: "allow" };
      },
      beforeCall: (_call, { facts }) => {
        received.push(["call", facts.context.price("fig")]);
        return { decision: "allow" };
      },
    };
    const hooks = new HookManager();
    hooks.on(HookEvent.RUN_END, () => {
      received.push(["hook", getRunContext()?.context]);
    });
    const gate = toolHooks();
    gate.onPreTool((_call, facts: RunFacts<Shop>) => {
      received.push(["preTool", facts.context]);
    });
    const model = scriptedModel([asks, "Four."]);
    const agent = new Agent<Shop>({
      name: "clerk",
      model,
      instructions: ({ context }) => `A fig costs ${context.price("fig")}.`,
      tools: [price],
      guardrails: [guardrail],
      hooks,
      toolHooks: gate,
    });
    const { status } = await agent.invoke("What is a pear?", { context: shop });
    expect(status).toBe("completed");
    expect(model.calls[0]?.messages[0]).toEqual({ role: "system", content: "A fig costs 3." });
    expect(resultsIn(model)).toEqual([{ type: "text", text: "4 EUR" }]);
    expect(received).toEqual([
      ["guardrail", shop],
      ["preTool", shop],
      ["call", 3],
      ["hook", shop],
    ]);
  });

  test("sub-agents share the context of their run, and concurrent runs have their own", async () => {
    const lead = (): [Agent<Shop>, ReturnType<typeof scriptedModel>] => {
      const helped = scriptedModel([asks, "Told."]);
      const helper = new Agent({ name: "helper", model: helped, tools: [price] });
      const handsOff = { toolCalls: [{ name: "handoff_helper", input: { task: "Price?" } }] };
      const model = scriptedModel([handsOff, "Done."]);
      return [new OrchestratorAgent<Shop>({ name: "lead", model, subAgents: [helper] }), helped];
    };
    const [one, oneModel] = lead();
    const [two, twoModel] = lead();
    await Promise.all([
      one.invoke("Go.", { context: { price: () => 1 } }),
      two.invoke("Go.", { context: { price: () => 2 } }),
    ]);
    expect(resultsIn(oneModel)).toEqual([{ type: "text", text: "1 EUR" }]);
    expect(resultsIn(twoModel)).toEqual([{ type: "text", text: "2 EUR" }]);
  });

  test("a run without a context and without a factory has the context undefined", async () => {
    const seen: unknown[] = [];
    const look = tool({
      name: "price",
      description: "x",
      inputSchema: schema,
      execute: (_, { context, facts }) => {
        seen.push(context, facts.context);
        return "x";
      },
    });
    await new Agent({ name: "clerk", model: scriptedModel([asks, "x"]), tools: [look] }).invoke("x");
    expect(seen).toEqual([undefined, undefined]);
  });

  test("a context factory gives the context of a run that is submitted without one, from the facts of the run", async () => {
    const runtime = await openRuntime({ store: "memory:" });
    const model = scriptedModel([asks, "Done.", asks, "Done."]);
    const agent = new Agent({ name: "clerk", model, tools: [price] });
    const asked: unknown[] = [];
    const context: ContextFactory<Shop> = async (facts) => {
      asked.push(facts);
      return { price: () => 7 };
    };
    runtime.register(agent, { context });
    const run = await runtime.submit(agent, "x", { userId: "ann", metadata: { shop: 1 } });
    const { sessionId, runId } = await run.result();
    expect(resultsIn(model)).toEqual([{ type: "text", text: "7 EUR" }]);
    expect(asked).toEqual([{ tenantId: null, userId: "ann", metadata: { shop: 1 }, sessionId, runId }]);
    await agent.invoke("x", { runtime, context: shop });
    expect(resultsIn(model)).toEqual([{ type: "text", text: "4 EUR" }]);
    expect(asked).toHaveLength(1);
    await runtime.close();
  });

  test("a context factory that fails is called again when the task restarts", async () => {
    const runtime = await openRuntime({ store: "memory:", runRetry: { baseDelayMs: 1 } });
    const model = scriptedModel([asks, "Done."]);
    const agent = new Agent({ name: "clerk", model, tools: [price] });
    let attempts = 0;
    runtime.register(agent, {
      context: () => {
        if (++attempts === 1) throw new Error("the database is starting");
        return shop;
      },
    });
    const run = await runtime.submit(agent, "x");
    expect(await run.result()).toMatchObject({ status: "completed" });
    expect(attempts).toBe(2);
    await runtime.close();
  });

  test("register() refuses a context that is no factory, and unknown options", async () => {
    const runtime = await openRuntime({ store: "memory:" });
    const agent = new Agent({ name: "clerk", model: scriptedModel([]) });
    expect(() => runtime.register(agent, { context: shop as never })).toThrow(
      "invalid context of register(): expected a function that returns the context of a run, not an object",
    );
    expect(() => runtime.register(agent, { contxt: () => shop } as never)).toThrow('use "context"');
    await runtime.close();
  });

  test("a run that failed is resumed with its context in the same process", async () => {
    const refused: ScriptStep = { error: Object.assign(new Error("no"), { status: 400 }) };
    const model = scriptedModel([refused, asks, "Done."]);
    const agent = new Agent({ name: "clerk", model, tools: [price] });
    const { runId, status } = await agent.invoke("x", { context: shop });
    expect(status).toBe("failed");
    expect(await agent.resume(runId)).toMatchObject({ status: "completed" });
    expect(resultsIn(model)).toEqual([{ type: "text", text: "4 EUR" }]);
  });
});

/** A worker whose agent waits for approval before it uses its context. */
async function worker(store: Store, script: readonly ScriptStep[], options?: RegisterOptions<Shop>) {
  const runtime = await openRuntime({ store, unknownPrice: "ignore" });
  const model = scriptedModel(script);
  const tools = [{ ...price, needsApproval: () => true }];
  const built: unknown[] = [];
  const instructions = ({ context, userId }: RunFacts<Shop>): string => {
    built.push(userId);
    return `A fig costs ${context.price("fig")}.`;
  };
  const agent = new Agent({ name: "clerk", model, tools, instructions });
  if (options !== undefined) runtime.register(agent, options);
  return { runtime, model, agent, built };
}

async function approvalOf(run: RunHandle): Promise<string> {
  for await (const event of run.events()) if (event.type === "approval_request") return event.data.approvalId;
  throw new Error("the run ended without an approval request");
}

async function found(runtime: Runtime, runId: string): Promise<RunHandle> {
  const run = await runtime.find(runId);
  if (run === undefined) throw new Error(`no run ${runId}`);
  return run;
}

describe.each(twoStores)("the context of a run after a restart (store: %s)", (_store, prepare) => {
  test("a worker that resumes a run rebuilds its context through the factory, and the instructions stay as recorded", async () => {
    const open = await prepare();
    const first = await worker(await open(), [asks]);
    const run = await first.agent.submit("x", { runtime: first.runtime, userId: "ann", context: shop });
    const approvalId = await approvalOf(run);
    expect(first.built).toEqual(["ann"]);
    await first.runtime.close();
    const users: unknown[] = [];
    const second = await worker(await open(), ["Done."], {
      context: ({ userId }) => {
        users.push(userId);
        return { price: () => 9 };
      },
    });
    const again = await found(second.runtime, run.runId);
    await again.approve(approvalId, { decision: "approved" });
    expect(await again.result()).toMatchObject({ status: "completed", output: "Done." });
    expect(users).toEqual(["ann"]);
    expect(resultsIn(second.model)).toEqual([{ type: "text", text: "9 EUR" }]);
    expect(second.built).toEqual([]);
    expect(second.model.calls[0]?.messages[0]).toEqual({ role: "system", content: "A fig costs 3." });
    await second.runtime.close();
  });

  test("a worker without a context factory fails the run with context_missing before a step, and a later worker resumes it", async () => {
    const open = await prepare();
    const first = await worker(await open(), [asks]);
    const run = await first.agent.submit("x", { runtime: first.runtime, context: shop });
    const approvalId = await approvalOf(run);
    await first.runtime.close();
    const second = await worker(await open(), [], {});
    const failed = await found(second.runtime, run.runId);
    await failed.signal("wake"); // a worker loads a waiting run when a message arrives
    const { status, error } = await failed.result();
    expect([status, error?.code]).toEqual(["failed", "context_missing"]);
    expect(error?.message).toContain("call runtime.register(agent, { context: (facts) => ... })");
    expect(second.model.calls).toEqual([]);
    await second.runtime.close();
    const third = await worker(await open(), ["Done."], { context: () => ({ price: () => 5 }) });
    const resumed = await found(third.runtime, run.runId);
    await resumed.resume();
    await resumed.approve(approvalId, { decision: "approved" });
    expect(await resumed.result()).toMatchObject({ status: "completed", output: "Done." });
    expect(resultsIn(third.model)).toEqual([{ type: "text", text: "5 EUR" }]);
    await third.runtime.close();
  });

  test("a fork gets its context from the context factory, and fails with context_missing without a factory", async () => {
    const open = await prepare();
    await using runtime = await openRuntime({ store: await open() });
    const model = scriptedModel([asks, "Done.", asks, "Forked."]);
    const agent = new Agent({ name: "clerk", model, tools: [price] });
    const origin = await agent.submit("x", { runtime, context: shop });
    await origin.result();
    const missing = await (await origin.fork({ at: 5 })).result();
    expect([missing.status, missing.error?.code]).toEqual(["failed", "context_missing"]);
    expect(model.calls).toHaveLength(2);
    runtime.register(agent, { context: () => ({ price: () => 9 }) });
    const forked = await (await origin.fork({ at: 5 })).result();
    expect(forked).toMatchObject({ status: "completed", output: "Forked." });
    expect(resultsIn(model)).toEqual([{ type: "text", text: "9 EUR" }]);
  });

  test("a run without a context is resumed by a worker without a context factory", async () => {
    const open = await prepare();
    const plain = (script: readonly ScriptStep[]) =>
      new Agent({
        name: "plain",
        model: scriptedModel(script),
        tools: [
          tool({
            name: "price",
            description: "x",
            inputSchema: schema,
            needsApproval: true,
            execute: () => "1",
          }),
        ],
      });
    const first = await openRuntime({ store: await open(), unknownPrice: "ignore" });
    const run = await plain([asks]).submit("x", { runtime: first });
    const approvalId = await approvalOf(run);
    await first.close();
    const second = await openRuntime({ store: await open(), unknownPrice: "ignore" });
    second.register(plain(["Done."]));
    const again = await found(second, run.runId);
    await again.approve(approvalId, { decision: "approved" });
    expect(await again.result()).toMatchObject({ status: "completed" });
    await second.close();
  });
});

describe("instructions of an agent as a function", () => {
  test("a function for instructions is called once per invocation with user, metadata and context", async () => {
    const asked: RunFacts<Shop>[] = [];
    const model = scriptedModel([asks, "one", "two"]);
    const agent = new Agent({
      name: "clerk",
      model,
      tools: [price],
      instructions: async (facts: RunFacts<Shop>) => {
        asked.push(facts);
        return `For ${facts.userId}, ${JSON.stringify(facts.metadata)}.`;
      },
    });
    await agent.invoke("x", { userId: "ann", metadata: { tier: "gold" }, context: shop });
    await agent.invoke("y", { userId: "bob", metadata: { tier: "tin" }, context: shop });
    expect(model.calls.map(({ messages: [first] }) => first?.content)).toEqual([
      'For ann, {"tier":"gold"}.',
      'For ann, {"tier":"gold"}.',
      'For bob, {"tier":"tin"}.',
    ]);
    expect(asked.map(({ context }) => context)).toEqual([shop, shop]);
  });

  test("a function for instructions that returns no text fails the run before a model call", async () => {
    const model = scriptedModel([]);
    const agent = new Agent({ name: "clerk", model, instructions: (() => undefined) as never });
    const { status, error } = await agent.invoke("x");
    expect(status).toBe("failed");
    expect(error?.message).toBe(
      "invalid instructions of agent clerk: the function returned undefined; expected a text",
    );
    expect(model.calls).toEqual([]);
  });

  test.each<[string, NonNullable<ConstructorParameters<typeof Agent>[0]["instructions"]>]>([
    ["a text", { build: () => "Be brief." }],
    ["a promise of a text", { build: async () => "Be brief." }],
    ["an object with a text", { build: async () => ({ text: "Be brief." }) }],
  ])(
    "an instructions object whose build() returns %s gives the system prompt",
    async (_what, instructions) => {
      const model = scriptedModel(["one"]);
      const { status } = await new Agent({ name: "clerk", model, instructions }).invoke("x");
      expect({ status, first: model.calls[0]?.messages[0]?.content }).toEqual({
        status: "completed",
        first: "Be brief.",
      });
    },
  );

  test("an instructions object whose build() returns no text fails the run before a model call", async () => {
    const model = scriptedModel([]);
    const instructions = { build: async () => ({ prompt: "Be brief." }) } as never;
    const { status, error } = await new Agent({ name: "clerk", model, instructions }).invoke("x");
    expect(status).toBe("failed");
    expect(error?.message).toBe(
      "invalid instructions of agent clerk: build() returned an object; expected a text, or { text, fromCache }",
    );
    expect(model.calls).toEqual([]);
  });
});
