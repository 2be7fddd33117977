import { describe, expect, test } from "vitest";
import {
  Agent,
  HistoryRetention,
  openRuntime,
  tool,
  type HistoryProvider,
  type InputMessage,
} from "../../../src/entries/index.ts";
import { messageText, type ChatMessage, type Model, type ModelRequest } from "../../../src/kernel/index.ts";
import { scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { removeStoresAfterEach, twoStores } from "../../runtime/two-stores.ts";
import { scout } from "../scout.ts";

removeStoresAfterEach();

const call = { type: "tool_call", callId: "c1", toolName: "look", input: { town: "Sens" } } as const;
const result = {
  type: "tool_result",
  callId: "c1",
  toolName: "look",
  output: { type: "text", text: "rain" },
  isError: false,
} as const;
const conversation: readonly InputMessage[] = [
  { role: "user", content: "Weather in Sens?" },
  { role: "assistant", content: [{ type: "text", text: "Looking." }, call] },
  { role: "tool", content: [result] },
  { role: "assistant", content: "It rains." },
  { role: "user", content: "And tomorrow?" },
];
const said = ["Weather in Sens?", "Looking.", "", "It rains.", "And tomorrow?"];

function seen(request: ModelRequest | undefined): readonly string[] {
  return (request?.messages ?? []).map(messageText);
}

/** An agent with a tool that waits for a person's approval. */
function careful(script: readonly ScriptStep[], more: { readonly history?: HistoryProvider } = {}) {
  const model = scriptedModel(script);
  const pay = tool({
    name: "pay",
    description: "Pays.",
    inputSchema: { type: "object", properties: {} } as const,
    needsApproval: true,
    execute: () => "paid",
  });
  return { model, agent: new Agent({ name: "payer", model, tools: [pay], ...more }) };
}

const pays: ScriptStep = { toolCalls: [{ name: "pay", input: {} }] };

describe("the option messages of a call", () => {
  test("invoke() with messages sends the whole conversation, and the next call in its session continues it", async () => {
    const { agent, model } = scout(["Sun.", "Snow."]);
    const { sessionId, output } = await agent.invoke(conversation);
    expect(output).toBe("Sun.");
    expect(seen(model.calls[0])).toEqual(said);
    expect(model.calls[0]?.messages[1]?.content).toEqual([{ type: "text", text: "Looking." }, call]);
    expect(model.calls[0]?.messages[2]).toEqual({ role: "tool", content: [result] });
    await agent.invoke("And then?", { sessionId });
    expect(seen(model.calls[1])).toEqual([...said, "Sun.", "And then?"]);
  });

  test("invoke() with one message in messages equals a plain input, with images and their order", async () => {
    const image = {
      type: "image",
      mediaType: "image/png",
      source: { kind: "base64", data: "AAAA" },
    } as const;
    const { agent, model } = scout(["Red.", "Rain."]);
    await agent.invoke([{ role: "user", content: [image, { type: "text", text: "Which colour?" }] }]);
    expect(model.calls[0]?.messages).toEqual([
      { role: "user", content: [image, { type: "text", text: "Which colour?" }] },
    ]);
  });

  test("stream(), runtime.submit() and a call with an output schema accept the option messages", async () => {
    const runtime = await openRuntime({ store: "memory:" });
    const { agent, model } = scout(["one", "two", '{"sky": "blue"}']);
    await agent.stream(conversation).result();
    const run = await runtime.submit(agent, conversation as never);
    await run.result();
    const output = { type: "object", properties: { sky: { type: "string" } }, required: ["sky"] } as const;
    const formed = await agent.invoke(conversation, { output });
    expect(formed.output).toEqual({ sky: "blue" });
    expect(model.calls.map((request) => seen(request).filter((text) => said.includes(text)))).toEqual([
      said,
      said,
      said,
    ]);
    await runtime.close();
  });

  test("a failed run that was given messages keeps those before the last one in its session", async () => {
    const { agent, model } = scout([{ error: Object.assign(new Error("no"), { status: 400 }) }, "Snow."]);
    const { sessionId, status } = await agent.invoke(conversation);
    expect(status).toBe("failed");
    await agent.invoke("And then?", { sessionId });
    expect(seen(model.calls[1])).toEqual([...said.slice(0, -1), "And then?"]);
  });

  test.each([HistoryRetention.RUN, HistoryRetention.NONE])(
    "a run with retention %s sees the messages it was given, also when it is resumed, and its session keeps none",
    async (retention) => {
      const runtime = await openRuntime({ store: "memory:" });
      const { agent, model } = careful([pays, "Paid.", "Who?"]);
      const run = await agent.submit(conversation, { runtime, retention });
      for await (const event of run.events())
        if (event.type === "approval_request")
          await run.approve(event.data.approvalId, { decision: "approved" });
      const { sessionId, status } = await run.result();
      expect(status).toBe("completed");
      expect(seen(model.calls[1]).slice(0, 5)).toEqual(said);
      await agent.invoke("And then?", { runtime, sessionId });
      expect(seen(model.calls[2])).toEqual(["And then?"]);
      await runtime.close();
    },
  );

  test("an agent with a history provider reads the given messages once and appends them with the run", async () => {
    const kept: ChatMessage[] = [];
    const history: HistoryProvider = {
      read: async () => [...kept],
      append: async (_key, _runId, messages) => {
        kept.splice(0, kept.length, ...kept, ...messages);
      },
      count: async () => kept.length,
      clear: async () => undefined,
      clearRun: async () => undefined,
    };
    const { agent, model } = careful(["Sun.", "Snow."], { history });
    const { sessionId } = await agent.invoke(conversation);
    expect(seen(model.calls[0])).toEqual(said);
    expect(kept.map(messageText)).toEqual([...said, "Sun."]);
    await agent.invoke("And then?", { sessionId });
    expect(seen(model.calls[1])).toEqual([...said, "Sun.", "And then?"]);
  });

  test("a repeated submission with other messages under the same run id is refused", async () => {
    const { agent } = scout(["Sun."]);
    const runId = "run_messages";
    await agent.invoke(conversation, { runId });
    await expect(agent.invoke(conversation.slice(4), { runId })).rejects.toMatchObject({
      code: "already_exists",
    });
  });

  test("invoke() refuses messages together with a session id", async () => {
    const { agent } = scout([]);
    await expect(agent.invoke(conversation, { sessionId: "chat-1" })).rejects.toMatchObject({
      code: "invalid_argument",
      message:
        'invalid messages of agent scout: messages start a new session, but sessionId is "chat-1"; omit sessionId, or pass only the new input to continue that session',
    });
  });

  const user = { role: "user", content: "Hi" };
  test.each<[string, readonly unknown[], string]>([
    [
      "a system message",
      [{ role: "system", content: "x" }, user],
      "message 0 has the role system; set the agent's option `instructions`",
    ],
    [
      "an unknown role",
      [{ role: "function", content: "x" }, user],
      'message 0 has the role "function"; expected user, assistant or tool',
    ],
    [
      "an assistant's message at the end",
      [user, { role: "assistant", content: "x" }],
      "the last message has the role assistant; end with a user message",
    ],
    [
      "a call without a result",
      [user, { role: "assistant", content: [call] }, user],
      "call c1 of message 1 has no result",
    ],
    [
      "a result without a call",
      [{ role: "tool", content: [result] }, user],
      "the result of c1 in message 0 has no call",
    ],
    [
      "a part of another library",
      [{ role: "assistant", content: [{ type: "tool-call" }] }, user],
      'message 0 has an invalid part 0: its type is "tool-call"; expected one of text, file, reasoning, tool_call, opaque',
    ],
    [
      "an image in the form of another library",
      [
        {
          role: "user",
          content: [
            { type: "text", text: "x" },
            { type: "image_url", image_url: "x" },
          ],
        },
      ],
      'message 0 has an invalid part 1: its type is "image_url"; expected one of text, image, file; use { type: "image", mediaType, source: { kind: "url", url } }',
    ],
    [
      "an image without its type",
      [{ role: "user", content: [{ type: "image", image: "https://a.example/a.png" }] }],
      'message 0 has an invalid part 0: mediaType of { type: "image" } is undefined; expected a text',
    ],
    [
      "a message of a page of the AI SDK",
      [{ role: "user", parts: [{ type: "text", text: "x" }] }],
      "message 0 has `parts` and no content; name the list `content`",
    ],
    [
      "an empty list of parts",
      [{ role: "user", content: [] }],
      "message 0 has the content []; expected a text or a list of parts",
    ],
    [
      "a result without output",
      [{ role: "tool", content: [{ ...result, output: "x" }] }, user],
      'message 0 has an invalid part 0: output is "x"; expected { type: "text", text }',
    ],
    [
      "an image without a source",
      [{ role: "user", content: [{ type: "image", mediaType: "image/png" }] }],
      "message 0 has an invalid part 0: source is undefined",
    ],
    [
      "no content",
      [{ role: "user" }],
      "message 0 has the content undefined; expected a text or a list of parts",
    ],
    ["an empty text at the end", [{ role: "user", content: "" }], "it is empty"],
  ])("invoke() refuses messages with %s before a run exists", async (_name, messages, message) => {
    const { agent, model } = scout([]);
    await expect(agent.invoke(messages as never)).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining(message),
    });
    expect(model.calls).toEqual([]);
  });

  test("steering that looks like messages is sent as JSON text", async () => {
    const runtime = await openRuntime({ store: "memory:" });
    const model: Model = scriptedModel([pays, "Paid."]);
    const { agent } = careful([pays, "Paid."]);
    const run = await agent.with({ model }).submit("Pay.", { runtime });
    for await (const event of run.events())
      if (event.type === "approval_request") {
        await run.steer(conversation as never);
        await run.approve(event.data.approvalId, { decision: "approved" });
      }
    await run.result();
    expect(seen((model as ReturnType<typeof scriptedModel>).calls[1]).at(-1)).toContain('"role":"assistant"');
    await runtime.close();
  });

  test.each(twoStores)(
    "a run that another worker resumes sees the messages it was given, and so does a fork (store: %s)",
    async (_store, prepare) => {
      const open = await prepare();
      const first = await openRuntime({ store: await open(), unknownPrice: "ignore" });
      const run = await careful([pays]).agent.submit(conversation, { runtime: first });
      let approvalId = "";
      for await (const event of run.events())
        if (event.type === "approval_request") {
          ({ approvalId } = event.data);
          break;
        }
      await first.close();
      const second = await openRuntime({ store: await open(), unknownPrice: "ignore" });
      const after = careful(["Paid.", "And more.", pays]);
      second.register(after.agent);
      const again = await second.find(run.runId);
      await again?.approve(approvalId, { decision: "approved" });
      const end = await again?.result();
      expect(end).toMatchObject({ status: "completed", output: "Paid." });
      expect(seen(after.model.calls[0]).slice(0, 5)).toEqual(said);
      await after.agent.invoke("More.", { runtime: second, sessionId: end?.sessionId ?? "" });
      expect(seen(after.model.calls[1]).slice(0, 5)).toEqual(said);
      const fork = await again?.fork({ at: 0 });
      for await (const event of fork?.events() ?? []) if (event.type === "approval_request") break;
      expect(seen(after.model.calls[2])).toEqual(said);
      await fork?.cancel("enough");
      await second.close();
    },
  );
});
