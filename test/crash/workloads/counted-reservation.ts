import { formatRunId, messageText, Transcript, userMessage } from "../../../src/kernel/index.ts";
import { servedAgent } from "../served-agent.ts";
import { modelAnswer, outputLimit, toolAnswer, type Workload } from "../workload.ts";

const runId = formatRunId("counted-reservation");
/** Less than the bytes of one prompt, but enough for all counted calls and those lost in crashes. */
const maxTokens = 3_000;
const prompt = (part: number): string => `${part} ${"word ".repeat(1_000)}`;

/**
 * Three calls whose bound by bytes does not fit the budget, so that the model counts the tokens of each call. The count
 * is recorded: a call that is repeated after a crash is not counted again.
 */
export const countedReservation: Workload = {
  agents: (server) => [
    servedAgent(server, {
      name: "reader",
      budget: { maxTokens },
      counts: true,
      run: async (ctx) => {
        const read: string[] = [];
        for (const part of [1, 2, 3]) {
          const transcript = Transcript.of([userMessage(prompt(part))]);
          const { message } = await ctx.llm({ transcript, maxOutputTokens: outputLimit });
          read.push(messageText(message));
        }
        return read.join(" ");
      },
    }),
  ],
  drive: async ({ runtime, agent }) => {
    const run = await runtime.submit(agent, "go", { runId });
    await run.result();
    return [runId];
  },
  outputs: ["read read read"],
  world: {
    branches: 1,
    answering: ({ name, body }) => {
      if (name === "count") return { body: 12 };
      return name === "model" ? modelAnswer(1, { text: "read" }) : toolAnswer(name, body);
    },
  },
};
