import { convertToModelMessages, safeValidateUIMessages, type UIMessage } from "ai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Agent } from "../../../src/assembly/agent.ts";
import { tool } from "../../../src/capabilities/index.ts";
import { startServer, type TestServer } from "../server/test-server.ts";
import { endlessModel } from "./endless-model.ts";
import { textsOf, TestChat, transportTo } from "./test-chat.ts";

const weather = tool({
  name: "weather",
  description: "Returns the weather in a town.",
  inputSchema: { type: "object", properties: { town: { type: "string" } } },
  execute: ({ town }: { readonly town?: string }) => {
    if (town === "Atlantis") throw new Error("no such town");
    return { town: town ?? null, sky: "rain" };
  },
});
const send = tool({
  name: "send",
  description: "Sends a letter.",
  inputSchema: { type: "object" },
  needsApproval: true,
  execute: () => "sent",
});
/** Calls `weather` twice with one id, and `send` if the user says so. */
const packer = new Agent({
  name: "packer",
  model: endlessModel(({ messages }) => {
    const last = messages.at(-1);
    if (last?.role === "tool") return { reasoning: "It rains.", deltas: ["Take an ", "umbrella."] };
    const input = JSON.stringify(last);
    if (input.includes("letter")) return { toolCalls: [{ name: "send", input: {} }] };
    return {
      text: "I look it up.",
      toolCalls: [
        { name: "weather", input: { town: "Tours" } },
        { name: "weather", input: { town: "Atlantis" } },
      ],
    };
  }),
  tools: [weather, send],
});

let server: TestServer;
let token: string;

beforeAll(async () => {
  server = await startServer([packer]);
  token = await server.tokenOf("acme", "run", "ann");
});
afterAll(() => server.close());

async function historyOf(id: string, query = "", bearer = token): Promise<UIMessage[]> {
  const path = `/api/sessions/${encodeURIComponent(id)}/ui-messages${query}`;
  const { status, json } = await server.call("GET", path, { token: bearer });
  expect(status).toBe(200);
  return json["messages"] as unknown as UIMessage[];
}

function chat(id: string, messages: UIMessage[] = []): TestChat {
  return new TestChat({ id, transport: transportTo({ url: server.url, token }), messages });
}

/** What a person sees of a message, without metadata of its stream. */
function shownOf({ id, role, parts }: UIMessage): unknown {
  return { id, role, parts: parts.map(({ type, ...rest }) => [type, "state" in rest ? rest.state : null]) };
}

test("ui-messages returns the messages that the client has, with their ids, parts and states", async () => {
  const live = chat("trip");
  await live.sendMessage({ text: "What do I pack?" });
  const stored = await historyOf("trip");
  expect(stored.map(shownOf)).toEqual(live.messages.map(shownOf));
  const [, answer] = stored;
  expect(answer?.parts.map(({ type }) => type)).toEqual([
    "step-start",
    "text",
    "tool-weather",
    "tool-weather",
    "step-start",
    "reasoning",
    "text",
  ]);
  expect(answer?.parts[2]).toMatchObject({
    state: "output-available",
    input: { town: "Tours" },
    output: { town: "Tours", sky: "rain" },
  });
  expect(answer?.parts[3]).toMatchObject({ state: "output-error" });
});

test("ui-messages are valid for the AI SDK, which converts them to messages of a model", async () => {
  const messages = await historyOf("trip");
  expect((await safeValidateUIMessages({ messages })).success).toBe(true);
  expect((await convertToModelMessages(messages)).map(({ role }) => role)).toEqual([
    "user",
    "assistant",
    "tool",
    "assistant",
  ]);
});

test("a chat of the AI SDK that starts with the stored messages continues, edits and regenerates", async () => {
  const reloaded = chat("trip", await historyOf("trip"));
  await reloaded.sendMessage({ text: "And for Tours again?" });
  expect(reloaded.messages.length).toBe(4);
  expect((await historyOf("trip")).map(shownOf)).toEqual(reloaded.messages.map(shownOf));
  await reloaded.regenerate();
  const regenerated = await historyOf("trip");
  expect(regenerated.map(({ id }) => id)).toEqual(reloaded.messages.map(({ id }) => id));
  expect(regenerated.length).toBe(4);
});

test("ui-messages of a session whose run waits end with the user's message, and the client resumes the answer's stream", async () => {
  const live = chat("letters");
  await live.sendMessage({ text: "Send a letter" });
  const stored = await historyOf("letters");
  expect(stored.map(({ role, id }) => [role, id])).toEqual([["user", live.messages[0]?.id]]);
  expect(textsOf(stored[0])).toEqual(["Send a letter"]);
  const reloaded = chat("letters", stored);
  await reloaded.resumeStream();
  expect(reloaded.messages.at(-1)?.parts.map(({ type }) => type)).toContain("tool-send");
});

test("ui-messages?limit returns the newest entries and leaves out results without their call", async () => {
  const messages = await historyOf("trip", "?limit=2");
  expect(messages.map(({ role }) => role)).toEqual(["assistant"]);
  expect((await safeValidateUIMessages({ messages })).success).toBe(true);
});

test("ui-messages of an unknown session are not found, also if another tenant has a session of this name", async () => {
  const stranger = await server.tokenOf("umbrella", "read", "bob");
  for (const [id, bearer] of [
    ["nothing", token],
    ["trip", stranger],
  ] as const)
    expect((await server.call("GET", `/api/sessions/${id}/ui-messages`, { token: bearer })).status).toBe(404);
});
