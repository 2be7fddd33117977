import type { Tool } from "../../kernel/index.ts";
import { errorResult, toolResult } from "./tool-result.ts";
import { tool } from "./tool.ts";

export interface AskHumanToolOptions {
  /** Said to the model besides what the tool does: who answers, and what to ask them. */
  readonly about?: string;
}

const name = "ask_human";
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
 * Asks a person and waits, over restarts, without an open call and with the clock standing still. The log tells `approval_request`, with
 * the question as its input; `run.approve(approvalId, { decision: "approved", input: answer })` answers it.
 */
export function askHumanTool({ about }: AskHumanToolOptions = {}): Tool {
  return tool({
    name,
    description: ["Asks a person a question and waits for the answer, however long it takes.", about]
      .filter(Boolean)
      .join(" "),
    inputSchema: input,
    suspends: true,
    execute: async (question, { ctx, callId }) => {
      const asked = { toolName: name, callId, input: { ...question }, reason: question.question };
      const decision = await ctx.approval(asked);
      if (decision.decision === "denied")
        return errorResult(`the person does not answer: ${decision.reason ?? "no reason given"}`);
      const answer = decision.decision === "approved" ? (decision.input ?? null) : null;
      return answer === null
        ? errorResult("the person gave no answer: go on without one, or ask otherwise")
        : toolResult(answer);
    },
  });
}
