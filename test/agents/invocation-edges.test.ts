import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  Agent,
  openRuntime,
  OrchestratorAgent,
  slidingWindow,
  tool,
  type InvokeOptions,
} from "../../src/index.ts";
import {
  formatAgentId,
  formatSessionId,
  HistoryRetention,
  messageText,
  toolCallsOf,
  type HostedAgent,
  type ChatMessage,
  type HistoryKey,
  type HistoryProvider,
  type JsonValue,
} from "../../src/kernel/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";

const image = {
  type: "image",
  mediaType: "image/png",
  source: { kind: "base64", data: "AAAA" },
} as const;
const look = tool({ name: "look", description: "Looks", inputSchema: z.object({}), execute: () => "rain" });
const looks = { toolCalls: [{ name: "look", input: {} }] };
const sized = z.object({ size: z.number() });

function handsTo(...keys: readonly string[]) {
  return keys.flatMap((key) => [
    { toolCalls: [{ name: `handoff_${key}`, input: { task: `for ${key}` } }] },
    "done",
  ]);
}

/** A table of the application's own. */
function historyTable(): { readonly provider: HistoryProvider; readonly keys: () => readonly string[] } {
  const table = new Map<string, readonly ChatMessage[]>();
  const at = ({ agentId, sessionId }: HistoryKey) => `${agentId} ${sessionId}`;
  return {
    keys: () => [...table.keys()],
    provider: {
      read: async (key) => table.get(at(key)) ?? [],
      append: async (key, _runId, messages) =>
        void table.set(at(key), [...(table.get(at(key)) ?? []), ...messages]),
      count: async (key) => table.get(at(key))?.length ?? 0,
      clear: async (key) => void table.delete(at(key)),
      clearRun: async () => undefined,
    },
  };
}

describe("a history of the application's own", () => {
  test("is kept apart for each user a worker works for", async () => {
    const { provider, keys } = historyTable();
    const model = scriptedModel(["what Ann told me", "nothing", "as before"]);
    const worker = new Agent({ name: "clerk", model, history: provider });
    const lead: HostedAgent = {
      id: formatAgentId({ name: "office" }),
      subAgents: [worker],
      run: async (ctx) => {
        const hired = await ctx.spawn(worker.id, ctx.input, { retention: HistoryRetention.PERMANENT });
        return hired.kind === "spawned" ? (await ctx.join(hired.handle)).output : hired.reason;
      },
    };
    const runtime = await openRuntime();
    const sessionId = formatSessionId("office");
    const asked = async (userId: string, input: string) =>
      (await runtime.submit(lead, input, { sessionId, userId })).result();
    await asked("ann", "Ann's secret");
    await asked("bob", "What do you know?");
    await asked("ann", "And I?");
    const seen = model.calls.map(({ messages }) => messages.map(messageText));
    expect(seen).toEqual([
      ["Ann's secret"],
      ["What do you know?"],
      ["Ann's secret", "what Ann told me", "And I?"],
    ]);
    expect(keys()).toHaveLength(2);
    await runtime.close();
  });

  test("keeps nothing of a worker that is to remember nothing", async () => {
    const { provider, keys } = historyTable();
    const model = scriptedModel(["one", "two"]);
    const worker = new Agent({ name: "temp", model, history: provider });
    const lead = new OrchestratorAgent({
      name: "agency",
      model: scriptedModel(handsTo("temp", "temp")),
      subAgents: [{ agent: worker }],
    });
    const { sessionId } = await lead.invoke("first");
    await lead.invoke("second", { sessionId });
    expect(model.calls[1]?.messages.map(messageText)).toEqual(["for temp"]);
    expect(keys()).toEqual([]);
  });

  test("is another for each asker whose messages came in together", async () => {
    const { provider } = historyTable();
    const model = scriptedModel(["to one", "to two"]);
    const desk = new Agent({ name: "desk", model, history: provider });
    const caller: HostedAgent = {
      id: formatAgentId({ name: "caller" }),
      run: async (ctx) => {
        await ctx.send(desk.id, "from one");
        await ctx.send(desk.id, "from two");
      },
    };
    const runtime = await openRuntime();
    await (await runtime.submit(caller, null)).result();
    runtime.register(desk);
    await expect.poll(() => model.calls.length).toBe(2);
    expect(model.calls.map(({ messages }) => messages.map(messageText))).toEqual([
      ["from one"],
      ["from two"],
    ]);
    await runtime.close();
  });
});

describe("an agent", () => {
  test.for([
    { budget: { maxTokens: -1 } },
    { budget: { maxCostUsd: Number.NaN } },
    { spawnBudget: { maxAgents: 0 } },
  ])("B2: with %o is refused when it is made", (bounds) => {
    const make = () => new Agent({ name: "strict", model: scriptedModel([]), ...bounds });
    expect(make).toThrow(expect.objectContaining({ code: "invalid_argument" }));
  });

  test("is asked nothing at all: the refusal says what it takes, also where a schema is asked for", async () => {
    const agent = new Agent({ name: "strict", model: scriptedModel([]) });
    await expect(agent.invoke(null as never, { output: sized })).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining("invalid input of agent strict: expected a text"),
    });
  });
});

describe("an input", () => {
  const bad: readonly JsonValue[] = [
    { prompt: "x", output: "a number" },
    { prompt: "x", output: [] },
    { prompt: "x", instructions: { be: "bad" } },
    { prompt: "x", history: "long" },
    { prompt: "x", history: [1] },
    [{ type: "text" }],
    [{ type: "text", text: 5 }],
    [{ type: "image" }],
    [{ type: "image", mediaType: "image/png", source: { kind: "base64" } }],
    [],
  ];
  test.for(bad)("%j is refused before anything is paid", async (input) => {
    const model = scriptedModel(["never"]);
    const agent = new Agent({ name: "strict", model });
    await expect(agent.invoke(input as never)).rejects.toMatchObject({ code: "invalid_argument" });
    expect(model.calls).toHaveLength(0);
  });

  test("of an image alone has no empty text beside it", async () => {
    const model = scriptedModel(["red"]);
    await new Agent({ name: "eye", model }).invoke([image]);
    expect(model.calls[0]?.messages[0]?.content).toEqual([image]);
  });

  test("with an image may be said to a run that is under way", async () => {
    const model = scriptedModel(["What does it look like?", "red"]);
    const run = await new Agent({ name: "eye", model }).submit("Which colour?");
    await run.followUp([{ type: "text", text: "Like this" }, image]);
    await run.result();
    expect(model.calls[1]?.messages.at(-1)?.content).toEqual([{ type: "text", text: "Like this" }, image]);
  });
});

describe("an answer that is asked for again", () => {
  test("S1: leaves no call without a result, knows the tools, and is a turn like any other", async () => {
    const model = scriptedModel([looks, "big", looks, '{"size":3}', "as I said"]);
    const agent = new Agent({ name: "measurer", model, tools: [look] });
    const stream = agent.stream("How big?", { output: sized });
    const turns: string[] = [];
    for await (const { type } of stream) if (type === "turn_start" || type === "turn_end") turns.push(type);
    const { status, sessionId, turns: counted } = await stream.result();
    expect({ status, counted }).toEqual({ status: "completed", counted: 4 });
    expect(turns).toEqual(Array.from({ length: 4 }, () => ["turn_start", "turn_end"]).flat());
    expect(model.calls[2]).toMatchObject({ tools: [{ name: "look" }], toolChoice: "none" });
    await agent.invoke("Sure?", { sessionId });
    const said = model.calls[4]?.messages ?? [];
    const called = said.flatMap((message, index) =>
      message.role === "assistant" && toolCallsOf(message).length > 0 ? [said[index + 1]?.role] : [],
    );
    expect(called).toEqual(["tool", "tool"]);
  });

  test("one that only the schema's own rules refuse is a failed result, not a throw", async () => {
    const agent = new Agent({ name: "measurer", model: scriptedModel(['{"size":3}', '{"size":3}']) });
    const output = z.object({ size: z.number().refine((size) => size > 5, "too small") });
    const failed = { status: "failed", output: '{"size":3}', error: { code: "model_format_error" } };
    expect(await agent.invoke("How big?", { output })).toMatchObject(failed);
    expect(await agent.stream("How big?", { output }).result()).toMatchObject(failed);
  });
});

describe("an invocation that is tried again by a layer", () => {
  test("is shown its own conversation where a window trims it", async () => {
    const model = scriptedModel([looks, "too short", "long enough"]);
    const agent = new Agent({
      name: "writer",
      model,
      tools: [look],
      compaction: () => slidingWindow({ maxMessages: 10 }),
      middleware: [
        {
          agent: async (context, next) => {
            await next();
            if (context.result?.output === "too short") await next();
          },
        },
      ],
    });
    expect(await agent.invoke("Write")).toMatchObject({ output: "long enough" });
    expect(model.calls[2]?.messages.map(messageText)).toEqual(["Write"]);
  });
});

describe("an invocation that is stopped before its output was looked at", () => {
  test("gives none of it out", async () => {
    const agent = new Agent({
      name: "guarded",
      model: scriptedModel([{ text: "a draft", ...looks }, "never"]),
      tools: [look],
      budget: { maxTurns: 1 },
      guardrails: [{ name: "reader", onOutput: () => ({ decision: "allow" }) }],
    });
    const stream = agent.stream("Write");
    const given: string[] = [];
    for await (const event of stream) if (event.type === "agent_end") given.push(event.data.output);
    expect(await stream.result()).toMatchObject({ status: "budget_exhausted", output: "" });
    expect(given).toEqual([""]);
  });
});

describe("the default runtime", () => {
  test("refuses a team in which two have one name, rather than hire one for the other", async () => {
    const twin = (): Agent => new Agent({ name: "twin", model: scriptedModel([]) });
    // One of your own that hires others later.
    const late = { id: formatAgentId({ name: "late" }), subAgents: [] as Agent[], run: async () => null };
    const lead = new OrchestratorAgent({
      name: "twins",
      model: scriptedModel(handsTo("b")),
      subAgents: [{ agent: late }, { agent: twin() }],
    });
    late.subAgents.push(twin());
    await expect(lead.invoke("Go")).rejects.toMatchObject({
      code: "already_exists",
      message: expect.stringContaining("two agents of one run are both twin"),
    });
  });
});

describe("orders", () => {
  test("for a run of another agent are refused, rather than waited for", async () => {
    const runtime = await openRuntime();
    const owner = new Agent({ name: "owner", model: scriptedModel(["mine"]) });
    const other = new Agent({ name: "other", model: scriptedModel([]) });
    const { runId } = await owner.invoke("Go", { runtime });
    const refused = {
      code: "invalid_argument",
      message: `${runId} is a run of agent owner, not of other; call the method on that agent`,
    };
    await expect(other.resume(runId, { runtime })).rejects.toMatchObject(refused);
    await expect(other.signal(runId, "go", null, { runtime })).rejects.toMatchObject(refused);
    await runtime.close();
  });

  test.for([
    { maxUnchanged: 0 },
    { maxUnchanged: Number.NaN },
    { maxCostUsd: -1 },
    { maxCostUsd: Number.NaN },
  ])("runUntil refuses %o", async (bound) => {
    const model = scriptedModel(["never"]);
    const agent = new Agent({ name: "loop", model });
    await expect(agent.runUntil("Go", { until: () => true, ...bound })).rejects.toMatchObject({
      code: "invalid_argument",
    });
    expect(model.calls).toHaveLength(0);
  });
});

test("a budget that is null is none", async () => {
  const agent = new Agent({ name: "scout", model: scriptedModel(["done"]) });
  const options = { budget: null } as unknown as InvokeOptions;
  expect(await agent.invoke("?", options)).toMatchObject({ output: "done" });
});
