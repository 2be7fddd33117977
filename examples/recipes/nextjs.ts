// Route handlers for the App Router of Next.js: one answers pages with `useChat`, one serves Reeve's API below `/api`. A route handler is
// a function from Request to Response, so the program calls both as Next.js does, with the client of the AI SDK. Next.js is not installed.
import assert from "node:assert/strict";
import { DefaultChatTransport, readUIMessageStream, type UIMessage } from "ai";
import { Agent, openRuntime, openStore, tool } from "reeve";
import { createServer, storedTokens } from "reeve/server";
import { scriptedModel } from "reeve/testing";
import { z } from "zod";

// lib/reeve.ts. In development Next.js loads a changed module again: keep these values in `globalThis` there.
const trains = tool({
  name: "trains",
  description: "Lists the next trains to a town.",
  inputSchema: z.object({ town: z.string() }),
  execute: ({ town }) => `To ${town}: 9:12 and 10:40`,
});
const model = scriptedModel([
  { toolCalls: [{ name: "trains", input: { town: "Tours" } }] },
  { deltas: ["Take the train ", "at 9:12."] },
  "The next one leaves at 10:40.",
  "I do not know.",
  "Ask for the timetable.",
]);
const guide = new Agent({ name: "guide", model, tools: [trains] });
const store = await openStore("memory:"); // "sqlite:./reeve.db", or "postgres://HOST/DATABASE" for several instances
const runtime = await openRuntime({ store });
const tokens = storedTokens(store.records);
// `hosts` is the name under which browsers know the site. Default: this machine.
const server = createServer(runtime, { agents: [guide], tokens, hosts: ["shop.example"] });

/** The person who is signed in. A real site reads its session cookie here. */
function userOf(request: Request): string | undefined {
  return request.headers.get("x-user") ?? undefined;
}

/** The part of a request of `useChat` that is used: the history is that of the store. */
const chatRequest = z.object({
  id: z.string(),
  messages: z.array(z.object({ parts: z.array(z.object({ text: z.string().default("") })) })).min(1),
});

// app/api/ask/route.ts: export { ask as POST }
async function ask(request: Request): Promise<Response> {
  const userId = userOf(request);
  if (userId === undefined) return new Response("Sign in first.", { status: 401 });
  const { id, messages } = chatRequest.parse(await request.json());
  const question =
    messages
      .at(-1)
      ?.parts.map(({ text }) => text)
      .join("") ?? "";
  // A page chooses the id of its chat, so the user is a part of the name of the session.
  return guide.stream(question, { runtime, userId, sessionId: `${userId}:${id}` }).toResponse();
}

// app/api/[...path]/route.ts: export { api as GET, api as POST, api as PUT, api as PATCH, api as DELETE }
function api(request: Request): Promise<Response> {
  return server.fetch(request);
}

/** Sends a message as `useChat` does, and returns the text of the answer. */
async function say(user: string, chatId: string, text: string): Promise<string> {
  const transport = new DefaultChatTransport<UIMessage>({
    api: "https://shop.example/api/ask",
    headers: { "x-user": user },
    fetch: (url, init) => ask(new Request(url, init)),
  });
  const message: UIMessage = { id: crypto.randomUUID(), role: "user", parts: [{ type: "text", text }] };
  const stream = await transport.sendMessages({
    chatId,
    messages: [message],
    trigger: "submit-message",
    messageId: undefined,
    abortSignal: undefined,
  });
  let answer: UIMessage | undefined;
  for await (const state of readUIMessageStream({ stream })) answer = state;
  return answer?.parts.map((part) => (part.type === "text" ? part.text : "")).join("") ?? "";
}

const first = await say("ann", "trip", "How do I get to Tours?");
console.log(first);
assert.equal(first, "Take the train at 9:12.");
// The page sends no history, and the agent knows the conversation.
console.log(await say("ann", "trip", "And after that one?"));
assert.match(JSON.stringify(model.calls.at(-1)), /How do I get to Tours/u);
// Another person with the same chat id has another conversation.
console.log(await say("bob", "trip", "What did Ann ask?"));
assert.doesNotMatch(JSON.stringify(model.calls.at(-1)), /Tours\?/u);
const unknown = await ask(new Request("https://shop.example/api/ask", { method: "POST", body: "{}" }));
assert.equal(unknown.status, 401);

// Reeve's API: programs with a token start runs and read them.
const refused = await api(new Request("https://shop.example/api/runs"));
assert.equal(refused.status, 401);
const { token } = await tokens.create({ name: "desk", scope: "run", tenantId: "shop", userId: "cat" });
const started = await api(
  new Request("https://shop.example/api/runs", {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ agent: "guide", input: "Is there a bus?" }),
  }),
);
const { run } = z.object({ run: z.object({ runId: z.string() }) }).parse(await started.json());
const { output } = (await (await runtime.find(run.runId))?.result()) ?? {};
console.log(output);
assert.equal(output, "Ask for the timetable.");
await server.drain();
await runtime.close();
