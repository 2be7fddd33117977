import { describe, expect, test } from "vitest";
import { z } from "zod";
import { Agent, ExecutionTracker, SpawnTracker, tool } from "../../../src/entries/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";

const model = scriptedModel([]);
const inputSchema = z.object({ city: z.string() });
const execute = (): string => "rain";

/** Creates parts as a caller without types does. */
function agentOf(options: object): Agent {
  return new Agent({ name: "eye", model, ...options });
}
function toolOf(options: object): unknown {
  return tool({ name: "weather", description: "The weather", ...options } as never);
}
function invoked(input: unknown, options?: object): Promise<unknown> {
  return agentOf({}).invoke(input as never, options);
}

/** A model of the AI SDK, as `openai("gpt-4o")` of an older package returns it. */
const oldModel = {
  specificationVersion: "v2",
  provider: "openai.chat",
  modelId: "gpt-4o",
  doGenerate: () => undefined,
  doStream: () => undefined,
};
const openai = Object.assign(() => oldModel, { languageModel: () => oldModel });
const text = { type: "text", text: "What is this?" };

const mistakes: readonly (readonly [mistake: string, attempt: () => unknown, message: string])[] = [
  [
    "a tool without `inputSchema`",
    () => toolOf({ execute }),
    "tool weather has no inputSchema; use a Standard Schema",
  ],
  [
    "a tool without `execute`",
    () => toolOf({ inputSchema }),
    "tool weather has no execute; add the function that executes a call",
  ],
  [
    "a tool whose `execute` is no function",
    () => toolOf({ inputSchema, execute: { run: execute } }),
    "invalid execute an object of tool weather: expected a function",
  ],
  [
    "a tool that was not created by tool() of reeve",
    () => agentOf({ tools: [{ description: "The weather", inputSchema, execute }] }),
    'it was not created by tool() of reeve; use tool({ name, description, inputSchema, execute }) imported from "reeve"',
  ],
  [
    "a tool of the AI SDK, which has no name",
    () => agentOf({ tools: [toolOf({ inputSchema, execute }), { inputSchema, execute }] }),
    'invalid tool 2 of the list: it was not created by tool() of reeve; use tool({ name, description, inputSchema, execute }) imported from "reeve", because a tool of the AI SDK has no name',
  ],
  [
    "a tool of the AI SDK without `execute`",
    () => agentOf({ tools: [{ description: "The weather", inputSchema }] }),
    "invalid tool 1 of the list: it has no method execute; use tool({ name, description, inputSchema, execute })",
  ],
  [
    "generate() of an agent",
    () => (agentOf({}) as never as { generate: () => unknown }).generate(),
    "agent eye has no method generate(); use agent.invoke(input)",
  ],
  [
    "execute() of an agent",
    () => (agentOf({}) as never as { execute: () => unknown }).execute(),
    "agent eye has no method execute(); use agent.invoke(input)",
  ],
  [
    "an agent as a tool",
    () => agentOf({ tools: [agentOf({})] }),
    "invalid tool eye: it is an agent; use subAgents: [agent], or tools: [agent.asTool()]",
  ],
  [
    "streamText() of an agent",
    () => (agentOf({}) as never as { streamText: () => unknown }).streamText(),
    "agent eye has no method streamText(); use agent.stream(input)",
  ],
  [
    "an agent as a model",
    () => agentOf({ model: agentOf({}) }),
    "invalid model of type object: expected a model of an AI SDK provider",
  ],
  [
    "a number as the budget of a SpawnTracker",
    () => new SpawnTracker(50 as never),
    "invalid budget 50 of SpawnTracker: expected an object, or the context of a run; use new SpawnTracker({ maxAgents: 50 })",
  ],
  [
    "a number as the budget of an ExecutionTracker",
    () => new ExecutionTracker(4_000 as never),
    "invalid budget 4000 of ExecutionTracker: expected an object, or the context of a run; use new ExecutionTracker({ maxTokens: 4000 })",
  ],
  [
    "a list of texts as the instructions of an agent",
    () => agentOf({ instructions: ["Be brief."] }),
    "invalid instructions of agent eye: expected a text, a function, or an object with build(), not an array",
  ],
  [
    "tools keyed by name",
    () => agentOf({ tools: { weather: toolOf({ inputSchema, execute }) } }),
    "invalid tools of agent eye: expected a list of tools, not an object",
  ],
  [
    "a model of an older specification",
    () => agentOf({ model: oldModel }),
    "invalid model openai.chat/gpt-4o: an AI SDK model of specification v2 is not supported; update the package",
  ],
  [
    "a provider instead of a model",
    () => agentOf({ model: openai }),
    "a provider is not a model; call it with the id of a model",
  ],
  [
    "`messages` in the input of invoke()",
    () => invoked({ messages: [{ role: "user", content: "Hello" }] }),
    'invalid input of agent eye: "messages" is no part of an input; pass the list itself: agent.invoke(messages)',
  ],
  [
    "`system` in the input of invoke()",
    () => invoked({ system: "Be brief.", prompt: "Hello" }),
    'invalid input of agent eye: "system" is no part of an input; use `instructions` of the agent',
  ],
  [
    "an image part of OpenAI",
    () => invoked([text, { type: "image_url", image_url: { url: "https://a.example/b.png" } }]),
    'agent eye: part 2 ({ type: "image_url" }) is not supported; use { type: "image", ',
  ],
  [
    "an image part of the AI SDK",
    () => invoked({ prompt: [{ type: "image", image: "https://a.example/b.png" }] }),
    'agent eye: part 1 ({ type: "image" }) is incomplete; use { type: "image", mediaType, source: ',
  ],
];

describe("a habit from the AI SDK or another library is refused, and the message names what to use", () => {
  test.each(mistakes)(
    "a habit from another library is refused with what to use: %s",
    async (_mistake, attempt, message) => {
      await expect((async () => attempt())()).rejects.toMatchObject({
        message: expect.stringContaining(message) as unknown,
      });
    },
  );

  test.each([
    ["abortSignal", "signal"],
    ["toolCallId", "callId"],
  ])(
    "a tool body that reads %s from its context fails with a message that names %s",
    async (wrong, right) => {
      const weather = tool({
        name: "weather",
        description: "The weather",
        inputSchema,
        execute: (_input, context) => String(Reflect.get(context, wrong)),
      });
      const script = scriptedModel([{ toolCalls: [{ name: "weather", input: { city: "Sens" } }] }, "Done."]);
      await new Agent({ name: "eye", model: script, tools: [weather] }).invoke("Rain?");
      expect(JSON.stringify(script.calls[1]?.messages.at(-1))).toContain(
        `the second argument of execute has no ${wrong}; use ${right}`,
      );
    },
  );
});
