import type { AnswerPart } from "../../../agents/index.ts";
import { Fault, type JsonValue, type RunHandle } from "../../../kernel/index.ts";
import { problemOf } from "../../http/problem.ts";
import { sseFrame } from "../../http/streams/sse-stream.ts";
import type { AnswerEncoder } from "../answer-response.ts";
import {
  closingOf,
  joined,
  outputText,
  usageOf,
  type CompletionHead,
  type FinishReason,
} from "./completion.ts";
import { openAiError } from "./openai-errors.ts";

export interface CompletionEncoderOptions {
  /** Whether the last message contains the usage. The other messages then contain `usage: null`. */
  readonly includesUsage: boolean;
  /** Whether only the output is sent, without the texts that the model writes before it. */
  readonly isStructured: boolean;
}

/** Converts an answer to the chunks of a streamed completion. */
export class CompletionEncoder implements AnswerEncoder {
  readonly #run: RunHandle;
  readonly #head: CompletionHead;
  readonly #options: CompletionEncoderOptions;
  #hasText = false;

  constructor(run: RunHandle, head: CompletionHead, options: CompletionEncoderOptions) {
    this.#run = run;
    this.#head = head;
    this.#options = options;
  }

  opening(): string {
    return this.#chunk({ role: "assistant", content: "" });
  }

  encode(part: AnswerPart): string | Promise<string> {
    if (part.type === "text")
      return this.#options.isStructured || !part.isAnswer ? "" : this.#text(part.piece);
    return part.type === "end" || part.type === "waiting" ? this.#last(part) : "";
  }

  /**
   * Returns the error for an answer that cannot be read to its end. The client throws it and does not repeat the
   * request.
   */
  failure(fault: Fault): string {
    return sseFrame(openAiError(problemOf(fault)));
  }

  async #last(part: Extract<AnswerPart, { readonly type: "waiting" | "end" }>): Promise<string> {
    let closing;
    try {
      closing = await closingOf(this.#run, part);
    } catch (error) {
      // The run has failed. The answer is complete, so this is no error of the server.
      return this.failure(Fault.from(error));
    }
    const { finishReason, added, calls, usage } = closing;
    const toolCalls = calls.map((call, index) => ({ index, ...call }));
    const output = this.#options.isStructured && part.type === "end" ? outputText(part) : "";
    const rest = this.#hasText && added !== "" ? `\n\n${added}` : joined(output, added);
    const used = { ...this.#head, object: "chat.completion.chunk", choices: [], usage: usageOf(usage) };
    return [
      rest === "" ? "" : this.#text(rest),
      toolCalls.length === 0 ? "" : this.#chunk({ tool_calls: toolCalls }),
      this.#chunk({}, finishReason),
      this.#options.includesUsage ? sseFrame(used) : "",
      "data: [DONE]\n\n",
    ].join("");
  }

  #text(content: string): string {
    if (content === "") return "";
    this.#hasText = true;
    return this.#chunk({ content });
  }

  #chunk(delta: JsonValue, finishReason: FinishReason | null = null): string {
    return sseFrame({
      ...this.#head,
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finishReason }],
      ...(this.#options.includesUsage && { usage: null }),
    });
  }
}
