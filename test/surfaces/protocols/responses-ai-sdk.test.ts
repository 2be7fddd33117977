import { createOpenAI } from "@ai-sdk/openai";
import { generateText, jsonSchema, stepCountIs, streamText, tool, type ModelMessage } from "ai";
import { afterAll, beforeAll, expect, it } from "vitest";
import { echoModel, helperModel, OpenAiWorld } from "./test-openai.ts";

let world: OpenAiWorld;
let reeve: ReturnType<typeof createOpenAI>;
beforeAll(async () => {
  world = await OpenAiWorld.open();
  const apiKey = await world.server.tokenOf("acme", "run", "ann");
  reeve = createOpenAI({ baseURL: `${world.server.url}/v1`, apiKey });
});
afterAll(() => world.server.close());

const cities: unknown[] = [];
const tools = {
  weather: tool({
    description: "Returns the weather of a city.",
    inputSchema: jsonSchema({ type: "object", properties: { city: { type: "string" } }, required: ["city"] }),
    execute: (input) => {
      cities.push(input);
      return "rain";
    },
  }),
};

it("generateText of the AI SDK executes its tool for an agent, and the run continues with the result", async () => {
  cities.splice(0);
  const runs = (await world.runsOf("helper")).length;
  const { text, steps } = await generateText({
    model: reeve("helper"),
    prompt: "Weather?",
    tools,
    stopWhen: stepCountIs(3),
  });
  expect([text, steps.length, cities]).toEqual(["It is rain.", 2, [{ city: "Blois" }]]);
  expect((await world.runsOf("helper")).length).toBe(runs + 1);
});

it("streamText of the AI SDK streams the steps of an agent, with reasoning", async () => {
  const result = streamText({ model: reeve("helper"), prompt: "Weather?", tools, stopWhen: stepCountIs(3) });
  let text = "";
  for await (const piece of result.textStream) text += piece;
  expect(text).toBe("I ask.It is rain.");
  const thought = await generateText({ model: reeve("thinker"), prompt: "Why?" });
  expect([thought.reasoningText, thought.text]).toEqual(["I think.", "Because."]);
});

it("a conversation of the AI SDK sends references to items of the server, which the agent sees as messages", async () => {
  const messages: ModelMessage[] = [{ role: "user", content: "One" }];
  const first = await generateText({ model: reeve("echo"), messages });
  messages.push(...first.response.messages, { role: "user", content: "Two" });
  const second = await generateText({ model: reeve("echo"), messages });
  expect(second.text).toBe("You said Two.");
  expect(
    echoModel.calls.at(-1)?.messages.map(({ role, content }) => [role, JSON.stringify(content)]),
  ).toEqual([
    ["system", expect.any(String)],
    ["user", expect.stringContaining("One")],
    ["assistant", expect.stringContaining("You said One.")],
    ["user", expect.stringContaining("Two")],
  ]);
});

it("chat completions of the AI SDK execute a tool as well", async () => {
  cities.splice(0);
  const { text } = await generateText({
    model: reeve.chat("helper"),
    prompt: "Weather?",
    tools,
    stopWhen: stepCountIs(3),
  });
  expect([text, cities.length]).toEqual(["It is rain.", 1]);
  expect(helperModel.calls.at(-1)?.messages.at(-1)).toMatchObject({ role: "tool" });
});
