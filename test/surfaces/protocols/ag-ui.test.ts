import { HttpAgent, type Message, type RunAgentParameters } from "@ag-ui/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Agent } from "../../../src/assembly/agent.ts";
import { OrchestratorAgent } from "../../../src/assembly/agent-kinds.ts";
import { tool } from "../../../src/capabilities/index.ts";
import { messageText } from "../../../src/kernel/index.ts";
import { sessionOfAnn, startServer, type TestServer } from "../server/test-server.ts";
import { endlessModel } from "./endless-model.ts";

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

const echo = new Agent({
  name: "echo",
  model: endlessModel(({ messages }) => {
    const last = messages.at(-1);
    const count = messages.filter(({ role }) => role === "user").length;
    return { reasoning: "Hm.", deltas: [`${count}: `, last === undefined ? "" : messageText(last)] };
  }),
});
const clerk = new Agent({
  name: "clerk",
  model: endlessModel(({ messages }) =>
    messages.at(-1)?.role === "tool"
      ? "Done."
      : { text: "I ask first.", toolCalls: [{ name: "send", input: { to: "bob" }, callId: "call" }] },
  ),
  tools: [send],
});
/** An agent that asks for approval once per conversation. */
const porter = new Agent({
  name: "porter",
  model: endlessModel(({ messages }) =>
    messages.some(({ role }) => role === "tool")
      ? "Done."
      : { text: "I ask first.", toolCalls: [{ name: "send", input: { to: "bob" }, callId: "call" }] },
  ),
  tools: [send],
});
const guide = new Agent({
  name: "guide",
  model: endlessModel(({ messages }) => {
    const last = messages.at(-1);
    return last?.role === "tool"
      ? `You are in ${JSON.stringify(last.content[0]?.output)}`
      : { toolCalls: [{ name: "where", input: {}, callId: "where-1" }] };
  }),
  tools: [where],
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

const broken = new Agent({
  name: "broken",
  retry: { enabled: false },
  model: endlessModel(() => ({ error: Object.assign(new Error("no such model"), { statusCode: 404 }) })),
});

let server: TestServer;
let token: string;

beforeAll(async () => {
  server = await startServer([echo, clerk, porter, guide, lead, broken]);
  token = await server.tokenOf("acme", "run", "ann");
});
afterAll(() => server.close());

/** A client of AG-UI with the types of the events that it has received. */
function clientOf(agent: string, threadId: string): HttpAgent & { readonly seen: string[] } {
  const client = new HttpAgent({
    url: `${server.url}/api/ag-ui/${agent}`,
    threadId,
    headers: { authorization: `Bearer ${token}` },
  });
  const seen: string[] = [];
  client.subscribe({ onEvent: ({ event }) => void seen.push(event.type) });
  return Object.assign(client, { seen });
}

function say(
  client: HttpAgent,
  id: string,
  content: string,
  parameters: RunAgentParameters = {},
): ReturnType<HttpAgent["runAgent"]> {
  client.addMessage({ id, role: "user", content });
  return client.runAgent(parameters);
}

function callsOf(message: Message | undefined) {
  return (message?.role === "assistant" ? message.toolCalls : undefined) ?? [];
}

function texts(messages: readonly Message[]): readonly string[] {
  return messages.map(({ role, content }) => `${role}: ${typeof content === "string" ? content : ""}`);
}

describe("@ag-ui/client's HttpAgent", () => {
  it("@ag-ui/client's HttpAgent holds a conversation of several turns, whose history comes from the store", async () => {
    const client = clientOf("echo", "turns");
    const first = await say(client, "m1", "hi");
    expect(texts(first.newMessages)).toEqual(["reasoning: Hm.", "assistant: 1: hi"]);
    expect(first.result).toBe("1: hi");
    client.setMessages([]);
    const second = await say(client, "m2", "again");
    expect(texts(second.newMessages).at(-1)).toBe("assistant: 2: again");
    expect(client.seen.at(-1)).toBe("RUN_FINISHED");
  });

  it("@ag-ui/client's HttpAgent executes a tool of the client, and sends its result in the next run", async () => {
    const client = clientOf("guide", "client-tool");
    const tools = [{ name: "where", description: "Returns where the user is." }];
    await say(client, "m1", "Where am I?", { tools });
    const [first] = callsOf(client.messages.at(-1));
    expect(first).toMatchObject({ id: expect.stringMatching(/\/where-1$/u), function: { name: "where" } });
    client.addMessage({ id: "r1", role: "tool", toolCallId: first?.id ?? "", content: "Blois" });
    const { newMessages } = await client.runAgent({ tools });
    expect(texts(newMessages)).toEqual(['assistant: You are in {"type":"text","text":"Blois"}']);
    // The provider repeats the id of the call in the next run. The result of the first call is no answer to the second.
    await say(client, "m2", "And now?", { tools });
    const [second] = callsOf(client.messages.at(-1));
    expect(second?.id).toMatch(/\/where-1$/u);
    expect(second?.id).not.toBe(first?.id);
    const refused = await server.call("POST", "/api/ag-ui/guide", {
      token,
      body: { threadId: "t", runId: "r", messages: [], tools: [{ name: "other" }] },
    });
    expect(refused.json).toMatchObject({ status: 400, detail: expect.stringContaining("clientSide: true") });
  });

  it("@ag-ui/client's HttpAgent is interrupted for an approval, and resumes with the answer of the person", async () => {
    const client = clientOf("clerk", "approval");
    await say(client, "m1", "Write to bob");
    const [interrupt] = client.pendingInterrupts;
    expect(interrupt).toMatchObject({ reason: "tool_call", toolCallId: expect.stringMatching(/\/call$/u) });
    const { newMessages } = await client.runAgent({
      resume: [{ interruptId: interrupt?.id ?? "", status: "resolved", payload: { approved: true } }],
    });
    expect(texts(newMessages)).toEqual(["tool: sent to bob", "assistant: Done."]);
    expect(client.pendingInterrupts).toEqual([]);
  });

  it("@ag-ui/client's HttpAgent sees the sub-agents of a run, also across an interrupt of one of them", async () => {
    const client = clientOf("lead", "team");
    await say(client, "m1", "Let bob know");
    expect(client.seen).toContain("SUBAGENT_STARTED");
    expect(client.seen).toContain("SUBAGENT_FINISHED");
    const [interrupt] = client.pendingInterrupts;
    expect(interrupt?.subagentRunId).toMatch(/^t\d/u);
    client.seen.length = 0;
    await client.runAgent({
      resume: [{ interruptId: interrupt?.id ?? "", status: "resolved", payload: { approved: true } }],
    });
    expect(client.seen).toContain("SUBAGENT_FINISHED");
    expect(texts(client.messages).at(-1)).toBe("assistant: The clerk has done it.");
  });
});

describe("AG-UI", () => {
  it("AG-UI answers a known message from the store, once, and an edited message in a new branch", async () => {
    const client = clientOf("echo", "known");
    await say(client, "m1", "hi");
    const before = structuredClone(client.messages);
    await client.runAgent();
    expect(client.messages).toEqual(before);
    client.setMessages([{ id: "m1", role: "user", content: "hi" }]);
    const { newMessages } = await client.runAgent();
    expect(texts(newMessages)).toEqual(["reasoning: Hm.", "assistant: 1: hi"]);
    const view = server.runtime.forTenant({ tenantId: "acme", userId: "ann" });
    expect((await view.list({ sessionId: await sessionOfAnn(view, "known") })).runs.length).toBe(1);
    client.setMessages([{ id: "m1", role: "user", content: "ho" }]);
    expect(texts((await client.runAgent()).newMessages).at(-1)).toBe("assistant: 1: ho");
    const path = await view.sessions.path(await sessionOfAnn(view, "known"));
    expect(path.filter(({ type }) => type === "message").length).toBe(2);
  });

  it("AG-UI sends several new messages to the agent together, and does not repeat known ones", async () => {
    const client = clientOf("echo", "several");
    await say(client, "m1", "one");
    client.addMessage({ id: "m2", role: "user", content: "two" });
    await say(client, "m3", "three");
    expect(texts(client.messages).at(-1)).toBe("assistant: 2: twothree");
    const before = structuredClone(client.messages);
    await client.runAgent();
    expect(client.messages).toEqual(before);
  });

  it("AG-UI gives a message that became steering to the model once, and answers its repetition with the messages after it", async () => {
    const client = clientOf("porter", "steered");
    await say(client, "m1", "one");
    for (const [id, content] of [
      ["m2", "two"],
      ["m3", "three"],
    ] as const) {
      client.addMessage({ id, role: "user", content });
      const { threadId, messages } = client;
      const body = { threadId, runId: id, messages, state: {}, tools: [], context: [], forwardedProps: {} };
      expect((await server.call("POST", "/api/ag-ui/porter", { token, body })).status).toBe(200);
    }
    const view = server.runtime.forTenant({ tenantId: "acme", userId: "ann" });
    const [summary] = (await view.list({ sessionId: await sessionOfAnn(view, "steered") })).runs;
    const run = await view.find(summary?.runId ?? "");
    const received = (await run?.receivedInput()) ?? [];
    expect(received.map(({ metadata }) => metadata?.["clientMessageId"])).toEqual(["m2", "m3"]);
    expect(JSON.stringify(received.map(({ input }) => input))).not.toContain("twothree");
    expect(received.map(({ input }) => (input as readonly unknown[]).length)).toEqual([1, 1]);
    const [question] = (await run?.pendingApprovals()) ?? [];
    await run?.approve(question?.approvalId ?? "", { decision: "approved" });
    await run?.result();
    const other = clientOf("porter", "steered");
    other.addMessage({ id: "m1", role: "user", content: "one" });
    const { newMessages } = await say(other, "m2", "two");
    expect(texts(newMessages)).toContain("assistant: Done.");
    expect(texts(newMessages)).not.toContain("assistant: I ask first.");
  });

  it("AG-UI skips a call whose interrupt is cancelled, and passes a denial to the model", async () => {
    for (const [thread, answer, said] of [
      ["cancelled", { status: "cancelled" }, /skip/iu],
      ["denied", { status: "resolved", payload: { approved: false, reason: "not now" } }, /not now/u],
    ] as const) {
      const client = clientOf("clerk", thread);
      await say(client, "m1", "Write to bob");
      const [interrupt] = client.pendingInterrupts;
      await client.runAgent({ resume: [{ interruptId: interrupt?.id ?? "", ...answer }] });
      expect(texts(client.messages).at(-1)).toBe("assistant: Done.");
      expect(texts(client.messages).at(-2)).toMatch(said);
    }
  });

  it("AG-UI reports a failed run as RUN_ERROR, and a cancelled run as its outcome", async () => {
    const client = clientOf("broken", "broken");
    let code: string | undefined;
    client.subscribe({ onRunErrorEvent: ({ event }) => void (code = event.code) });
    await say(client, "m1", "hi");
    expect([client.seen.at(-1), code]).toEqual(["RUN_ERROR", "model_format_error"]);
    const waiting = clientOf("clerk", "stopped");
    await say(waiting, "m1", "Write to bob");
    const { json } = await server.call("GET", "/api/runs?sessionId=stopped", { token });
    const [run] = json["runs"] as unknown as readonly { readonly runId: string }[];
    await server.call("POST", `/api/runs/${run?.runId}/cancel`, { token });
    const handle = await server.runtime.find(run?.runId ?? "");
    await handle?.result();
    const { text } = await server.call("POST", "/api/ag-ui/clerk", {
      token,
      body: {
        threadId: "stopped",
        runId: "r",
        messages: [{ id: "m1", role: "user", content: "Write to bob" }],
      },
    });
    expect(text).toContain('"outcome":{"type":"cancelled"}');
  });
});
