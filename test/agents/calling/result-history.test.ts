import { describe, expect, test } from "vitest";
import { z } from "zod";
import { router } from "../../../src/agents/architectures/index.ts";
import { Agent, openRuntime, tool } from "../../../src/entries/index.ts";
import { messageText, type ChatMessage, type RunHandle } from "../../../src/kernel/index.ts";
import { scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { removeStoresAfterEach, twoStores } from "../../runtime/two-stores.ts";

removeStoresAfterEach();

const add = tool({
  name: "add",
  description: "Adds two numbers.",
  inputSchema: {
    type: "object",
    properties: { a: { type: "number" }, b: { type: "number" } },
    required: ["a", "b"],
  } as const,
  execute: async ({ a, b }) => {
    if (a < 0) throw new Error("a is negative");
    return String(a + b);
  },
});

function adds(...inputs: { a: number; b: number }[]): ScriptStep {
  return {
    text: "I add.",
    reasoning: "Numbers.",
    toolCalls: inputs.map((input) => ({ name: "add", input, callId: "same" })),
  };
}

function adder(script: readonly ScriptStep[]): Agent {
  return new Agent({ name: "adder", model: scriptedModel(script), tools: [add] });
}

const said = (messages: readonly ChatMessage[]) =>
  messages.map((message) => `${message.role}: ${messageText(message)}`);

describe("the result of a run", () => {
  test.each(twoStores)(
    "the result of a run has the messages, steps, tool calls and reasoning of the run, also after its runtime is closed (%s)",
    async (_name, prepare) => {
      const runtime = await openRuntime({ store: await (await prepare())() });
      const script = [adds({ a: 1, b: 2 }, { a: -1, b: 0 }), adds({ a: 5, b: 5 }), "It is 10."];
      const result = await adder(script).invoke("Add.", { runtime });
      await runtime.close();
      expect(said(result.messages)).toEqual([
        "assistant: I add.",
        "tool: ",
        "assistant: I add.",
        "tool: ",
        "assistant: It is 10.",
      ]);
      // The server repeats its call ids, so results are matched in order.
      expect(result.toolCalls).toMatchObject([
        { input: { a: 1, b: 2 }, status: "ok", output: { type: "text", text: "3" } },
        { input: { a: -1, b: 0 }, status: "error" },
        { input: { a: 5, b: 5 }, status: "ok", output: { type: "text", text: "10" } },
      ]);
      expect(
        result.steps.map(({ text, toolCalls, stopReason }) => [text, toolCalls.length, stopReason]),
      ).toEqual([
        ["I add.", 2, "tool_calls"],
        ["I add.", 1, "tool_calls"],
        ["It is 10.", 0, "stop"],
      ]);
      expect(result.steps[0]).toMatchObject({
        taskId: "t0",
        agentId: "adder",
        role: "main",
        model: { provider: "scripted" },
      });
      const tokens = result.steps.map(({ usage }) => usage?.inputTokens ?? 0);
      expect(tokens.reduce((sum, each) => sum + each, 0)).toBe(result.usage.inputTokens);
      expect(result.reasoning).toBe("Numbers.\n\nNumbers.");
      expect(result.files).toEqual([]);
      expect(result.pendingApprovals).toEqual([]);
    },
  );

  test.each(twoStores)(
    "the result of a run has the same messages in a process that reads it later (%s)",
    async (_name, prepare) => {
      const open = await prepare();
      const first = await openRuntime({ store: await open() });
      const { runId, messages, toolCalls } = await adder([adds({ a: 1, b: 2 }), "3."]).invoke("Add.", {
        runtime: first,
      });
      expect(messages).toHaveLength(3);
      await first.close();
      const second = await openRuntime({ store: await open() });
      const again = await (await second.find(runId))?.result();
      expect(again?.messages).toEqual(messages);
      expect(again?.toolCalls).toEqual(toolCalls);
      await second.close();
    },
  );

  test.each(twoStores)(
    "the result of a run has the user messages that were added during the run, as the session has them (%s)",
    async (_name, prepare) => {
      const open = await prepare();
      const first = await openRuntime({ store: await open() });
      let run: RunHandle | undefined;
      const steering = tool({
        name: "add",
        description: "Adds.",
        inputSchema: { type: "object" },
        execute: async () => {
          await run?.steer("In French.");
          await run?.followUp("And in German?");
          return "3";
        },
      });
      const model = scriptedModel([adds({ a: 1, b: 2 }), "Trois.", "Drei.", "3", "Yes.", "1"]);
      const agent = new Agent({
        name: "adder",
        model,
        tools: [steering],
        stopHooks: [
          {
            name: "digits",
            shouldContinue: ({ continued }) => (continued === 0 ? "As a digit." : undefined),
          },
        ],
      });
      run = await first.submit(agent, "Add.", { runId: "run_add" });
      const { messages, sessionId } = await run.result();
      expect(said(messages)).toEqual([
        "assistant: I add.",
        "tool: ",
        "user: In French.",
        "assistant: Trois.",
        "user: And in German?",
        "assistant: Drei.",
        "user: As a digit.",
        "assistant: 3",
      ]);
      await first.close();
      await using second = await openRuntime({ store: await open() });
      expect((await (await second.find("run_add"))?.result())?.messages).toEqual(messages);
      await agent.invoke("Sure?", { runtime: second, sessionId });
      expect(said(model.calls[4]?.messages ?? [])).toEqual(["user: Add.", ...said(messages), "user: Sure?"]);
    },
  );

  test("the result of a run has the request with which the model was asked to repair an answer", async () => {
    const agent = new Agent({ name: "adder", model: scriptedModel(["four", "4"]) });
    const { messages } = await agent.invoke("2 + 2?", { output: z.number() });
    expect(messages.map(({ role }) => role)).toEqual(["assistant", "user", "assistant"]);
  });

  test("the messages of a result continue the conversation without a session", async () => {
    const model = scriptedModel([adds({ a: 1, b: 2 }), "3.", "Yes."]);
    const agent = new Agent({ name: "adder", model, tools: [add] });
    const { messages } = await agent.invoke("Add 1 and 2.");
    const asked = { role: "user", content: [{ type: "text", text: "Sure?" }] } as const;
    const { output } = await agent.invoke([...messages, asked]);
    expect(output).toBe("Yes.");
    expect(model.calls[2]?.messages.map(({ role }) => role)).toEqual([
      "assistant",
      "tool",
      "assistant",
      "user",
    ]);
  });

  test("the result of a run of router() has the messages of the chosen agent, and none of other children", async () => {
    const clerk = new Agent({
      name: "clerk",
      description: "Adds.",
      model: scriptedModel([adds({ a: 3, b: 4 }), "It was 7."]),
      tools: [add],
    });
    const guide = new Agent({ name: "guide", description: "Guides.", model: scriptedModel([]) });
    const desk = new Agent({
      name: "desk",
      model: scriptedModel(["route: billing"]),
      architecture: router({ routes: { billing: clerk, travel: guide } }),
    });
    const result = await desk.invoke("What did I pay?");
    expect(said(result.messages)).toEqual(["assistant: I add.", "tool: ", "assistant: It was 7."]);
    expect(result.steps.map(({ agentId, role }) => [agentId, role])).toEqual([
      ["desk", "classifier"],
      ["clerk", "main"],
      ["clerk", "main"],
    ]);
    expect(result.toolCalls).toHaveLength(1);
  });

  test("the result of a run has the files that the model made", async () => {
    const file = { type: "file", mediaType: "image/png", source: { kind: "base64", data: "AA==" } } as const;
    const usage = {
      inputTokens: 1,
      outputTokens: 1,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
      reasoningTokens: 0,
    };
    const response = {
      message: { role: "assistant", content: [file, { type: "text", text: "Done." }] },
      stopReason: "stop",
      usage,
    } as const;
    const painter = new Agent({
      name: "painter",
      model: {
        provider: "p",
        modelId: "m",
        generate: async () => response,
        stream: async function* stream() {
          yield { type: "finish", ...response };
        },
      },
    });
    const { files, output } = await painter.invoke("Paint.");
    expect(files).toEqual([file]);
    expect(output).toBe("Done.");
  });

  test("the result of a run marks a tool call without a result as open if the run stopped before it ended", async () => {
    const started = Promise.withResolvers<void>();
    const hang = tool({
      name: "hang",
      description: "Hangs.",
      inputSchema: { type: "object" },
      execute: (_input, { signal }) => {
        started.resolve();
        return new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(new Error("stopped")));
        });
      },
    });
    const agent = new Agent({
      name: "hanger",
      model: scriptedModel([{ toolCalls: [{ name: "hang", input: {} }] }]),
      tools: [hang],
    });
    const stop = new AbortController();
    const end = agent.invoke("Go.", { signal: stop.signal });
    await started.promise;
    stop.abort();
    const { status, toolCalls } = await end;
    expect(status).toBe("cancelled");
    expect(toolCalls).toMatchObject([{ toolName: "hang" }]);
    expect(["open", "error"]).toContain(toolCalls[0]?.status);
  });

  test("the result of a run is JSON with all its fields, and a copy of it keeps them", async () => {
    const result = await adder(["4."]).invoke("?");
    expect(JSON.parse(JSON.stringify(result))).toMatchObject({
      messages: [{ role: "assistant" }],
      toolCalls: [],
    });
    expect({ ...result }.messages).toEqual(result.messages);
  });
});
