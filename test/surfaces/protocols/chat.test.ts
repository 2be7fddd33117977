import { lastAssistantMessageIsCompleteWithApprovalResponses, readUIMessageStream, type UIMessage } from "ai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Agent } from "../../../src/agent.ts";
import { messageText } from "../../../src/kernel/index.ts";
import { tool } from "../../../src/capabilities/index.ts";
import { endlessModel } from "./endless-model.ts";
import { startServer, type TestServer } from "../server/test-server.ts";
import { textsOf, TestChat, transportTo } from "./test-chat.ts";

const send = tool({
  name: "send",
  description: "Sends a letter.",
  inputSchema: { type: "object", properties: { to: { type: "string" } } },
  needsApproval: true,
  execute: ({ to }: { readonly to?: string }) => `sent to ${to}`,
});

/** Answers each question with its text, so that tests can share it. */
const echo = new Agent({
  name: "echo",
  model: endlessModel(({ messages }) => {
    const last = messages.at(-1);
    return { deltas: ["You said ", `${last === undefined ? "" : messageText(last)}.`] };
  }),
});

const clerk = new Agent({
  name: "clerk",
  model: endlessModel(({ messages }) =>
    messages.at(-1)?.role === "tool"
      ? { deltas: ["Do", "ne."] }
      : { text: "I ask first.", reasoning: "Hm.", toolCalls: [{ name: "send", input: { to: "bob" } }] },
  ),
  tools: [send],
});

let server: TestServer;
let token: string;

beforeAll(async () => {
  server = await startServer([echo, clerk]);
  token = await server.tokenOf("acme", "run", "ann");
});
afterAll(() => server.close());

let count = 0;
function chatWith(agent: string, more: object = {}): TestChat {
  return new TestChat({
    id: `chat-${count++}`,
    transport: transportTo({ url: server.url, token, agent }),
    ...more,
  });
}

describe("the AI SDK's DefaultChatTransport", () => {
  it("receives the text, the run and the usage of an answer, and the next question sees the history of the store", async () => {
    const chat = chatWith("echo");
    await chat.sendMessage({ text: "hi" });
    expect([chat.status, chat.error]).toEqual(["ready", undefined]);
    expect(textsOf(chat.lastMessage)).toEqual(["You said hi."]);
    expect(chat.lastMessage?.metadata).toMatchObject({ status: "completed", turns: 1 });
    await chat.sendMessage({ text: "again" });
    expect(chat.messages.map((message) => textsOf(message).join())).toEqual([
      "hi",
      "You said hi.",
      "again",
      "You said again.",
    ]);
    const path = await server.runtime.forTenant({ tenantId: "acme", userId: "ann" }).sessions.path(chat.id);
    expect(path.filter(({ type }) => type === "message").length).toBe(4);
  });

  it("is read by readUIMessageStream, part by part", async () => {
    const message: UIMessage = { id: "m1", role: "user", parts: [{ type: "text", text: "hi" }] };
    const stream = await transportTo({ url: server.url, token, agent: "echo" }).sendMessages({
      chatId: "read",
      trigger: "submit-message",
      messageId: undefined,
      messages: [message],
      abortSignal: undefined,
    });
    let last: UIMessage | undefined;
    for await (const each of readUIMessageStream({ stream })) last = each;
    expect(textsOf(last)).toEqual(["You said hi."]);
  });

  it("shows an approval as a tool part, and continues the same message with the answer", async () => {
    const chat = chatWith("clerk", {
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    });
    await chat.sendMessage({ text: "Write to bob" });
    const asked = chat.lastMessage?.parts.find((part) => part.type === "tool-send");
    expect(asked).toMatchObject({ state: "approval-requested", input: { to: "bob" } });
    const approval = asked !== undefined && "approval" in asked ? asked.approval : undefined;
    await chat.addToolApprovalResponse({ id: approval?.id ?? "", approved: true });
    while (chat.status !== "ready" || chat.lastMessage?.parts.at(-1)?.type !== "text")
      await new Promise<void>((resolve) => void setImmediate(resolve));
    expect(chat.messages.length).toBe(2);
    expect(chat.lastMessage?.parts.map(({ type }) => type)).toEqual([
      "step-start",
      "reasoning",
      "text",
      "tool-send",
      "step-start",
      "text",
    ]);
    expect(chat.lastMessage?.parts.find((part) => part.type === "tool-send")).toMatchObject({
      state: "output-available",
      output: "sent to bob",
    });
    expect(textsOf(chat.lastMessage)).toEqual(["I ask first.", "Done."]);
  });
});
