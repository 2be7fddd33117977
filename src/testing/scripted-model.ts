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
  is,
  optionTable,
  type OptionKinds,
} from "../kernel/index.ts";

/** One answer of a scripted model. A plain string is short for `{ text }`. */
export interface ScriptedReply {
  readonly text?: string;
  readonly reasoning?: string;
  readonly toolCalls?: readonly {
    readonly name: string;
    readonly input: JsonValue;
    readonly callId?: string;
  }[];
  /** Pieces in which `text` is streamed. Joined, they must equal `text`. If absent, the text is one piece. */
  readonly deltas?: readonly string[];
  /** Error that is thrown instead of an answer. In a stream, it is thrown after `deltas`. */
  readonly error?: unknown;
  /** If `true`, a stream ends after `deltas` without a `finish`, as if the connection was cut. */
  readonly cut?: boolean;
  readonly usage?: Partial<ReportedUsage>;
  readonly stopReason?: StopReason;
  /** Delay before the answer in milliseconds, measured by the clock passed to `scriptedModel`. */
  readonly delayMs?: number;
}

/** One entry of a script: a text, a reply, or a function from the request to one of these. */
export type ScriptStep = string | ScriptedReply | ((request: ModelRequest) => string | ScriptedReply);

/** Options of `scriptedModel`. */
export interface ScriptedModelOptions {
  readonly clock?: Clock;
  readonly provider?: string;
  readonly modelId?: string;
  /** Counts the input tokens of a request. If absent, the model offers no count. */
  readonly countTokens?: (request: ModelRequest) => number | Promise<number>;
}

const knownOptions = optionTable({
  clock: is.any,
  provider: is.text(),
  modelId: is.text(),
  countTokens: is.callback(),
} satisfies OptionKinds<ScriptedModelOptions>);

/** A model that answers from a script, in order, and records the requests it receives. */
export class ScriptedModel implements Model {
  readonly provider: string;
  readonly modelId: string;
  /** Present if the options have it. */
  readonly countTokens?: NonNullable<Model["countTokens"]>;
  /** Every request in order, failed ones included. */
  readonly calls: ModelRequest[] = [];
  readonly #script: readonly ScriptStep[];
  readonly #clock: Clock | undefined;

  constructor(script: readonly ScriptStep[], options: ScriptedModelOptions = {}) {
    knownOptions.read("scriptedModel()", options);
    this.#script = script;
    this.#clock = options.clock;
    this.provider = options.provider ?? "scripted";
    this.modelId = options.modelId ?? "script";
    const { countTokens } = options;
    if (countTokens !== undefined) this.countTokens = async (request) => countTokens(request);
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
      throw new Fault("invalid_argument", "the deltas of a scripted reply must add up to its text");
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

/**
 * Creates a model that answers its calls with the entries of a script, in order.
 *
 * @example
 * ```ts
 * import { Agent } from "reeve";
 * import { scriptedModel } from "reeve/testing";
 *
 * const model = scriptedModel([{ toolCalls: [{ name: "search", input: { query: "reeves" } }] }, "Nothing is known."]);
 * const agent = new Agent({ name: "researcher", model });
 * ```
 */
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

/** Estimates usage at four characters per token. The estimate is not exact, but it grows with the request. */
function estimate({ messages }: ModelRequest, content: readonly AssistantPart[]): ReportedUsage {
  return {
    inputTokens: Math.ceil(JSON.stringify(messages).length / 4),
    outputTokens: Math.ceil(JSON.stringify(content).length / 4),
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    reasoningTokens: 0,
  };
}
