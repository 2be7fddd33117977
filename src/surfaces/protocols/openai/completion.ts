import type { AnswerEnd, AnswerPart, WaitingQuestion } from "../../../agents/index.ts";
import {
  CancellationError,
  Fault,
  reviveFault,
  totalTokens,
  type ApprovalRequest,
  type RunHandle,
  type Usage,
  visibleText,
} from "../../../kernel/index.ts";
import {
  choice,
  integer,
  list,
  named,
  nullable,
  object,
  optional,
  schemaOf,
  text,
  type ValueOf,
} from "../../http/schema/schema.ts";
import { readQuestions } from "../client-answers.ts";
import { callIdOf } from "./openai-ids.ts";

const usage = named(
  "OpenAiUsage",
  object({
    prompt_tokens: integer(),
    completion_tokens: integer(),
    total_tokens: integer(),
    prompt_tokens_details: object({ cached_tokens: integer() }),
    completion_tokens_details: object({ reasoning_tokens: integer() }),
  }),
);

const finishReasons = ["stop", "length", "content_filter", "tool_calls"] as const;

const toolCall = object({
  id: text({ description: "Send the output as a message of the role `tool` with this `tool_call_id`." }),
  type: choice(["function"]),
  function: object({ name: text(), arguments: text({ description: "An object in JSON." }) }),
});

type ToolCallView = ValueOf<typeof toolCall>;

export type FinishReason = (typeof finishReasons)[number];

export const completionSchema = named(
  "ChatCompletion",
  object({
    id: text({ description: "`chatcmpl-` and the id of the run." }),
    object: choice(["chat.completion"]),
    created: integer({ description: "Epoch seconds." }),
    model: text({ description: "Name of the agent." }),
    choices: list(
      object({
        index: integer(),
        message: object({
          role: choice(["assistant"]),
          content: nullable(text()),
          refusal: nullable(text()),
          tool_calls: optional(list(toolCall)),
        }),
        logprobs: schemaOf<null>({ type: "null" }),
        finish_reason: choice(finishReasons),
      }),
    ),
    usage: optional(usage),
  }),
);

export type Completion = ValueOf<typeof completionSchema>;

/** Fields that all messages of one answer share. */
export interface CompletionHead {
  readonly id: string;
  /** Epoch seconds. */
  readonly created: number;
  readonly model: string;
}

/** The last part of an answer. */
export type LastPart = Extract<AnswerPart, { readonly type: "waiting" | "end" }>;

/** How an answer ends. */
export interface Closing {
  readonly finishReason: FinishReason;
  /** Text after the answer: why it ends. Empty if it is complete, or if the client has to execute calls. */
  readonly added: string;
  /** The calls that the client has to execute. */
  readonly calls: readonly ToolCallView[];
  /** Usage of all tasks of the run. */
  readonly usage: Usage;
}

/**
 * How an answer ends. Throws the fault of a run that failed or was cancelled. A run that waits for the client's functions ends the
 * answer with their calls, and one that waits for a person with a sentence that names it.
 */
export async function closingOf(run: RunHandle, part: LastPart): Promise<Closing> {
  if (part.type === "end")
    return { finishReason: finishReasonOf(run, part), added: "", calls: [], usage: part.usage };
  const { usage: used } = await run.summary();
  const calls = await callsOf(run, part.questions);
  if (calls.length > 0) return { finishReason: "tool_calls", added: "", calls, usage: used };
  return { finishReason: "stop", added: waitingText(run, part.questions), calls, usage: used };
}

/** The calls of functions that the client has to execute. */
async function callsOf(
  run: RunHandle,
  questions: readonly WaitingQuestion[],
): Promise<readonly ToolCallView[]> {
  const calls = questions.filter(({ kind }) => kind === "client_tool");
  if (calls.length === 0) return [];
  const { all } = await readQuestions(run);
  return calls.map(({ questionId, toolName, input }) => ({
    id: callIdOf({ runId: run.runId, index: all.findIndex((each) => each.questionId === questionId) }),
    type: "function",
    function: { name: toolName, arguments: JSON.stringify(input) },
  }));
}

/** Text that tells a person what a run waits for. */
export function waitingText(
  { runId }: Pick<RunHandle, "runId">,
  questions: readonly ApprovalRequest[],
): string {
  const sentences = questions.map(
    ({ approvalId, toolName, reason }) =>
      `Run ${runId} waits for a person: approval ${approvalId} of ${toolName} (${visibleText(reason)}). Answer it with POST /api/runs/${runId}/decide.`,
  );
  return sentences.join("\n");
}

function finishReasonOf(
  { runId }: RunHandle,
  { status, finishReason, failure, reason }: AnswerEnd,
): FinishReason {
  switch (status) {
    case "completed":
      return finishReason === "content_blocked" ? "content_filter" : "stop";
    case "max_output":
    case "max_turns":
    case "budget_exhausted":
    case "deadline_exceeded":
      return "length";
    case "guardrail_tripped":
      return "content_filter";
    case "cancelled":
      throw new CancellationError(`run ${runId} was cancelled: ${reason ?? "no reason"}`);
    case "paused":
    case "failed":
      throw failure === null
        ? new Fault("internal", `run ${runId} ended with the status ${status}: ${reason ?? "no reason"}`)
        : reviveFault(failure);
  }
}

/** Collects the text of an answer. */
export class CompletionText {
  readonly #isStructured: boolean;
  /** The texts of the messages, in their order. */
  readonly #texts = new Map<string, string>();
  #output = "";

  /** With a structured answer, only the output is used, without the texts that the model writes before it. */
  constructor(isStructured: boolean) {
    this.#isStructured = isStructured;
  }

  add(part: AnswerPart): void {
    if (part.type === "end" && this.#isStructured) this.#output = outputText(part);
    if (part.type === "message_reset") this.#texts.delete(part.messageId);
    if (part.type === "text" && part.isAnswer)
      this.#texts.set(part.messageId, (this.#texts.get(part.messageId) ?? "") + part.text);
  }

  toString(): string {
    return this.#isStructured ? this.#output : [...this.#texts.values()].join("\n\n");
  }
}

/** The output of a run as text. */
export function outputText({ output }: AnswerEnd): string {
  return typeof output === "string" ? output : JSON.stringify(output);
}

/** Returns the complete answer to a request without `stream`. */
export function completionOf(head: CompletionHead, said: string, closing: Closing): Completion {
  const { calls } = closing;
  const content = joined(said, closing.added);
  const isWithheld = content === "" && closing.finishReason === "content_filter";
  return {
    ...head,
    object: "chat.completion",
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: calls.length > 0 && content === "" ? null : content,
          refusal: isWithheld ? withheld : null,
          ...(calls.length > 0 && { tool_calls: calls }),
        },
        logprobs: null,
        finish_reason: closing.finishReason,
      },
    ],
    usage: usageOf(closing.usage),
  };
}

const withheld = "The answer was withheld.";

/** Texts with an empty line between them. */
export function joined(said: string, added: string): string {
  return said === "" || added === "" ? said + added : `${said}\n\n${added}`;
}

export function usageOf(used: Usage): ValueOf<typeof usage> {
  return {
    prompt_tokens: used.inputTokens,
    completion_tokens: used.outputTokens,
    total_tokens: totalTokens(used),
    prompt_tokens_details: { cached_tokens: used.cacheReadTokens },
    completion_tokens_details: { reasoning_tokens: used.reasoningTokens },
  };
}
