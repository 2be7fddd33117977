import { createAnthropic } from "@ai-sdk/anthropic";
import { expect, test } from "vitest";
import {
  Agent,
  memoryStore,
  openRuntime,
  sha256,
  tool,
  withSettings,
  type AgentOptions,
} from "../../src/entries/index.ts";
import type { ChatMessage, ModelCallOptions } from "../../src/kernel/index.ts";
import { toModel } from "../../src/capabilities/index.ts";
import {
  blocksOf,
  CachingServer,
  withoutMark,
  type CachedAnswer,
  type MessagesBody,
} from "./caching-server.ts";

const prompt = "List what you have learnt so far.";
const screen = "The screen is blue.";
const live: ChatMessage = { role: "user", content: [{ type: "text", text: screen }] };

/** An agent on the server: it calls its tool in the first two turns of each question, then answers. */
async function setUp(options: Partial<AgentOptions> = {}) {
  const server = new CachingServer((body) => answerTo(body));
  const baseURL = await server.start();
  const model = toModel(createAnthropic({ apiKey: "not-a-key", baseURL })("claude-sonnet-5"));
  const look = tool({
    name: "look",
    description: "Looks at a page of the archive",
    inputSchema: { type: "object", properties: {} },
    execute: () => "A line of the archive. ".repeat(60),
  });
  const ask = tool({
    name: "ask",
    description: "Asks a child",
    inputSchema: { type: "object", properties: {} },
    execute: async (_input, { ctx }) => {
      const spawned = await ctx.child({ prompt, tools: ["look"] });
      return spawned.kind === "refused" ? spawned.reason : (await ctx.join(spawned.handle)).status;
    },
  });
  const runtime = await openRuntime({ store: memoryStore({ hash: sha256 }), unknownPrice: "ignore" });
  const instructions = "You answer questions about the archive. ".repeat(50);
  const agent = new Agent({ name: "clerk", model, instructions, tools: [look, ask], ...options });
  const close = async (): Promise<void> => {
    await runtime.close();
    await server.stop();
  };
  return { server, model, runtime, agent, close };
}

/** Answers for a model that calls the tool that the last question names, twice, and then answers. */
function answerTo({ messages }: MessagesBody): CachedAnswer {
  const questions = messages.map(({ role, content }) =>
    content.findLast(({ type, text }) => role === "user" && type === "text" && text !== screen),
  );
  const last = questions.findLastIndex((block) => block !== undefined);
  const question = String(questions[last]?.["text"]);
  const turns = messages.slice(last + 1).filter(({ role }) => role === "assistant").length;
  if (question.endsWith(prompt) || turns === 2) return { text: "It rains in the archive." };
  return { tool: question === "Ask." ? "ask" : "look" };
}

const marksOf = (body: MessagesBody | undefined): readonly number[] =>
  body === undefined
    ? []
    : blocksOf(body).flatMap((block, place) => (block["cache_control"] === undefined ? [] : [place]));

const bare = (body: MessagesBody | undefined): readonly object[] =>
  body === undefined ? [] : blocksOf(body).map(withoutMark);

test.each(["ctx.child()", "agent.spawnChild()"])(
  "the first request of %s repeats the parent's last request up to the answer, and marks the same last block for the cache",
  async (kind) => {
    const { server, agent, runtime, close } = await setUp({
      ephemeral: kind === "ctx.child()" ? [{ name: "screen", messages: async () => [live] }] : [],
    });
    const { sessionId } = await agent.invoke(kind === "ctx.child()" ? "Ask." : "Where?", { runtime });
    if (kind !== "ctx.child()") await (await agent.spawnChild({ sessionId, prompt, runtime })).result();
    const at = server.requests.findIndex((body) => JSON.stringify(body).includes(prompt));
    const [parent, child] = [server.requests[at - 1], server.requests[at]];
    const withoutLive = bare(parent).filter((block) => !JSON.stringify(block).includes(screen));
    const shared = bare(child).slice(0, withoutLive.length);
    expect(JSON.stringify(shared)).toBe(JSON.stringify(withoutLive));
    // The answer follows, and the result of its open call.
    expect(bare(child).slice(shared.length, -1)).toHaveLength(kind === "ctx.child()" ? 2 : 1);
    expect(bare(child).at(-1)).toEqual({ role: "user", type: "text", text: prompt });
    expect(marksOf(child)).toContain(marksOf(parent).at(-1));
    const { messages: _own, system: _system, tools: _tools, ...settings } = child ?? { messages: [] };
    expect(parent).toMatchObject(settings);
    await close();
  },
);

/** The share of the input tokens that the cache held, for ten questions of three turns each and three children. */
async function cachedShare(isShared: boolean): Promise<number> {
  const { server, model, agent, runtime, close } = await setUp();
  const reviewer = new Agent({ name: "reviewer", model, instructions: "You review conversations." });
  let sessionId: string | undefined;
  for (let question = 1; question <= 10; question++) {
    const options = { runtime, ...(sessionId !== undefined && { sessionId }) };
    ({ sessionId } = await agent.invoke(`Question ${question}?`, options));
    if (question % 3 !== 0) continue;
    if (isShared) await (await agent.spawnChild({ sessionId, prompt, runtime })).result();
    else {
      const path = await runtime.sessions.path(sessionId);
      const said = path.flatMap((entry) => (entry.type === "message" ? [entry.message] : []));
      await reviewer.invoke(`${JSON.stringify(said)}\n\n${prompt}`, { runtime });
    }
  }
  const { input, cached } = server.totals;
  expect(server.requests).toHaveLength(33);
  await close();
  return cached / input;
}

test("over 30 turns and three children, the prompt cache holds at least 85 % of the input tokens, and more than without sharing", async () => {
  const [shared, separate] = [await cachedShare(true), await cachedShare(false)];
  expect(shared).toBeGreaterThanOrEqual(0.85);
  expect(separate).toBeLessThan(0.85);
});

test("a request has no cache marks of the runtime with promptCache: false or with a mark of the caller", async () => {
  const { server, model, close } = await setUp();
  const text = { type: "text", text: "Where?" } as const;
  const marked: ChatMessage = {
    role: "user",
    content: [{ ...text, providerMetadata: { anthropic: { cacheControl: { type: "ephemeral" } } } }],
  };
  const plain: ChatMessage = { role: "user", content: [text] };
  const options: ModelCallOptions = {};
  await withSettings(model, { promptCache: false }).generate({ messages: [plain] }, options);
  await model.generate({ messages: [marked, { role: "assistant", content: [text] }, plain] }, options);
  await model.generate({ messages: [plain] }, options);
  expect(server.requests.map((body) => marksOf(body))).toEqual([[], [0], [0]]);
  await close();
});
