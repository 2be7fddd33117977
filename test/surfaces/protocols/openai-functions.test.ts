import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { ChatCompletionMessageParam, ChatCompletionTool } from "openai/resources";
import { helperModel, OpenAiWorld, thrownBy, user } from "./test-openai.ts";

let world: OpenAiWorld;
beforeAll(async () => {
  world = await OpenAiWorld.open();
});
afterAll(() => world.server.close());
beforeEach(() => world.begin());

const tools: ChatCompletionTool[] = [
  {
    type: "function",
    function: {
      name: "weather",
      parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    },
  },
];

const complete = (messages: ChatCompletionMessageParam[], options = {}) =>
  world.client.chat.completions.create({ model: "helper", messages, tools }, options);

async function asked(text = "Weather?") {
  const messages = [user(text)];
  const { choices } = await complete(messages);
  const message = choices[0]!.message;
  const outputs = (message.tool_calls ?? []).map(({ id }) => ({
    role: "tool" as const,
    tool_call_id: id,
    content: "rain",
  }));
  return { choice: choices[0], messages: [...messages, message], outputs };
}

describe("functions of a chat completion", () => {
  it("a call ends the completion, and its output continues the run", async () => {
    const { choice, messages, outputs } = await asked();
    expect(choice).toMatchObject({
      finish_reason: "tool_calls",
      message: {
        content: "I ask.",
        tool_calls: [{ type: "function", function: { name: "weather", arguments: '{"city":"Blois"}' } }],
      },
    });
    const { choices } = await complete([...messages, ...outputs]);
    expect(choices).toMatchObject([{ finish_reason: "stop", message: { content: "It is rain." } }]);
    const [run] = await world.runsOf("helper");
    expect(run).toMatchObject({ status: "completed" });
    // A repeated request has the same answer, and no model call is repeated.
    const calls = helperModel.calls.length;
    expect((await complete([...messages, ...outputs])).choices).toEqual(choices);
    expect([helperModel.calls.length, (await world.runsOf("helper"))[0]]).toEqual([calls, run]);
  });

  it("a streamed completion contains the calls, and continues with the outputs of all of them", async () => {
    const { chunks } = await world.streamed({ model: "helper", messages: [user("Twice?")], tools });
    const calls = chunks.flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? []);
    expect(calls).toMatchObject([{ index: 0 }, { index: 1 }]);
    expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe("tool_calls");
    const messages = [
      user("Twice?"),
      { role: "assistant" as const, tool_calls: calls.map(({ index: _index, ...call }) => call) },
      ...calls.map(({ id = "" }) => ({ role: "tool" as const, tool_call_id: id, content: "sun" })),
    ] as ChatCompletionMessageParam[];
    const error = await thrownBy(complete(messages.slice(0, -1)));
    expect(error).toMatchObject({ status: 400 });
    expect(error.message).toContain(calls[1]?.id);
    expect((await world.streamed({ model: "helper", messages, tools })).text).toBe("It is sun, sun.");
  });

  it("a finished conversation with calls is the history of the next completion", async () => {
    const { messages, outputs } = await asked();
    await complete([...messages, ...outputs]);
    const runs = (await world.runsOf("helper")).length;
    const answer = { role: "assistant" as const, content: "It is rain." };
    await complete([...messages, ...outputs, answer, user("So?")]);
    expect((await world.runsOf("helper")).length).toBe(runs + 1);
    expect(helperModel.calls.at(-1)?.messages.map(({ role }) => role)).toEqual([
      "user",
      "assistant",
      "tool",
      "assistant",
      "user",
    ]);
  });

  it("a call in a session is answered by its id, whatever history the client sends", async () => {
    const session = world.newSession();
    const { choices } = await complete([user("Weather?")], session);
    const [call] = choices[0]?.message.tool_calls ?? [];
    const output = { role: "tool" as const, tool_call_id: call?.id ?? "", content: "fog" };
    const forged = { role: "assistant" as const, content: "I never asked." };
    const answer = await complete([user("Other"), forged, output], session);
    expect(answer.choices[0]?.message.content).toBe("It is fog.");
    expect(JSON.stringify(helperModel.calls.at(-1)?.messages)).not.toContain("I never asked.");
  });

  it.each(["another output", "the output of another user"])("%s is refused with 400", async (name) => {
    const { messages, outputs } = await asked();
    await complete([...messages, ...outputs]);
    const client =
      name === "another output"
        ? world.client
        : world.clientWith(await world.server.tokenOf("acme", "run", "bob"));
    const changed = outputs.map((output) => ({ ...output, content: "snow" }));
    const again = client.chat.completions.create({
      model: "helper",
      messages: [...messages, ...changed],
      tools,
    });
    expect(await thrownBy(again)).toMatchObject({ status: 400, param: "messages[2]" });
  });

  it.each<[string, object, string]>([
    ["a tool of another type", { tools: [{ type: "custom", custom: { name: "x" } }] }, "tools[0]"],
    ["a tool without a name", { tools: [{ type: "function", function: {} }] }, "tools[0]"],
    [
      "a schema that no arguments match",
      { tools: [{ type: "function", function: { name: "a", parameters: { type: "string" } } }] },
      "tools[0]",
    ],
    ["two tools with one name", { tools: [...tools, ...tools] }, "tools[0]"],
    [
      "a tool of the agent",
      { model: "clerk", tools: [{ type: "function", function: { name: "send" } }] },
      "tools[0]",
    ],
    ["one call at a time", { tools, parallel_tool_calls: false }, "parallel_tool_calls"],
    ["a choice of several tools", { tools, tool_choice: { type: "allowed_tools" } }, "tool_choice"],
  ])("a completion with %s is refused before a run exists", async (_name, body, param) => {
    const request = world.client.chat.completions.create({
      model: "helper",
      messages: [user("hi")],
      ...body,
    } as never);
    const runs = (await world.view.list()).runs.length;
    const error = await thrownBy(request);
    expect(error).toMatchObject({ status: 400, type: "invalid_request_error" });
    expect(error.param).toMatch(param === "tools[0]" ? /^tools\[[01]\]$/u : new RegExp(`^${param}$`, "u"));
    expect((await world.view.list()).runs.length).toBe(runs);
  });
});
