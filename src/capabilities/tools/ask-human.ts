import type { Tool } from "../../kernel/index.ts";
import { errorResult, toolResult } from "./tool-result.ts";
import { tool } from "./tool.ts";

export interface AskHumanToolOptions {
  /** Said to the model besides what the tool does: who answers, and what to ask them. */
  readonly about?: string;
}

const input = {
  type: "object",
  properties: {
    question: { type: "string", minLength: 1 },
    options: {
      type: "array",
      items: { type: "string" },
      description: "Answers to choose from, if there are some",
    },
  },
  required: ["question"],
  additionalProperties: false,
} as const;

/**
 * Asks a person and waits, over restarts, without an open call and with the clock standing still. The log tells `question_ask`;
 * `run.signal(name, answer, taskId)` with its name and task answers it.
 */
export function askHumanTool({ about }: AskHumanToolOptions = {}): Tool {
  return tool({
    name: "ask_human",
    description: ["Asks a person a question and waits for the answer, however long it takes.", about]
      .filter(Boolean)
      .join(" "),
    input,
    suspends: true,
    execute: async (question, { ctx, idempotencyKey }) => {
      const answer = await ctx.waitForSignal(`answer ${idempotencyKey}`, { question: { ...question } });
      return answer === undefined || answer === null
        ? errorResult("the person gave no answer: go on without one, or ask otherwise")
        : toolResult(answer);
    },
  });
}
