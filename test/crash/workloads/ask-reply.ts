import { formatRunId, parseRunId, type JsonValue } from "../../../src/kernel/index.ts";
import { loop, servedAgent, use } from "../served-agent.ts";
import { lengthOf, modelAnswer, toolAnswer, type Workload } from "../workload.ts";

const runId = formatRunId("asker");

interface Answer {
  readonly by: string;
}

/** One agent asks another, which computes its answer in a separate run. */
export const askReply: Workload = {
  agents: (server) => {
    const helper = servedAgent(server, {
      name: "helper",
      tools: ["find"],
      run: async (ctx, { messages }) => {
        for (const message of messages) {
          const found = await use(ctx, "find", { what: message.body });
          await ctx.reply(message, { found, by: ctx.meta.runId });
        }
      },
    });
    const asker = servedAgent(server, {
      name: "asker",
      tools: ["prepare"],
      subAgents: [helper],
      run: async (ctx) => {
        await use(ctx, "prepare");
        const outcome = await ctx.ask(helper.id, "the key");
        const text = await loop(ctx, "sum it up");
        const body: JsonValue = outcome.kind === "replied" ? outcome.body : outcome.kind;
        return { text, body };
      },
    });
    return [asker];
  },
  drive: async ({ runtime, agent }) => {
    const run = await runtime.submit(agent, "go", { runId });
    const { output } = await run.result();
    const { by } = (output as unknown as { body: Answer }).body;
    const helper = await runtime.find(parseRunId(by));
    await helper?.result();
    return [runId, parseRunId(by)];
  },
  outputs: [{ text: "found", body: { found: { answer: { did: "find", with: { what: "the key" } } } } }, null],
  world: {
    branches: 1,
    answering: ({ name, body }) =>
      name === "model" ? modelAnswer(lengthOf(body), { text: "found" }) : toolAnswer(name, body),
  },
};
