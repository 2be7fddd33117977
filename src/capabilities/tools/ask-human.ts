import { type Tool, is, optionTable, type OptionKinds } from "../../kernel/index.ts";
import { errorResult, toolResult } from "./tool-result.ts";
import { tool } from "./tool.ts";

/** Options of `askHumanTool()`. */
export interface AskHumanToolOptions {
  /** Text that is added to the tool's description, for example who answers and what to ask them. */
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
      description: "Answers to choose from, if there are any",
    },
  },
  required: ["question"],
  additionalProperties: false,
} as const;

const knownOptions = optionTable({ about: is.text() } satisfies OptionKinds<AskHumanToolOptions>);

/**
 * Creates the tool `ask_human`, which asks a person and waits durably for the answer. The wait survives restarts,
 * counts as no call in flight, and does not count for the task's deadline. The question is the input of an
 * `approval_request` event; `run.approve(approvalId, { decision: "approved", input: answer })` answers it.
 */
export function askHumanTool(options: AskHumanToolOptions = {}): Tool {
  const { about } = knownOptions.read("askHumanTool()", options);
  return tool({
    name,
    description: ["Ask a person a question and wait for the answer, however long it takes.", about]
      .filter(Boolean)
      .join(" "),
    inputSchema: input,
    suspends: true,
    execute: async (question, { ctx, callId }) => {
      const asked = { toolName: name, callId, input: { ...question }, reason: question.question };
      const decision = await ctx.approval(asked);
      if (decision.decision === "denied")
        return errorResult(`the person declined to answer: ${decision.reason ?? "no reason given"}`);
      const answer = decision.decision === "approved" ? (decision.input ?? null) : null;
      return answer === null
        ? errorResult("the person gave no answer: continue without one, or ask another way")
        : toolResult(answer);
    },
  });
}
