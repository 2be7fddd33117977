import {
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  readUIMessageStream,
  type UIMessage,
} from "ai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Agent } from "../../../src/assembly/agent.ts";
import { OrchestratorAgent } from "../../../src/assembly/agent-kinds.ts";
import { tool } from "../../../src/capabilities/index.ts";
import { messageText, type Runtime } from "../../../src/kernel/index.ts";
import { sessionOfAnn, startServer, type TestServer } from "../server/test-server.ts";
import { endlessModel } from "./endless-model.ts";
import { eventually, textsOf, TestChat, transportTo } from "./test-chat.ts";

const send = tool({
  name: "send",
  description: "Sends a letter.",
  inputSchema: { type: "object", properties: { to: { type: "string" } } },
  needsApproval: true,
  execute: ({ to }: { readonly to?: string }) => `sent to ${to}`,
});
const where = tool({
  name: "where",
  description: "Returns where the user is.",
  inputSchema: { type: "object" },
  clientSide: true,
});
/** The promise of the tool `dig`. The test resolves it to let the tool continue. */
let dug = Promise.withResolvers<string>();
const dig = tool({
  name: "dig",
  description: "Digs.",
  inputSchema: { type: "object" },
  async *execute() {
    yield { metres: 1 };
    return dug.promise;
  },
});

let answers = 0;
let isBroken = false;
/** Numbers its answers. Answers `cut` with a connection that breaks once, and `fail` with an error. */
const echo = new Agent({
  name: "echo",
  retry: { baseDelayMs: 1, maxRetries: 1 },
  model: endlessModel(({ messages }) => {
    const last = messages.at(-1);
    const said = last === undefined ? "" : messageText(last);
    if (said === "cut" && !isBroken) {
      isBroken = true;
      return { reasoning: "Hm.", deltas: ["void"], cut: true };
    }
    if (said === "fail") return { error: Object.assign(new Error("no such model"), { statusCode: 404 }) };
    const parts = last?.role === "user" ? last.content.map(({ type }) => type).join() : "";
    return { deltas: [`${++answers}: `, `${said} (${parts})`] };
  }),
});
const clerk = new Agent({
  name: "clerk",
  model: endlessModel(({ messages }) => {
    const last = messages.at(-1);
    if (last?.role === "tool") return { deltas: ["Do", "ne."] };
    return { text: "I ask first.", reasoning: "Hm.", toolCalls: [{ name: "send", input: { to: "bob" } }] };
  }),
  tools: [send],
});
/** An agent that asks for approval once per conversation. */
const porter = new Agent({
  name: "porter",
  model: endlessModel(({ messages }) =>
    messages.some(({ role }) => role === "tool")
      ? { deltas: ["Do", "ne."] }
      : { text: "I ask first.", toolCalls: [{ name: "send", input: { to: "bob" } }] },
  ),
  tools: [send],
});
/** An agent that calls the tool that the user names. */
const worker = new Agent({
  name: "worker",
  model: endlessModel(({ messages }) => {
    const last = messages.at(-1);
    if (last?.role === "tool") return `Result: ${JSON.stringify(last.content[0]?.output)}`;
    return { toolCalls: [{ name: last === undefined ? "" : messageText(last), input: {} }] };
  }),
  tools: [where, dig],
});
const lead = new OrchestratorAgent({
  name: "lead",
  model: endlessModel(({ messages }) =>
    messages.at(-1)?.role === "tool"
      ? "The clerk has done it."
      : { toolCalls: [{ name: "handoff_clerk", input: { task: "Write to bob" } }] },
  ),
  subAgents: [clerk],
});

let server: TestServer;
let token: string;
let view: Runtime;

beforeAll(async () => {
  server = await startServer([echo, clerk, porter, worker, lead]);
  token = await server.tokenOf("acme", "run", "ann");
  view = server.runtime.forTenant({ tenantId: "acme", userId: "ann" });
});
afterAll(() => server.close());

let count = 0;
function chatWith(agent: string, more: object = {}): TestChat {
  const transport = transportTo({ url: server.url, token, agent });
  return new TestChat({ id: `chat-${count++}`, transport, ...more });
}

/** The messages of the session that are part of the conversation. */
async function conversation({ id }: TestChat): Promise<readonly string[]> {
  const path = await view.sessions.path(await sessionOfAnn(view, id));
  return path.flatMap((entry) => (entry.type === "message" ? [messageText(entry.message)] : []));
}

function part(chat: TestChat, type: string): Record<string, unknown> | undefined {
  return chat.lastMessage?.parts.findLast((each) => each.type === type);
}

/** Id of the approval that a part of the last message asks for. */
function approvalOf(chat: TestChat, type: string): string {
  const { approval } = (part(chat, type) ?? {}) as { readonly approval?: { readonly id: string } };
  return approval?.id ?? "";
}

async function approve(chat: TestChat, type: string, approved: boolean): Promise<void> {
  const id = approvalOf(chat, type);
  await chat.addToolApprovalResponse({ id, approved, ...(!approved && { reason: "not now" }) });
  await eventually(() => chat.status === "ready" && chat.lastMessage?.parts.at(-1)?.type === "text");
}

const automatically = { sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses };

describe("a chat of the AI SDK", () => {
  it("a chat of the AI SDK receives text, run and usage of an answer, and the next question sees the stored history", async () => {
    const chat = chatWith("echo");
    await chat.sendMessage({ text: "hi" });
    expect([chat.status, chat.error]).toEqual(["ready", undefined]);
    expect(textsOf(chat.lastMessage).join()).toMatch(/^\d+: hi \(text\)$/u);
    const { runs } = await view.list({ sessionId: await sessionOfAnn(view, chat.id) });
    expect(chat.lastMessage).toMatchObject({
      id: runs[0]?.runId,
      metadata: {
        runId: runs[0]?.runId,
        status: "completed",
        turns: 1,
        usage: { inputTokens: runs[0]?.usage.inputTokens, outputTokens: runs[0]?.usage.outputTokens },
      },
    });
    await chat.sendMessage({ text: "again" });
    expect(await conversation(chat)).toEqual(chat.messages.map((message) => textsOf(message).join()));
  });

  it("a chat of the AI SDK is read by readUIMessageStream, and sends images and files", async () => {
    const message: UIMessage = {
      id: "m1",
      role: "user",
      parts: [
        { type: "text", text: "look" },
        { type: "file", mediaType: "image/png", url: "data:image/png;base64,AAAA" },
        { type: "file", mediaType: "application/pdf", url: "https://example.com/a.pdf", filename: "a.pdf" },
      ],
    };
    const stream = await transportTo({ url: server.url, token, agent: "echo" }).sendMessages({
      chatId: "read",
      trigger: "submit-message",
      messageId: undefined,
      messages: [message],
      abortSignal: undefined,
    });
    let last: UIMessage | undefined;
    for await (const each of readUIMessageStream({ stream })) last = each;
    expect(textsOf(last).join()).toMatch(/look \(text,image,file\)$/u);
  });

  it("a chat of the AI SDK replaces the text of a broken attempt by that of the next attempt", async () => {
    const chat = chatWith("echo");
    isBroken = false;
    await chat.sendMessage({ text: "cut" });
    expect(chat.error).toBeUndefined();
    expect(chat.lastMessage?.parts.map(({ type }) => type)).toEqual(["step-start", "text"]);
    expect(textsOf(chat.lastMessage).join()).toMatch(/^\d+: cut \(text\)$/u);
  });

  it("a chat of the AI SDK shows an approval as a tool part, and continues the same message after the answer", async () => {
    const chat = chatWith("clerk", automatically);
    await chat.sendMessage({ text: "Write to bob" });
    expect(part(chat, "tool-send")).toMatchObject({ state: "approval-requested", input: { to: "bob" } });
    expect(chat.lastMessage?.metadata).toMatchObject({ status: "waiting" });
    await approve(chat, "tool-send", true);
    expect(chat.messages.length).toBe(2);
    expect(chat.lastMessage?.parts.map(({ type }) => type)).toEqual([
      "step-start",
      "reasoning",
      "text",
      "tool-send",
      "step-start",
      "text",
    ]);
    expect(part(chat, "tool-send")).toMatchObject({ state: "output-available", output: "sent to bob" });
    expect(textsOf(chat.lastMessage)).toEqual(["I ask first.", "Done."]);
  });

  it("a chat of the AI SDK passes a denial with its reason to the model", async () => {
    const chat = chatWith("clerk", automatically);
    await chat.sendMessage({ text: "Write to bob" });
    await approve(chat, "tool-send", false);
    expect(part(chat, "tool-send")).toMatchObject({ state: "output-denied" });
    expect(JSON.stringify(await view.sessions.path(await sessionOfAnn(view, chat.id)))).toContain("not now");
  });

  it("a chat of the AI SDK asks for a sub-agent by a dynamic tool part", async () => {
    const chat = chatWith("lead", automatically);
    await chat.sendMessage({ text: "Let bob know" });
    expect(part(chat, "dynamic-tool")).toMatchObject({
      state: "approval-requested",
      toolName: "send",
      input: { to: "bob" },
    });
    await approve(chat, "dynamic-tool", true);
    expect(textsOf(chat.lastMessage)).toEqual(["The clerk has done it."]);
  });

  it("a chat of the AI SDK executes a client-side tool and sends its output", async () => {
    const chat: TestChat = chatWith("worker", {
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
      onToolCall: ({ toolCall }: { readonly toolCall: { readonly toolCallId: string } }) =>
        void chat.addToolOutput({
          tool: "where",
          toolCallId: toolCall.toolCallId,
          output: { town: "Blois" },
        }),
    });
    await chat.sendMessage({ text: "where" });
    await eventually(() => chat.status === "ready" && textsOf(chat.lastMessage).length > 0);
    expect(textsOf(chat.lastMessage).join()).toContain('{"town":"Blois"}');
  });

  it("a chat of the AI SDK answers a message again in a new branch on regenerate, and after an edit", async () => {
    const chat = chatWith("echo");
    await chat.sendMessage({ text: "one" });
    await chat.sendMessage({ text: "two" });
    const before = textsOf(chat.lastMessage).join();
    await chat.regenerate();
    const again = textsOf(chat.lastMessage).join();
    expect(again).not.toBe(before);
    expect(await conversation(chat)).toEqual(["one", expect.any(String), "two", again]);
    await chat.regenerate({ messageId: chat.messages[1]?.id ?? "" });
    expect(await conversation(chat)).toEqual(["one", textsOf(chat.lastMessage).join()]);
    await chat.sendMessage({ text: "three", messageId: chat.messages[0]?.id ?? "" });
    expect(chat.messages.map((message) => textsOf(message).join())).toEqual(await conversation(chat));
    expect(await conversation(chat)).toEqual(["three", expect.stringContaining("three")]);
    await chat.sendMessage({ text: "one", messageId: chat.messages[0]?.id ?? "" });
    expect(await conversation(chat)).toEqual(["one", expect.stringContaining("one")]);
    const { nodes } = await view.sessions.tree(await sessionOfAnn(view, chat.id));
    expect(nodes.filter(({ entry }) => entry.type === "message").length).toBe(12);
  });

  it("a chat of the AI SDK stops reading without stopping the run, and resumes the answer from its beginning", async () => {
    dug = Promise.withResolvers();
    const chat = chatWith("worker");
    const sending = chat.sendMessage({ text: "dig" });
    await eventually(() => part(chat, "tool-dig")?.["preliminary"] === true);
    expect(part(chat, "tool-dig")).toMatchObject({ output: { metres: 1 } });
    await chat.stop();
    await sending;
    expect((await view.list({ sessionId: await sessionOfAnn(view, chat.id) })).runs[0]?.status).toBe(
      "running",
    );
    const resuming = chat.resumeStream();
    await eventually(() => chat.status !== "ready");
    dug.resolve("gold");
    await resuming;
    expect(chat.messages.length).toBe(2);
    expect(textsOf(chat.lastMessage).join()).toContain("gold");
    await chat.resumeStream();
    expect([chat.status, chat.error, chat.messages.length]).toEqual(["ready", undefined, 2]);
  });

  it("a chat of the AI SDK sends a message during an answer as steering of the run", async () => {
    dug = Promise.withResolvers();
    const chat = chatWith("worker");
    const first = chat.sendMessage({ text: "dig" });
    await eventually(() => part(chat, "tool-dig")?.["preliminary"] === true);
    await chat.stop();
    await first;
    const second = chat.sendMessage({ text: "hurry" });
    await eventually(async () => {
      const [run] = (await view.list({ sessionId: await sessionOfAnn(view, chat.id) })).runs;
      const mail = await server.store.mailbox.read(run?.runId ?? ("" as never));
      const steered: unknown[] = [...mail];
      const handle = await view.find(run?.runId ?? "");
      for await (const event of handle?.events({ types: ["run_steer"], follow: false }) ?? [])
        steered.push(event);
      return steered.length > 0;
    });
    dug.resolve("gold");
    await second;
    expect(chat.error).toBeUndefined();
    expect((await view.list({ sessionId: await sessionOfAnn(view, chat.id) })).runs.length).toBe(1);
    expect(chat.messages.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant"]);
  });

  it("a chat of the AI SDK gives a message that became steering to the model once, and refuses to answer it again alone", async () => {
    const sessionId = "steered";
    const [one, two, three] = ["one", "two", "three"].map((text) => ({
      id: `id-${text}`,
      role: "user" as const,
      parts: [{ type: "text", text }],
    }));
    const post = (messages: readonly unknown[], more: object = {}): ReturnType<TestServer["call"]> =>
      server.call("POST", "/api/chat", {
        token,
        body: { id: sessionId, messages, agent: "porter", ...more },
      });
    await post([one]);
    await post([one, two]);
    await post([one, two, three]);
    const [run] = (await view.list({ sessionId: await sessionOfAnn(view, sessionId) })).runs;
    const handle = await view.find(run?.runId ?? "");
    const received = (await handle?.receivedInput()) ?? [];
    expect(received.map(({ input }) => input)).toEqual([two?.parts, three?.parts]);
    const [question] = (await handle?.pendingApprovals()) ?? [];
    await handle?.approve(question?.approvalId ?? "", { decision: "approved" });
    await handle?.result();
    await eventually(async () =>
      (await view.list({ sessionId: await sessionOfAnn(view, sessionId) })).runs.every(
        ({ endedAt }) => endedAt !== null,
      ),
    );
    const said = await conversation({ id: sessionId } as TestChat);
    expect(said.filter((text) => text === "two" || text === "three")).toEqual(["two", "three"]);
    const again = await post([one, two]);
    expect([again.status, again.text.includes('"delta":"Done."')]).toEqual([200, true]);
    expect(again.text).not.toContain("I ask first.");
    const refused = await post([one, two], { trigger: "regenerate-message" });
    expect([refused.status, refused.json["detail"]]).toEqual([
      400,
      expect.stringMatching(
        /"id-two" was added to run .* regenerate message "id-one", or send a new message/u,
      ),
    ]);
    const edited = { ...two, parts: [{ type: "text", text: "other" }] };
    expect((await post([one, edited], { messageId: "id-two" })).status).toBe(400);
    expect(await conversation({ id: sessionId } as TestChat)).toEqual(said);
  });

  it("a chat of the AI SDK shows the error of a failed run, and sends its message again on regenerate", async () => {
    const chat = chatWith("echo");
    await chat.sendMessage({ text: "fail" });
    expect(chat.status).toBe("error");
    expect(chat.error?.message).toMatch(/^model_format_error: /u);
    expect(chat.error?.message).not.toContain("no such model");
    await chat.regenerate();
    expect(chat.status).toBe("error");
    await chat.sendMessage({ text: "better" });
    expect(await conversation(chat)).toEqual(["better", textsOf(chat.lastMessage).join()]);
  });

  it("a chat of the AI SDK ends with the status of a run that is cancelled", async () => {
    dug = Promise.withResolvers();
    const chat = chatWith("worker");
    const sending = chat.sendMessage({ text: "dig" });
    await eventually(() => part(chat, "tool-dig") !== undefined);
    await server.call("POST", `/api/runs/${chat.lastMessage?.id}/cancel`, { token });
    dug.resolve("gold");
    await sending;
    expect(chat.lastMessage?.metadata).toMatchObject({ status: "cancelled" });
  });

  it("a chat of the AI SDK starts one run for a message that is sent several times at once and later", async () => {
    const message: UIMessage = { id: "once", role: "user", parts: [{ type: "text", text: "hi" }] };
    const options = { chatId: "dup", trigger: "submit-message", messageId: undefined } as const;
    const sendOnce = async (): Promise<string> => {
      const stream = await transportTo({ url: server.url, token, agent: "echo" }).sendMessages({
        ...options,
        messages: [message],
        abortSignal: undefined,
      });
      let last: UIMessage | undefined;
      for await (const each of readUIMessageStream({ stream })) last = each;
      return textsOf(last).join();
    };
    const texts = [...(await Promise.all([sendOnce(), sendOnce(), sendOnce()])), await sendOnce()];
    expect(new Set(texts).size).toBe(1);
    expect((await view.list({ sessionId: await sessionOfAnn(view, "dup") })).runs.length).toBe(1);
  });

  it("a chat of the AI SDK makes an approved call once if the approval is sent twice, and both requests receive the result", async () => {
    const chat = chatWith("clerk");
    await chat.sendMessage({ text: "Write to bob" });
    const id = approvalOf(chat, "tool-send");
    await chat.addToolApprovalResponse({ id, approved: true });
    const body = { id: chat.id, agent: "clerk", trigger: "submit-message", messages: chat.messages };
    const post = (): ReturnType<TestServer["call"]> => server.call("POST", "/api/chat", { token, body });
    const [one, two] = await Promise.all([post(), post()]);
    const three = await post();
    for (const { text } of [one, two, three]) {
      expect(text.match(/sent to bob/gu)?.length).toBe(1);
      expect(text).toMatch(/ne\.".*"status":"completed"/su);
      expect(text).not.toContain("I ask first.");
    }
  });

  it("a chat of the AI SDK loses the connection when the server closes, so that the answer does not seem complete", async () => {
    dug = Promise.withResolvers();
    const closing = await startServer([worker]);
    const transport = transportTo({ url: closing.url, token: closing.admin });
    const chat = new TestChat({ id: "closing", transport });
    const sending = chat.sendMessage({ text: "dig" });
    await eventually(() => part(chat, "tool-dig") !== undefined);
    await closing.server.drain();
    await sending;
    expect([chat.status, chat.error instanceof TypeError]).toEqual(["error", true]);
    dug.resolve("gold");
    await closing.close();
  });
});
