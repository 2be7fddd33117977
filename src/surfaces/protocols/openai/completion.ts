import type { AnswerEnd, AnswerPart } from "../../../agents/index.ts";
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

const finishReasons = ["stop", "length", "content_filter"] as const;

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
        }),
        logprobs: schemaOf<null>({ type: "null" }),
        finish_reason: choice(finishReasons),
      }),
    ),
    usage: optional(usage),
  }),
);

export type Completion = ValueOf<typeof completionSchema>;

/** What all messages of one answer have in common. */
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
  /** Text after the answer: why it ends. Empty if it is complete. */
  readonly added: string;
  /** Usage of all tasks of the run. */
  readonly usage: Usage;
}

/**
 * How an answer ends. Throws the fault of a run that failed or was cancelled. A run that waits for a person ends the
 * answer with a sentence that names it.
 */
export async function closingOf(run: RunHandle, part: LastPart): Promise<Closing> {
  if (part.type === "end") return { finishReason: finishReasonOf(run, part), added: "", usage: part.usage };
  const { usage: used } = await run.summary();
  return { finishReason: "stop", added: waitingText(run, part.questions), usage: used };
}

/** Text that tells a person what a run waits for. */
function waitingText({ runId }: RunHandle, questions: readonly ApprovalRequest[]): string {
  const sentences = questions.map(({ approvalId, kind, toolName, reason }) =>
    kind === "client_tool"
      ? `Run ${runId} waits for the result of ${toolName}, call ${approvalId}: send it with POST /api/runs/${runId}/tool-result.`
      : `Run ${runId} waits for a person: approval ${approvalId} of ${toolName} (${visibleText(reason)}). Answer it with POST /api/runs/${runId}/decide.`,
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

  /** With a structured answer, only the output counts, and not the texts of the model on the way to it. */
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

/** The whole answer of a request without `stream`. */
export function completionOf(head: CompletionHead, said: string, closing: Closing): Completion {
  const content = joined(said, closing.added);
  const isWithheld = content === "" && closing.finishReason === "content_filter";
  return {
    ...head,
    object: "chat.completion",
    choices: [
      {
        index: 0,
        message: { role: "assistant", content, refusal: isWithheld ? withheld : null },
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
