import { expect, test } from "vitest";
import { Agent } from "../../src/assembly/agent.ts";
import { openRuntime } from "../../src/assembly/open-runtime.ts";
import { assistantMessage, userMessage, type SessionEntry } from "../../src/kernel/index.ts";
import { RouteClient } from "../../src/surfaces/client/route-client.ts";
import { Conversation } from "../../src/surfaces/cli/chat/client/conversation.ts";
import { ownPlace } from "../../src/surfaces/cli/chat/client/server-place.ts";
import { statusLine } from "../../src/surfaces/cli/chat/front/status-line.ts";
import { createServer } from "../../src/surfaces/server/server.ts";
import { scriptedModel } from "../../src/testing/index.ts";

/** Entries of a conversation, one after the other. */
function entriesOf(count: number): readonly SessionEntry[] {
  return Array.from({ length: count }, (_, at) => ({
    type: "message",
    id: `e${at}`,
    parentId: at === 0 ? null : `e${at - 1}`,
    at: 1,
    runId: null,
    taskId: null,
    message: at % 2 === 0 ? userMessage(`question ${at}`) : assistantMessage(`answer ${at}`),
  }));
}

test.for([
  { count: 400, shown: 400, isCut: false },
  { count: 402, shown: 400, isCut: true },
])("a chat reads the newest entries of a session of $count entries", async ({ count, shown, isCut }) => {
  await using runtime = await openRuntime({ unknownPrice: "ignore" });
  const agent = new Agent({ name: "host", model: scriptedModel([]), tools: [] });
  const server = createServer(runtime, { agents: [agent], tokens: null });
  const sessionId = await runtime.sessions.import({ agentId: "host", entries: entriesOf(count) });
  const asked: string[] = [];
  const { fetch, ...place } = ownPlace(server);
  const client = new RouteClient({
    ...place,
    fetch: (request) => {
      asked.push(new URL(request.url).pathname);
      return fetch(request);
    },
  });
  let atUsage = 0;
  const conversation: Conversation = new Conversation({
    client,
    agent: "host",
    onOpen: () => undefined,
    onChange: () => {
      if (!asked.some((path) => path.endsWith("/context-usage"))) atUsage = conversation.model.items.length;
    },
  });
  await conversation.open(sessionId);
  const texts = conversation.model.items.map(({ item }) => ("text" in item ? item.text : ""));
  expect(texts).toHaveLength(shown);
  expect(texts[0]).toBe(`question ${count - shown}`);
  expect(texts.at(-1)).toBe(`answer ${count - 1}`);
  expect(conversation.isCut).toBe(isCut);
  // The conversation is there before its whole path is read for the use of the window.
  expect(atUsage).toBe(shown);
  expect(conversation.usage).toBeDefined();
  conversation.close();
  await server.drain();
});

test("the cost of a chat conversation covers all its runs, and at least the newest ones while older ones are read", async () => {
  await using runtime = await openRuntime({ unknownPrice: "ignore" });
  const usage = { costUsd: 0.01 };
  const model = scriptedModel(Array.from({ length: 5 }, (_, at) => ({ text: `${at}.`, usage })));
  const agent = new Agent({ name: "host", model, tools: [] });
  const server = createServer(runtime, { agents: [agent], tokens: null });
  for (let at = 0; at < 5; at++) await (await runtime.submit(agent, "Hi", { sessionId: "long" })).result();
  const { fetch, ...place } = ownPlace(server);
  const client = new RouteClient({
    ...place,
    // A page has two runs.
    fetch: (request) => fetch(new Request(request.url.replace("limit=200", "limit=2"), request)),
  });
  const lines: string[] = [];
  const conversation: Conversation = new Conversation({
    client,
    agent: "host",
    onOpen: () => undefined,
    onChange: () => void lines.push(statusLine(conversation, undefined)),
  });
  await conversation.open("long");
  expect([conversation.costUsd, conversation.isCostPartial]).toEqual([0.05, false]);
  expect(lines.filter((line) => line.includes(" · at least $0.0200"))).not.toEqual([]);
  expect(lines.at(-1)).toContain(" · $0.0500");
  conversation.close();
  await server.drain();
});
