import type {
  AssistantPart,
  JsonValue,
  Model,
  ModelRequest,
  ModelResponse,
  ModelStreamPart,
} from "../../src/kernel/index.ts";

/** One answer of an actor. It waits until the test opens the gate `hold`. */
export interface Line {
  readonly text?: string;
  readonly calls?: readonly { readonly tool: string; readonly input: JsonValue }[];
  readonly hold?: string;
  /** If present, the call fails with this message, as with a wrong key, and is not retried. */
  readonly fails?: string;
  /** Output tokens, at most 400. Default: 200. */
  readonly tokens?: number;
}

/** Gates at which models wait until a test opens them, so that a test decides what is in flight. */
export class Stage {
  readonly #gates = new Map<string, PromiseWithResolvers<void>>();

  open(gate: string): void {
    this.#gate(gate).resolve();
  }

  passed(gate: string): Promise<void> {
    return this.#gate(gate).promise;
  }

  /**
   * A model that says the line that follows the answers in the conversation, so that it continues correctly in a replay.
   */
  actor(lines: readonly Line[], modelId = "sonnet-5"): Model {
    return new Actor(this, lines, modelId);
  }

  #gate(name: string): PromiseWithResolvers<void> {
    const gate = this.#gates.get(name) ?? Promise.withResolvers<void>();
    this.#gates.set(name, gate);
    return gate;
  }
}

class Actor implements Model {
  readonly provider = "stage";
  readonly modelId: string;
  readonly maxOutputTokens = 400;
  readonly #stage: Stage;
  readonly #lines: readonly Line[];

  constructor(stage: Stage, lines: readonly Line[], modelId: string) {
    this.#stage = stage;
    this.#lines = lines;
    this.modelId = modelId;
  }

  async generate(request: ModelRequest): Promise<ModelResponse> {
    const line = this.#lineFor(request);
    if (line.hold !== undefined) await this.#stage.passed(line.hold);
    return this.#response(request, line);
  }

  /** The text arrives in two pieces. The gate is between the pieces, so that a message that waits is half written. */
  async *stream(request: ModelRequest): AsyncIterable<ModelStreamPart> {
    const line = this.#lineFor(request);
    const { text = "", hold } = line;
    const middle = Math.ceil(text.length / 2);
    if (text !== "") yield { type: "text_delta", text: text.slice(0, middle) };
    if (hold !== undefined) await this.#stage.passed(hold);
    if (text.length > middle) yield { type: "text_delta", text: text.slice(middle) };
    yield { type: "finish", ...this.#response(request, line) };
  }

  #lineFor({ messages }: ModelRequest): Line {
    const said = messages.filter(({ role }) => role === "assistant").length;
    const line = this.#lines[said] ?? { text: "Done." };
    if (line.fails !== undefined) throw Object.assign(new Error(line.fails), { status: 401 });
    return line;
  }

  #response(
    { messages, maxOutputTokens: limit = Infinity }: ModelRequest,
    { text = "", calls = [], tokens = 200 }: Line,
  ): ModelResponse {
    const content: AssistantPart[] = text === "" ? [] : [{ type: "text", text }];
    for (const [at, { tool, input }] of calls.entries())
      content.push({ type: "tool_call", callId: `call-${messages.length}-${at}`, toolName: tool, input });
    // At most one token per byte, so that no call costs more than its bound.
    const inputTokens = Math.ceil(JSON.stringify(messages).length / 4);
    return {
      message: { role: "assistant", content },
      stopReason: tokens > limit ? "length" : calls.length > 0 ? "tool_calls" : "stop",
      usage: {
        inputTokens,
        outputTokens: Math.min(tokens, limit),
        cacheReadTokens: 0,
        cacheWriteTokens: 0,
        reasoningTokens: 0,
      },
    };
  }
}
