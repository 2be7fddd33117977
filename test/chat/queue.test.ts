import { expect, test } from "vitest";
import { Agent } from "../../src/assembly/agent.ts";
import { openRuntime } from "../../src/assembly/open-runtime.ts";
import type { JsonObject } from "../../src/kernel/index.ts";
import { RouteClient } from "../../src/surfaces/client/route-client.ts";
import { Conversation } from "../../src/surfaces/cli/chat/client/conversation.ts";
import { ownPlace } from "../../src/surfaces/cli/chat/client/server-place.ts";
import { createServer } from "../../src/surfaces/server/server.ts";
import { scriptedModel } from "../../src/testing/index.ts";

test("a chat returns queued texts whose withdrawal no worker has answered, and says that they may have been read", async () => {
  await using runtime = await openRuntime({ unknownPrice: "ignore" });
  const agent = new Agent({ name: "host", model: scriptedModel(["Done."]), tools: [] });
  const server = createServer(runtime, { agents: [agent], tokens: null });
  const { fetch, ...place } = ownPlace(server);
  const client = new RouteClient({
    ...place,
    fetch: async (request) => {
      // The run starts later, so that no task reads the texts.
      if (request.url.endsWith("/api/runs") && request.method === "POST") {
        const body = JSON.stringify({ ...((await request.json()) as JsonObject), delayMs: 3_600_000 });
        return fetch(new Request(request.url, { method: "POST", headers: request.headers, body }));
      }
      if (!request.url.endsWith("/withdraw-input")) return fetch(request);
      // The server answers so when the worker of the run has not answered in time.
      const run = await fetch(new Request(request.url.replace("/withdraw-input", "")));
      return new Response(JSON.stringify({ run: await run.json() }), { status: 202 });
    },
  });
  const conversation = new Conversation({
    client,
    agent: "host",
    onOpen: () => undefined,
    onChange: () => undefined,
  });
  await conversation.send("Work");
  await conversation.send("faster");
  await conversation.followUp("then rest");
  await expect.poll(() => conversation.queue.length).toBe(2);
  const taken = await conversation.takeOut(conversation.queue);
  expect(taken.map(({ input }) => input)).toEqual(["faster", "then rest"]);
  const notes = conversation.model.items.flatMap(({ item }) => (item.kind === "note" ? [item.text] : []));
  expect(notes).toEqual([
    "Not known yet whether the agent has read: faster",
    "Not known yet whether the agent has read: then rest",
  ]);
  conversation.close();
  await server.drain();
});
