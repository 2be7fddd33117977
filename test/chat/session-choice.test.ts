import { expect, onTestFinished, test } from "vitest";
import { Agent } from "../../src/assembly/agent.ts";
import { openRuntime } from "../../src/assembly/open-runtime.ts";
import type { Extension } from "../../src/kernel/index.ts";
import { chatCommand } from "../../src/surfaces/cli/chat/chat-command.ts";
import { RouteClient } from "../../src/surfaces/client/route-client.ts";
import { Conversation } from "../../src/surfaces/cli/chat/client/conversation.ts";
import { ownPlace } from "../../src/surfaces/cli/chat/client/server-place.ts";
import { runExtension } from "../../src/surfaces/cli/chat/front/chat-commands.ts";
import { createServer, listen } from "../../src/surfaces/server/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";

/** A server with two agents. The extension of the first agent starts a new session. */
async function openChat() {
  const desk: Extension = {
    name: "desk",
    setup: (api) =>
      api.registerCommand({
        name: "fresh",
        description: "Starts a new session",
        run: async (_args, context) => void (await context.newSession()),
      }),
  };
  const host = new Agent({ name: "host", model: scriptedModel(["One.", "Two."]), extensions: [desk] });
  const other = new Agent({ name: "other", model: scriptedModel([]) });
  const runtime = await openRuntime({ unknownPrice: "ignore" });
  const server = createServer(runtime, { agents: [host, other], tokens: null });
  const driven: string[] = [];
  const client = new RouteClient(ownPlace(server));
  const conversation = new Conversation({
    client,
    agent: "host",
    onOpen: (sessionId) => void driven.push(sessionId),
    onChange: () => undefined,
  });
  onTestFinished(async () => {
    conversation.close();
    await server.drain();
    await runtime.close();
  });
  return { server, client, conversation, driven };
}

const { signal } = new AbortController();

test("an extension command that starts a new session moves the chat there, and the next prompt creates the session", async () => {
  const { client, conversation, driven } = await openChat();
  await conversation.send("First");
  await conversation.untilIdle(signal);
  const first = conversation.sessionId;
  expect(await runExtension({ client, conversation }, "/fresh")).toBe(true);
  expect([conversation.sessionId, conversation.model.items]).toEqual([undefined, []]);
  const { plannedId } = conversation;
  expect(plannedId).not.toBe(first);
  await conversation.send("Second");
  await conversation.untilIdle(signal);
  expect(conversation.sessionId).toBe(plannedId);
  expect(driven).toEqual([first, plannedId]);
  expect(conversation.model.items.flatMap(({ item }) => (item.kind === "answer" ? [item.text] : []))).toEqual(
    ["Two."],
  );
});

test("a name that is given to a chat before the first prompt becomes that of the session that an extension has chosen", async () => {
  const { client, conversation } = await openChat();
  await conversation.show("ses_chosen");
  await conversation.change({ name: "Lamps" });
  expect(conversation.sessionId).toBe("ses_chosen");
  const { name } = await client.get("/api/sessions/{sessionId}", { params: { sessionId: "ses_chosen" } });
  expect(name).toBe("Lamps");
});

test("reeve chat refuses --agent with the session of another agent, and names both agents", async () => {
  const { server, conversation } = await openChat();
  await conversation.send("First");
  await conversation.untilIdle(signal);
  const { sessionId = "" } = conversation;
  const listening = await listen(server, { port: 0 });
  onTestFinished(() => listening.close());
  const terminal = {
    out: async () => undefined,
    put: () => undefined,
    say: () => undefined,
    isWatched: false,
    canAsk: false,
    ask: async () => undefined,
    input: async () => "",
    onInterrupt: () => () => undefined,
    env: {},
  };
  const options = { url: listening.url, mode: "text", store: "memory:", session: sessionId, agent: "other" };
  await expect(chatCommand(options, terminal)).rejects.toThrow(
    `invalid --agent "other": session ${sessionId} belongs to agent "host"; leave out --agent`,
  );
});
