import { formatRunId, type JsonValue, type RunId, type Store } from "../../../src/kernel/index.ts";
import { loop, servedAgent } from "../served-agent.ts";
import { lengthOf, modelAnswer, type Said, type Workload } from "../workload.ts";

const runId = formatRunId("large");
const tools = ["read", "list"];

/** Both tools return this same text, and one tool returns it in a long list. The store keeps these values as contents. */
const page = "a page of a large document\n".repeat(180);
const lines = Array.from({ length: 500 }, (_, index) => `line ${index}`);

function said(messages: number): Said {
  if (messages === 1) return { calls: tools.map((name) => ({ name, input: { page: 1 } })) };
  if (messages === 3) return { calls: [{ name: "read", input: { page, again: true } }] };
  return { text: `read: ${page}` };
}

function resultOf(name: string): JsonValue {
  return name === "list" ? { page, lines } : { page };
}

/** A run whose tools return, and whose model sends, large values, and a fork that shares them. */
export const largeValues: Workload = {
  agents: (server) => [servedAgent(server, { name: "reader", tools, run: (ctx) => loop(ctx, page) })],
  drive: async ({ runtime, store, agent, pinned }) => {
    const run = await runtime.submit(agent, { page }, { runId });
    await run.result();
    const at = await seqAfterTools(store, runId);
    const forked = await pinned("forked", () => run.fork({ at }));
    await forked.result();
    return [runId, forked.runId];
  },
  outputs: [`read: ${page}`, `read: ${page}`],
  world: {
    branches: 2,
    answering: ({ name, body }) =>
      name === "model" ? modelAnswer(lengthOf(body), said(lengthOf(body))) : { body: resultOf(name) },
  },
};

/** Last seq of the commit that records the last tool of the first turn, because a fork contains whole commits. */
async function seqAfterTools(store: Store, origin: RunId): Promise<number> {
  let results = 0;
  for await (const { steps = [], events = [] } of store.journal.read(origin)) {
    results += steps.filter(({ kind }) => kind === "tool").length;
    const last = events.at(-1);
    if (last !== undefined && results >= tools.length) return last.seq;
  }
  throw new Error(`${origin} has no recorded tool calls`);
}
