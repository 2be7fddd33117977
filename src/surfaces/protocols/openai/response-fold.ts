import type { AnswerPart } from "../../../agents/index.ts";
import {
  addUsage,
  noUsage,
  type ApprovalRequest,
  type Delta,
  type Event,
  type JsonObject,
  type RunId,
  type Usage,
} from "../../../kernel/index.ts";
import { outputText, waitingText } from "./completion.ts";
import { attemptOf, callIdOf, itemIdOf } from "./openai-ids.ts";
import type { ResponseState } from "./response-resource.ts";

/** An event of a streamed answer, without its number. */
export interface ResponseEvent extends JsonObject {
  readonly type: string;
}

export interface ResponseFoldOptions {
  readonly runId: RunId;
  /** Number of questions of the run before this answer. */
  readonly questionsBefore: number;
  /** Whether only the output is shown, and not the texts of the model on the way to it. */
  readonly isStructured: boolean;
}

/** An item that is being written. */
interface OpenItem {
  readonly kind: "message" | "reasoning";
  readonly messageId: string;
  readonly id: string;
  readonly index: number;
  text: string;
}

/** A call of the client's functions. */
interface AskedCall {
  readonly questionId: string;
  readonly request: ApprovalRequest;
  readonly index: number;
}

/**
 * Converts the parts of an answer to the items of a response, and to the events that build them. The same parts of the log yield the
 * same events, so that a client which reconnects continues at the number of the last event that it has received.
 */
export class ResponseFold {
  readonly #options: ResponseFoldOptions;
  readonly #output: JsonObject[] = [];
  #open: OpenItem | undefined;
  #index = 0;
  #questions = 0;
  readonly #calls: AskedCall[] = [];
  #end: Partial<ResponseState> | undefined;
  /** Number of attempts whose items are void. */
  #resets = 0;
  #hasCalls = false;

  constructor(options: ResponseFoldOptions) {
    this.#options = options;
  }

  /** How the answer has ended. `undefined` while it continues. */
  get end(): Partial<ResponseState> | undefined {
    return this.#end;
  }

  /** The items that are complete. */
  get output(): readonly JsonObject[] {
    return this.#output;
  }

  /** Whether items were void, so that those of the response are only in the log. */
  get isReset(): boolean {
    return this.#resets > 0;
  }

  /** Ids of the calls that the client has to execute, once the answer has ended with them. Otherwise empty. */
  get calls(): readonly string[] {
    const { runId } = this.#options;
    return this.#hasCalls ? this.#calls.map(({ index }) => callIdOf({ runId, index })) : [];
  }

  /** Whether a question of the client's functions belongs to this answer. One of an earlier answer has its output on the way. */
  asks(questionId: string): boolean {
    return this.#calls.some((call) => call.questionId === questionId);
  }

  read(part: AnswerPart): readonly ResponseEvent[] {
    if (this.#end !== undefined) return [];
    switch (part.type) {
      case "text":
        return part.isAnswer && !this.#options.isStructured ? this.#write("message", part) : [];
      case "reasoning":
        return part.isAnswer ? this.#write("reasoning", part) : [];
      case "message_reset":
        return this.#reset();
      case "message_end":
        return this.#open?.messageId === part.messageId ? this.#close() : [];
      case "question": {
        const index = this.#options.questionsBefore + this.#questions++;
        const { questionId, request } = part;
        if (request.kind === "client_tool") this.#calls.push({ questionId, request, index });
        return [];
      }
      case "decision":
        // The client has the output of a call of this answer, so that the answer had ended before.
        return this.asks(part.questionId) ? this.#endWithCalls() : [];
      case "waiting":
        return this.#calls.length > 0 ? this.#endWithCalls() : this.#endWaiting(part.questions);
      case "end":
        return this.#finish(part);
      default:
        return [];
    }
  }

  #write(
    kind: OpenItem["kind"],
    { messageId, text }: { readonly messageId: string; readonly text: string },
  ): readonly ResponseEvent[] {
    const events: ResponseEvent[] = [];
    if (this.#open !== undefined && (this.#open.messageId !== messageId || this.#open.kind !== kind))
      events.push(...this.#close());
    if (this.#open === undefined) events.push(...this.#start(kind, messageId));
    const open = this.#open as unknown as OpenItem;
    open.text += text;
    events.push(deltaOf(open, text));
    return events;
  }

  #start(kind: OpenItem["kind"], messageId: string): readonly ResponseEvent[] {
    const item = itemIdOf(kind === "message" ? "msg" : "rs", messageId);
    const id = this.#resets === 0 ? item : attemptOf(item, this.#resets);
    const open = { kind, messageId, id, index: this.#index++, text: "" };
    this.#open = open;
    return [
      { type: "response.output_item.added", output_index: open.index, item: itemOf(open, "in_progress") },
      { type: partEvent(open, "added"), ...placeOf(open), part: partOf(open) },
    ];
  }

  #close(): readonly ResponseEvent[] {
    const open = this.#open;
    if (open === undefined) return [];
    this.#open = undefined;
    const item = itemOf(open, "completed");
    this.#output.push(item);
    const { text } = open;
    const done =
      open.kind === "message"
        ? { type: "response.output_text.done", ...placeOf(open), text, logprobs: [] }
        : { type: "response.reasoning_summary_text.done", ...placeOf(open), text };
    return [
      done,
      { type: partEvent(open, "done"), ...placeOf(open), part: partOf(open) },
      { type: "response.output_item.done", output_index: open.index, item },
    ];
  }

  /** A provider has failed after its first words. The protocol cannot take an item back, so that the next attempt has others. */
  #reset(): readonly ResponseEvent[] {
    this.#resets++;
    return this.#close();
  }

  #endWithCalls(): readonly ResponseEvent[] {
    this.#hasCalls = true;
    const { runId } = this.#options;
    const events = [...this.#close()];
    for (const { request, index } of this.#calls) {
      const item = {
        type: "function_call",
        id: itemIdOf("fc", `${runId}_${index}`),
        call_id: callIdOf({ runId, index }),
        name: request.toolName,
        status: "completed",
        arguments: JSON.stringify(request.input),
      };
      const at = { item_id: item.id, output_index: this.#index++ };
      const { output_index } = at;
      this.#output.push(item);
      events.push(
        {
          type: "response.output_item.added",
          output_index,
          item: { ...item, status: "in_progress", arguments: "" },
        },
        { type: "response.function_call_arguments.delta", ...at, delta: item.arguments },
        { type: "response.function_call_arguments.done", ...at, arguments: item.arguments, name: item.name },
        { type: "response.output_item.done", output_index, item },
      );
    }
    this.#end = { status: "completed" };
    return events;
  }

  /** Ends an answer that a person has to continue with a sentence that names the run and the question. */
  #endWaiting(questions: readonly ApprovalRequest[]): readonly ResponseEvent[] {
    const text = waitingText(this.#options, questions);
    const events = this.#say("waiting", text);
    this.#end = { status: "completed" };
    return events;
  }

  #say(key: string, text: string): readonly ResponseEvent[] {
    const messageId = `${this.#options.runId}:${key}`;
    return [...this.#close(), ...this.#write("message", { messageId, text }), ...this.#close()];
  }

  #finish(end: Extract<AnswerPart, { readonly type: "end" }>): readonly ResponseEvent[] {
    const isSaid = this.#options.isStructured && end.output !== null;
    const events = isSaid ? this.#say("output", outputText(end)) : this.#close();
    this.#end = endOf(end);
    return events;
  }
}

function endOf({
  status,
  finishReason,
  failure,
  reason,
}: Extract<AnswerPart, { readonly type: "end" }>): Partial<ResponseState> {
  switch (status) {
    case "completed":
      return finishReason === "content_blocked"
        ? { status: "incomplete", reason: "content_filter" }
        : { status: "completed" };
    case "max_output":
      return { status: "incomplete", reason: "max_output_tokens" };
    case "max_turns":
    case "budget_exhausted":
    case "deadline_exceeded":
      return { status: "incomplete", reason: status };
    case "guardrail_tripped":
      return { status: "incomplete", reason: "content_filter" };
    case "cancelled":
      return { status: "cancelled" };
    case "paused":
    case "failed":
      return {
        status: "failed",
        error: { code: failure?.code ?? "internal", message: failure?.message ?? reason ?? status },
      };
  }
}

function placeOf({ kind, id, index }: OpenItem): JsonObject {
  return {
    item_id: id,
    output_index: index,
    ...(kind === "message" ? { content_index: 0 } : { summary_index: 0 }),
  };
}

function partEvent({ kind }: OpenItem, change: "added" | "done"): string {
  return kind === "message" ? `response.content_part.${change}` : `response.reasoning_summary_part.${change}`;
}

function deltaOf(open: OpenItem, delta: string): ResponseEvent {
  return open.kind === "message"
    ? { type: "response.output_text.delta", ...placeOf(open), delta, logprobs: [] }
    : { type: "response.reasoning_summary_text.delta", ...placeOf(open), delta };
}

function partOf({ kind, text }: OpenItem): JsonObject {
  return kind === "message"
    ? { type: "output_text", text, annotations: [], logprobs: [] }
    : { type: "summary_text", text };
}

function itemOf(open: OpenItem, status: "in_progress" | "completed"): JsonObject {
  const parts = status === "completed" ? [partOf(open)] : [];
  return open.kind === "message"
    ? { type: "message", id: open.id, status, role: "assistant", content: parts }
    : { type: "reasoning", id: open.id, status, summary: parts };
}

/** What the events of an answer say besides its parts. */
export class ResponseTally {
  readonly #fromSeq: number;
  /** Usage of the model calls of this answer. */
  usage: Usage = noUsage;
  /** Time of the last event, or of the last question if the answer waits for the client, in epoch milliseconds. */
  lastAt = 0;
  askedAt = 0;
  /** Whether a model call of this answer has started. */
  hasStarted = false;

  constructor(fromSeq: number) {
    this.#fromSeq = fromSeq;
  }

  /** Passes events and deltas on as they are. */
  async *watch(items: AsyncIterable<Event | Delta>): AsyncGenerator<Event | Delta, void, undefined> {
    for await (const item of items) {
      if ("seq" in item && item.seq >= this.#fromSeq) this.#add(item);
      yield item;
    }
  }

  #add(event: Event): void {
    if (event.type === "approval_request") this.askedAt = event.at;
    this.lastAt = event.at;
    if (event.type === "message_start") this.hasStarted = true;
    if (event.type === "message_end" && event.data.usage !== undefined)
      this.usage = addUsage(this.usage, event.data.usage);
  }
}
