import { describe, expect, test } from "vitest";
import { react, router, selfRefine } from "../../../src/agents/architectures/index.ts";
import { Agent, openRuntime, Sequential, tool, type Architecture } from "../../../src/entries/index.ts";
import {
  messageText,
  Transcript,
  userMessage,
  type HostedAgent,
  type RunContext,
} from "../../../src/kernel/index.ts";
import { scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { agent as hosted, readAll } from "../../runtime/runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../../runtime/two-stores.ts";

removeStoresAfterEach();

const cut: ScriptStep = { text: "Half an", stopReason: "length" };

function lookup(executed: unknown[]) {
  return tool({
    name: "lookup",
    description: "Looks up a town",
    inputSchema: { type: "object" },
    execute: (input: unknown) => {
      executed.push(input);
      return "found";
    },
  });
}

describe.each(twoStores)("finishReason on the %s store", (_name, prepare) => {
  test("a run whose answer was cut ends as max_output, also for a second runtime on the store, and list() finds it", async () => {
    const open = await prepare();
    const agent = new Agent({ name: "clerk", model: scriptedModel([cut]) });
    const first = await openRuntime({ store: await open(), unknownPrice: "ignore" });
    const { runId } = await first.submit(agent, "Go.");
    await (await first.find(runId))?.result();
    await first.close();
    const second = await openRuntime({ store: await open(), unknownPrice: "ignore" });
    const run = await second.find(runId);
    const end = { status: "max_output", finishReason: "length", output: "Half an", error: null };
    expect(await run?.result()).toMatchObject(end);
    const { runs } = await second.list({ status: "max_output" });
    expect(runs.map((each) => each.runId)).toEqual([runId]);
    await second.close();
  });

  test("S1: tool calls of a cut reply are not executed, and the next run of the session sees the reason", async () => {
    const executed: unknown[] = [];
    const call = { name: "lookup", input: '{"town":"To', callId: "c1" };
    const model = scriptedModel([{ text: "Looking.", toolCalls: [call], stopReason: "length" }, "Done."]);
    const agent = new Agent({ name: "clerk", model, tools: [lookup(executed)] });
    const store = await (await prepare())();
    const runtime = await openRuntime({ store, unknownPrice: "ignore" });
    const run = await runtime.submit(agent, "Go.");
    const { status, finishReason, sessionId } = await run.result();
    expect({ status, finishReason, executed }).toEqual({
      status: "max_output",
      finishReason: "length",
      executed: [],
    });
    expect((await readAll(store, run.runId)).map(({ type }) => type)).not.toContain("tool_execution_start");
    await (await runtime.submit(agent, "Go on.", { sessionId })).result();
    expect(JSON.stringify(model.calls[1]?.messages)).toContain(
      "[not executed: the reply was cut at the output limit]",
    );
    await runtime.close();
  });

  test("an answer that the provider withholds fails the run with model_content_blocked, and resume() asks again", async () => {
    const blocked: ScriptStep = { text: "I can", stopReason: "content_blocked" };
    const agent = new Agent({ name: "clerk", model: scriptedModel([blocked, "Gladly."]) });
    const runtime = await openRuntime({ store: await (await prepare())(), unknownPrice: "ignore" });
    const run = await runtime.submit(agent, "Go.");
    expect(await run.result()).toMatchObject({
      status: "failed",
      finishReason: "content_blocked",
      output: "I can",
      error: { code: "model_content_blocked" },
    });
    await run.resume();
    expect(await run.result()).toMatchObject({
      status: "completed",
      finishReason: "stop",
      output: "Gladly.",
      error: null,
    });
    await runtime.close();
  });
});

async function resultOf(agent: Agent | HostedAgent, input: Parameters<Agent["invoke"]>[0] = "Go.") {
  const runtime = await openRuntime({ unknownPrice: "ignore" });
  const result = await (await runtime.submit(agent, input as string)).result();
  await runtime.close();
  return result;
}

test("finishReason is null for a run without a model call", async () => {
  expect(await resultOf(hosted("clock", async () => "noon"))).toMatchObject({
    status: "completed",
    finishReason: null,
  });
});

test("finishReason of a custom agent is the reason of its last model call", async () => {
  const model = scriptedModel(["whole", { text: "part", stopReason: "length" }]);
  const request = { transcript: Transcript.of([userMessage("hello")]) };
  const code = async (ctx: RunContext) => {
    await ctx.llm(request);
    return (await ctx.llm(request)).stopReason;
  };
  const result = await resultOf(hosted("asker", code, { models: { main: model } }));
  expect(result).toMatchObject({ status: "completed", output: "length", finishReason: "length" });
});

test.each(["generate", "stream"] as const)(
  "a run ends as max_output if an answer was cut in deps.model.%s() of a custom architecture",
  async (method) => {
    const architecture: Architecture = {
      name: "single",
      declaredWorkers: () => ({}),
      async *run(session, { model }, prompt) {
        const request = { messages: [userMessage(prompt)] };
        if (method === "generate") session.output = messageText((await model.generate(request)).message);
        else
          for await (const part of model.stream(request))
            if (part.type === "text_delta") session.output += part.text;
        yield* [];
      },
    };
    const result = await resultOf(new Agent({ name: "asker", model: scriptedModel([cut]), architecture }));
    expect(result).toMatchObject({ status: "max_output", output: "Half an", finishReason: "length" });
  },
);

test("finishReason of treeOfThoughts() without any thoughts is that of the cut reply, not stop", async () => {
  const agent = new Agent({ name: "thinker", model: scriptedModel([cut]), architecture: "tree-of-thoughts" });
  expect(await resultOf(agent)).toMatchObject({ status: "failed", output: "", finishReason: "length" });
});

test("finishReason is tool_calls if a tool ends the run", async () => {
  const stop = tool({
    name: "stop",
    description: "Ends the run",
    inputSchema: { type: "object" },
    execute: () => ({
      output: { type: "text", text: "over" } as const,
      isError: false,
      terminate: "always" as const,
    }),
  });
  const model = scriptedModel([{ toolCalls: [{ name: "stop", input: {} }] }]);
  expect(await resultOf(new Agent({ name: "clerk", model, tools: [stop] }))).toMatchObject({
    finishReason: "tool_calls",
  });
});

test("selfRefine() ends as max_output if a refined version was cut, although the critique after it was not", async () => {
  const model = scriptedModel(["A draft.", "Shorter.", cut, "No issues."]);
  const result = await resultOf(new Agent({ name: "writer", model, architecture: selfRefine(react()) }));
  expect(result).toMatchObject({ status: "max_output", finishReason: "length", output: "Half an" });
});

test("a run is completed if only the critique of its answer was cut", async () => {
  const model = scriptedModel(["A draft.", { text: "No issues, but", stopReason: "length" }]);
  const result = await resultOf(new Agent({ name: "writer", model, architecture: selfRefine(react()) }));
  expect(result).toMatchObject({ status: "completed", finishReason: "stop", output: "A draft." });
});

test("a team ends with max_output if the answer of its worker was cut", async () => {
  const clerk = new Agent({ name: "clerk", description: "Answers", model: scriptedModel([cut]) });
  const team = new Agent({
    name: "desk",
    model: scriptedModel(["clerk"]),
    architecture: router({ routes: { clerk } }),
  });
  expect(await resultOf(team)).toMatchObject({
    status: "max_output",
    finishReason: "length",
    output: "Half an",
  });
});

test("finishReason of a flow is that of its last step", async () => {
  const steps = ["first", "second"].map((name) => new Agent({ name, model: scriptedModel([`${name}.`]) }));
  expect(await resultOf(new Sequential({ name: "line", steps }))).toMatchObject({
    status: "completed",
    finishReason: "stop",
  });
});

test("a run ends as max_output if its structured answer was cut, and the model is not asked again", async () => {
  const model = scriptedModel([{ text: '{"town":"To', stopReason: "length" }]);
  const schema = { type: "object", properties: { town: { type: "string" } }, required: ["town"] } as const;
  const result = await resultOf(new Agent({ name: "clerk", model }), { prompt: "Go.", output: schema });
  expect(result).toMatchObject({ status: "max_output", finishReason: "length", output: '{"town":"To' });
  expect(model.calls).toHaveLength(1);
});

test("a run ends as max_output if its corrected structured answer was cut, and the model is not asked a third time", async () => {
  const model = scriptedModel(["Tours", { text: '{"town":"To', stopReason: "length" }]);
  const schema = { type: "object", properties: { town: { type: "string" } }, required: ["town"] } as const;
  const result = await resultOf(new Agent({ name: "clerk", model }), { prompt: "Go.", output: schema });
  expect(result).toMatchObject({ status: "max_output", finishReason: "length" });
  expect(model.calls).toHaveLength(2);
});

test("if the provider pauses the reply of a supporting role, the model continues from the paused message", async () => {
  const model = scriptedModel(["A draft.", { text: "No ", stopReason: "pause" }, "issues."]);
  const result = await resultOf(new Agent({ name: "writer", model, architecture: selfRefine(react()) }));
  expect(result).toMatchObject({ status: "completed", output: "A draft.", finishReason: "stop" });
  expect(model.calls[2]?.messages.at(-1)).toMatchObject({ role: "assistant" });
});
