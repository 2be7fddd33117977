import {
  Fault,
  type AssistantPart,
  type Clock,
  type JsonValue,
  type Model,
  type ModelCallOptions,
  type ModelRequest,
  type ModelResponse,
  type ModelStreamPart,
  type ReportedUsage,
  type StopReason,
} from "../kernel/index.ts";

/** One answer of a scripted model. A string is `{ text }`. */
export interface ScriptedReply {
  readonly text?: string;
  readonly reasoning?: string;
  readonly toolCalls?: readonly {
    readonly name: string;
    readonly input: JsonValue;
    readonly callId?: string;
  }[];
  /** The pieces `text` is streamed in; joined, they are the text. Absent: one piece. */
  readonly deltas?: readonly string[];
  /** Thrown instead of an answer; when streaming, after `deltas`. */
  readonly error?: unknown;
  /** When streaming: ends without a `finish` after `deltas`, as a cut connection does. */
  readonly cut?: boolean;
  readonly usage?: Partial<ReportedUsage>;
  readonly stopReason?: StopReason;
  /** Before the answer, by the clock handed in. */
  readonly delayMs?: number;
}

export type ScriptStep = string | ScriptedReply | ((request: ModelRequest) => string | ScriptedReply);

export interface ScriptedModelOptions {
  readonly clock?: Clock;
  readonly provider?: string;
  readonly modelId?: string;
}

/** A model that answers from a script, in order, and remembers what it was asked. */
export class ScriptedModel implements Model {
  readonly provider: string;
  readonly modelId: string;
  /** Every request, in order; also those that failed. */
  readonly calls: ModelRequest[] = [];
  readonly #script: readonly ScriptStep[];
  readonly #clock: Clock | undefined;

  constructor(script: readonly ScriptStep[], options: ScriptedModelOptions = {}) {
    this.#script = script;
    this.#clock = options.clock;
    this.provider = options.provider ?? "scripted";
    this.modelId = options.modelId ?? "script";
  }

  async generate(request: ModelRequest, { signal }: ModelCallOptions = {}): Promise<ModelResponse> {
    const reply = this.#next(request);
    const call = this.calls.length;
    await this.#delay(reply, signal);
    if (reply.error !== undefined) throw reply.error;
    return respond(request, reply, call);
  }

  async *stream(request: ModelRequest, { signal }: ModelCallOptions = {}): AsyncIterable<ModelStreamPart> {
    const reply = this.#next(request);
    const call = this.calls.length;
    await this.#delay(reply, signal);
    if (reply.reasoning !== undefined) yield { type: "reasoning_delta", text: reply.reasoning };
    const { text = reply.deltas?.join("") ?? "" } = reply;
    for (const piece of reply.deltas ?? (text === "" ? [] : [text])) {
      signal?.throwIfAborted();
      yield { type: "text_delta", text: piece };
    }
    for (const [index, { name, input, callId = callIdOf(call, index) }] of (
      reply.toolCalls ?? []
    ).entries()) {
      yield { type: "tool_input_delta", callId, toolName: name, text: JSON.stringify(input) };
    }
    if (reply.error !== undefined) throw reply.error;
    if (reply.cut !== true) yield { type: "finish", ...respond(request, reply, call) };
  }

  #next(request: ModelRequest): ScriptedReply {
    const place = this.calls.length;
    this.calls.push(request);
    const step = this.#script[place];
    if (step === undefined) {
      throw new Fault("invalid_argument", `the script has ${place} replies and was asked for one more`);
    }
    const reply = typeof step === "function" ? step(request) : step;
    if (typeof reply === "string") return { text: reply };
    if (reply.text !== undefined && reply.deltas !== undefined && reply.deltas.join("") !== reply.text) {
      throw new Fault("invalid_argument", "a scripted reply's deltas must add up to its text");
    }
    return reply;
  }

  async #delay({ delayMs = 0 }: ScriptedReply, signal: ModelCallOptions["signal"]): Promise<void> {
    signal?.throwIfAborted();
    if (delayMs === 0) return;
    const clock = this.#clock;
    if (clock === undefined)
      throw new Fault("invalid_argument", "a scripted delay needs a clock: scriptedModel(script, { clock })");
    await new Promise<void>((resolve, reject) => {
      const stop = (): void => {
        cancel();
        reject(signal?.reason as Error);
      };
      const cancel = clock.schedule(clock.now() + delayMs, () => {
        signal?.removeEventListener("abort", stop);
        resolve();
      });
      signal?.addEventListener("abort", stop, { once: true });
    });
  }
}

export function scriptedModel(script: readonly ScriptStep[], options?: ScriptedModelOptions): ScriptedModel {
  return new ScriptedModel(script, options);
}

function respond(request: ModelRequest, reply: ScriptedReply, call: number): ModelResponse {
  const { text = reply.deltas?.join("") ?? "", reasoning, toolCalls = [] } = reply;
  const content: AssistantPart[] = [];
  if (reasoning !== undefined) content.push({ type: "reasoning", text: reasoning });
  if (text !== "") content.push({ type: "text", text });
  for (const [index, { name, input, callId = callIdOf(call, index) }] of toolCalls.entries()) {
    content.push({ type: "tool_call", callId, toolName: name, input });
  }
  return {
    message: { role: "assistant", content },
    stopReason: reply.stopReason ?? (toolCalls.length > 0 ? "tool_calls" : "stop"),
    usage: { ...estimate(request, content), ...reply.usage },
  };
}

function callIdOf(call: number, index: number): string {
  return `call_${call}_${index}`;
}

/** Four characters a token: not exact, but it grows with what is sent. */
function estimate({ messages }: ModelRequest, content: readonly AssistantPart[]): ReportedUsage {
  return {
    inputTokens: Math.ceil(JSON.stringify(messages).length / 4),
    outputTokens: Math.ceil(JSON.stringify(content).length / 4),
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    reasoningTokens: 0,
  };
}
