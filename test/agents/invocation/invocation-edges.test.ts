import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  Agent,
  openRuntime,
  OrchestratorAgent,
  slidingWindow,
  tool,
  type InvokeOptions,
} from "../../../src/entries/index.ts";
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
} from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";

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

/** Returns a history provider that stores messages in a map, and the keys of that map. */
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

describe("a custom history provider", () => {
  test("a history provider keeps the histories of different users of a sub-agent apart", async () => {
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

  test("a history provider stores nothing for a sub-agent without retention", async () => {
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

  test("a history provider keeps messages that arrive together from one sender apart", async () => {
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

describe("validation of an agent", () => {
  test.for([
    { budget: { maxTokens: -1 } },
    { budget: { maxCostUsd: Number.NaN } },
    { spawnBudget: { maxAgents: 0 } },
  ])("B2: an agent with %o is refused at construction", (bounds) => {
    const make = () => new Agent({ name: "strict", model: scriptedModel([]), ...bounds });
    expect(make).toThrow(expect.objectContaining({ code: "invalid_argument" }));
  });

  test("invoke() without an input is refused, and the error names the accepted forms, also with a schema", async () => {
    const agent = new Agent({ name: "strict", model: scriptedModel([]) });
    await expect(agent.invoke(null as never, { output: sized })).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining("invalid input of agent strict: expected a text"),
    });
  });
});

describe("inputs of an agent", () => {
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
  test.for(bad)("the input %j of an agent is refused before any model call", async (input) => {
    const model = scriptedModel(["never"]);
    const agent = new Agent({ name: "strict", model });
    await expect(agent.invoke(input as never)).rejects.toMatchObject({ code: "invalid_argument" });
    expect(model.calls).toHaveLength(0);
  });

  test("an input with only an image gets no empty text part", async () => {
    const model = scriptedModel(["red"]);
    await new Agent({ name: "eye", model }).invoke([image]);
    expect(model.calls[0]?.messages[0]?.content).toEqual([image]);
  });

  test("followUp() accepts an image for a running run", async () => {
    const model = scriptedModel(["What does it look like?", "red"]);
    const run = await new Agent({ name: "eye", model }).submit("Which colour?");
    await run.followUp([{ type: "text", text: "Like this" }, image]);
    await run.result();
    expect(model.calls[1]?.messages.at(-1)?.content).toEqual([{ type: "text", text: "Like this" }, image]);
  });
});

describe("repair of structured output", () => {
  test("S1: a repair request answers open tool calls, offers the tools and counts as a turn", async () => {
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

  test("an answer that only a refinement of the schema rejects is a failed result and not a thrown error", async () => {
    const agent = new Agent({ name: "measurer", model: scriptedModel(['{"size":3}', '{"size":3}']) });
    const output = z.object({ size: z.number().refine((size) => size > 5, "too small") });
    const failed = { status: "failed", output: '{"size":3}', error: { code: "model_format_error" } };
    expect(await agent.invoke("How big?", { output })).toMatchObject(failed);
    expect(await agent.stream("How big?", { output }).result()).toMatchObject(failed);
  });
});

describe("middleware that repeats an invocation", () => {
  test("a second call of next() in middleware sends the model only the input, also with compaction", async () => {
    const model = scriptedModel([looks, "too short", "long enough"]);
    const agent = new Agent({
      name: "writer",
      model,
      tools: [look],
      compaction: { strategy: () => slidingWindow({ maxMessages: 10 }) },
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

describe("interruption before an output guardrail", () => {
  test("an interrupted invocation returns no output that a guardrail has not checked", async () => {
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
  test("invoke() refuses a team in which two agents have the same name", async () => {
    const twin = (): Agent => new Agent({ name: "twin", model: scriptedModel([]) });
    // An agent of the application that adds sub-agents after construction.
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

describe("methods that address a run", () => {
  test("resume() and signal() refuse a run of another agent", async () => {
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
  ])("runUntil() refuses %o", async (bound) => {
    const model = scriptedModel(["never"]);
    const agent = new Agent({ name: "loop", model });
    await expect(agent.runUntil("Go", { until: () => true, ...bound })).rejects.toMatchObject({
      code: "invalid_argument",
    });
    expect(model.calls).toHaveLength(0);
  });
});

test("budget: null of an agent means that it has no budget", async () => {
  const options = { name: "scout", model: scriptedModel(["done"]), budget: null };
  const agent = new Agent(options as unknown as ConstructorParameters<typeof Agent>[0]);
  expect(await agent.invoke("?")).toMatchObject({ output: "done" });
});

test("budget: null of a call means that the run has no budget", async () => {
  const agent = new Agent({ name: "scout", model: scriptedModel(["done"]) });
  const options = { budget: null } as unknown as InvokeOptions;
  expect(await agent.invoke("?", options)).toMatchObject({ output: "done" });
});
