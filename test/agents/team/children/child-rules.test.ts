import { describe, expect, test } from "vitest";
import {
  Agent,
  memoryStore,
  openRuntime,
  sha256,
  tool,
  type AgentOptions,
} from "../../../../src/entries/index.ts";
import type { ChildRequest, Memory, RunContext, SpawnOutcome, Tool } from "../../../../src/kernel/index.ts";
import { browserTools, type BrowserSession } from "../../../../src/capabilities/browser/index.ts";
import { desktopTools, type DesktopSession } from "../../../../src/capabilities/desktop/index.ts";
import { memoryTools } from "../../../../src/capabilities/tools/index.ts";
import { scriptedModel, type ScriptStep } from "../../../../src/testing/index.ts";

const noInput = { type: "object", properties: {} } as const;
const prompt = "What did you learn?";
const asks = (name: string, input = {}): ScriptStep => ({ toolCalls: [{ name, input }] });

/** An agent whose tool `delegate` runs `body` with the context of its call. */
async function setUp(
  script: readonly ScriptStep[],
  body: (ctx: RunContext) => Promise<string>,
  { tools = [], ...options }: Partial<AgentOptions> & { readonly tools?: readonly Tool[] } = {},
) {
  const model = scriptedModel(script);
  const delegate = tool({
    name: "delegate",
    description: "Delegates",
    inputSchema: noInput,
    execute: (_input, { ctx }) => body(ctx),
  });
  const agent = new Agent({ name: "scout", model, tools: [delegate, ...tools], ...options });
  const runtime = await openRuntime({ store: memoryStore({ hash: sha256 }), unknownPrice: "ignore" });
  return { model, agent, runtime };
}

const ended = async (ctx: RunContext, request: ChildRequest): Promise<string> => {
  const spawned = await ctx.child(request);
  return spawned.kind === "refused" ? spawned.reason : (await ctx.join(spawned.handle)).status;
};

describe("tools in a child", () => {
  test.each([
    ["browser_open", { url: "https://example.org" }, browserTools({} as BrowserSession), undefined],
    ["browser_open", { url: "https://example.org" }, browserTools({} as BrowserSession), ["browser_open"]],
    ["desktop_look", {}, desktopTools({} as DesktopSession), undefined],
    ["recall", { query: "rain" }, memoryTools({} as Memory), undefined],
  ] as const)(
    "a call of a tool %s is refused in a child with an error result, although the model sees the tool",
    async (name, input, tools, listed) => {
      const { agent, model, runtime } = await setUp(
        [asks("delegate"), asks(name, input), "Learnt.", "Done."],
        (ctx) => ended(ctx, { prompt, ...(listed && { tools: listed }) }),
        { tools },
      );
      expect(await agent.invoke("Go.", { runtime })).toMatchObject({ output: "Done." });
      expect(model.calls[1]?.tools?.map((each) => each.name)).toContain(name);
      expect(model.calls[2]?.messages.at(-1)).toMatchObject({
        content: [
          { toolName: name, isError: true, output: { text: expect.stringContaining("by this child") } },
        ],
      });
      await runtime.close();
    },
  );

  test("a memory tool that is named in the tools of a child is executed", async () => {
    const memory = { recall: async () => ({ facts: [], episodes: [], blocks: [] }) } as unknown as Memory;
    const { agent, model, runtime } = await setUp(
      [asks("delegate"), asks("recall", { query: "rain" }), "Learnt.", "Done."],
      (ctx) => ended(ctx, { prompt, tools: ["recall"] }),
      { tools: memoryTools(memory) },
    );
    await agent.invoke("Go.", { runtime });
    expect(model.calls[2]?.messages.at(-1)).toMatchObject({
      content: [{ toolName: "recall", output: { text: "[nothing found]" } }],
    });
    await runtime.close();
  });
});

describe("limits of a child", () => {
  test.each([{ prompt }, { prompt, tools: ["delegate", "write"] }])(
    "a child whose tools are limited cannot give its own child other tools, as with %j",
    async (request) => {
      let written = 0;
      const write = tool({
        name: "write",
        description: "Writes",
        inputSchema: noInput,
        execute: () => `written ${++written}`,
      });
      let calls = 0;
      const { agent, model, runtime } = await setUp(
        [asks("delegate"), asks("delegate"), asks("write"), "Grandchild.", "Child.", "Done."],
        (ctx) => ended(ctx, calls++ === 0 ? { prompt, tools: ["delegate"] } : request),
        { tools: [write] },
      );
      expect(await agent.invoke("Go.", { runtime })).toMatchObject({ output: "Done." });
      expect(written).toBe(0);
      expect(model.calls[3]?.messages.at(-1)).toMatchObject({
        content: [{ isError: true, output: { text: expect.stringContaining("may call: delegate") } }],
      });
      await runtime.close();
    },
  );

  test("a child takes a seat of the run, and its turns count against the run's budget", async () => {
    const { agent, runtime } = await setUp(
      [asks("delegate"), "Learnt.", "Done."],
      (ctx) => ended(ctx, { prompt }),
      { spawnBudget: { maxAgents: 2 } },
    );
    expect(await agent.invoke("Go.", { runtime })).toMatchObject({ output: "Done.", turns: 3 });
    const alone = agent.with({
      key: "alone",
      model: scriptedModel([asks("delegate"), "No seat."]),
      spawnBudget: { maxAgents: 1 },
    });
    const refused = await alone.invoke("Go.", { runtime });
    expect(refused).toMatchObject({ output: "No seat.", turns: 2 });
    const poor = agent.with({
      key: "poor",
      model: scriptedModel([asks("delegate"), "Learnt."]),
      spawnBudget: {},
    });
    const exhausted = await poor.invoke("Go.", { runtime, budget: { maxTurns: 2 } });
    expect(exhausted).toMatchObject({ status: "budget_exhausted", turns: 2 });
    await runtime.close();
  });

  test("two children of one task and a child of a child start with the same request", async () => {
    const script = [asks("delegate"), asks("delegate"), "Inner.", "First.", "Second.", "Done."];
    let depth = 0;
    const { agent, model, runtime } = await setUp(script, async (ctx) => {
      if (depth++ > 0) return ended(ctx, { prompt: "Inside?", tools: [] });
      const first = await ended(ctx, { prompt: "First?" });
      return `${first} ${await ended(ctx, { prompt: "Second?" })}`;
    });
    expect(await agent.invoke("Go.", { runtime })).toMatchObject({ output: "Done." });
    const [parent, first, inner, , second] = model.calls;
    // The answer of the parent and the result of its open call follow the request.
    expect(first?.messages.slice(0, -3)).toEqual(parent?.messages);
    expect(second?.messages.slice(0, -3)).toEqual(parent?.messages);
    expect(inner?.messages.slice(0, -3)).toEqual(first?.messages);
    await runtime.close();
  });

  test("a child sees the results of those calls of the last answer that have ended", async () => {
    const calls = ["look", "delegate"].map((name) => ({ name, input: {}, callId: name }));
    // Sequential, so that the call has its result before the other one starts.
    const look = tool({
      name: "look",
      description: "Looks",
      inputSchema: noInput,
      concurrency: "sequential",
      execute: () => "rain",
    });
    const { agent, model, runtime } = await setUp(
      [{ toolCalls: calls }, "Seen.", "Done."],
      (ctx) => ended(ctx, { prompt: "What?" }),
      { tools: [look] },
    );
    expect(await agent.invoke("Go.", { runtime })).toMatchObject({ output: "Done." });
    const [, child] = model.calls;
    expect(child?.messages.at(-2)).toMatchObject({
      role: "tool",
      content: [
        { output: { text: "rain" } },
        { output: { text: expect.stringMatching(/^\[not executed: /u) } },
      ],
    });
    await runtime.close();
  });
});

describe("bad input of ctx.child()", () => {
  test.each([
    [{ prompt, tools: ["unknown"] }, 'there is no tool "unknown"; expected some of delegate'],
    [{ prompt: "" }, "expected a text that is not empty"],
    [{ tools: [] }, "invalid prompt undefined"],
    [{ prompt, tool: ["delegate"] }, 'unknown option "tool" of ctx.child(): use "tools"'],
    [{ prompt, tools: "delegate" }, "expected an array"],
    [{ prompt, budget: { maxTurns: Number.NaN } }, "maxTurns"],
    [{ prompt, onFull: "queue" }, "invalid onFull"],
    [null, "expected an object"],
  ])("ctx.child() refuses the input %j", async (request, message) => {
    const faults: unknown[] = [];
    const { agent, runtime } = await setUp([asks("delegate"), "Done."], async (ctx) => {
      await ctx.child(request as never).catch((error: unknown) => faults.push(error));
      return "refused";
    });
    expect(await agent.invoke("Go.", { runtime })).toMatchObject({ output: "Done." });
    expect(faults).toMatchObject([{ code: "invalid_argument", message: expect.stringContaining(message) }]);
    await runtime.close();
  });

  test("ctx.child() is refused in a task that has called no model, because it has no request to share", async () => {
    const runtime = await openRuntime({ store: memoryStore({ hash: sha256 }) });
    const id = new Agent({ name: "quiet", model: scriptedModel([]) }).id;
    const outcomes: (SpawnOutcome | string)[] = [];
    const quiet = {
      id,
      run: async (ctx: RunContext) => {
        await ctx.child({ prompt }).catch((error: Error) => outcomes.push(error.message));
        return null;
      },
    };
    await (await runtime.submit(quiet, null)).result();
    expect(outcomes).toEqual([expect.stringContaining("has not called a model yet; use ctx.spawn()")]);
    await runtime.close();
  });
});
