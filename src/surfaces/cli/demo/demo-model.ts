import { sha256Hex } from "../../../runtime/index.ts";
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import type {
  AssistantPart,
  JsonValue,
  Model,
  ModelCallOptions,
  ModelRequest,
  ModelResponse,
  ModelStreamPart,
  PriceTable,
} from "../../../kernel/index.ts";

/** An answer of a demo model: text, or calls of tools. */
export interface Reply {
  readonly text?: string;
  readonly calls?: readonly ToolUse[];
  /**
   * Whether the first answer to this question takes a minute, so that the worker is killed during the call even on
   * a slow machine. Default: `false`.
   */
  readonly isSlow?: boolean;
}

interface ToolUse {
  readonly tool: string;
  readonly input: JsonValue;
}

/**
 * The script of a demo agent: returns the answer to a request. The answer depends only on the request, so that any
 * process can continue a conversation.
 */
export type Part = (request: ModelRequest) => Reply;

/** One request, as the provider of the demo recorded it when it arrived. */
export interface Billed {
  readonly runId: string;
  /** The worker that sent the request. */
  readonly worker: string;
  readonly agent: string;
  /**
   * Digest of the conversation. Two requests of a run with the same agent and the same digest are attempts of the
   * same question.
   */
  readonly digest: string;
}

/** The records of the demo's provider, in a file that survives a kill. */
export class ProviderBook {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  write(line: Billed): void {
    appendFileSync(this.#path, `${JSON.stringify(line)}\n`);
  }

  /** Returns the requests of a run, in the order in which they arrived. */
  read(runId: string): readonly Billed[] {
    if (!existsSync(this.#path)) return [];
    const text = readFileSync(this.#path, "utf8").trim();
    const billed = text.split("\n").map((line) => JSON.parse(line) as Billed);
    return billed.filter((each) => each.runId === runId);
  }
}

/** The models of the demo, with their prices per token and their duration relative to the pace. */
const models = {
  large: { inputUsd: 15e-6, outputUsd: 75e-6, duration: 1.2 },
  small: { inputUsd: 3e-6, outputUsd: 15e-6, duration: 0.9 },
} as const;

type ModelName = keyof typeof models;

/** The prices of the demo's models. */
export const demoPrices: PriceTable = {
  find: ({ provider, modelId }) =>
    provider === "demo" && Object.hasOwn(models, modelId) ? models[modelId as ModelName] : null,
};

export interface DemoModelOptions {
  readonly agent: string;
  readonly size: ModelName;
  /** Default: 160. */
  readonly maxOutputTokens?: number;
  readonly part: Part;
  readonly book: ProviderBook;
  /** Name of the worker whose process calls the model. */
  readonly worker: string;
  /** Duration of an average call in milliseconds. */
  readonly paceMs: number;
}

/** An answer of a demo model, and the time that the model takes for it. */
interface Answer {
  readonly response: ModelResponse;
  readonly durationMs: number;
}

const slowMs = 60_000;

/**
 * Returns the models of an agent: the model that it uses, and a second one to which a person may switch a run or a
 * fork.
 */
export function demoModels(options: DemoModelOptions): {
  readonly model: DemoModel;
  readonly models: Readonly<Record<string, DemoModel>>;
} {
  const other = options.size === "large" ? "small" : "large";
  return {
    model: new DemoModel(options),
    models: { other: new DemoModel({ ...options, size: other }) },
  };
}

/** A model without a provider. It waits and writes its text in pieces, as real models do. */
export class DemoModel implements Model {
  readonly provider = "demo";
  readonly modelId: ModelName;
  readonly contextWindow = 200_000;
  readonly maxOutputTokens: number;
  readonly #options: DemoModelOptions;
  readonly #durationMs: number;

  constructor(options: DemoModelOptions) {
    this.modelId = options.size;
    this.maxOutputTokens = options.maxOutputTokens ?? 160;
    this.#options = options;
    this.#durationMs = options.paceMs * models[options.size].duration;
  }

  async generate(request: ModelRequest, options: ModelCallOptions = {}): Promise<ModelResponse> {
    const { response, durationMs } = this.#answer(request, options);
    await pause(durationMs, options);
    return response;
  }

  async *stream(request: ModelRequest, options: ModelCallOptions = {}): AsyncIterable<ModelStreamPart> {
    const { response, durationMs } = this.#answer(request, options);
    const pieces = response.message.content.flatMap((part) => (part.type === "text" ? words(part.text) : []));
    // A model reads the request before it writes.
    await pause(durationMs / 2, options);
    for (const text of pieces) {
      yield { type: "text_delta", text };
      await pause(durationMs / 2 / pieces.length, options);
    }
    if (pieces.length === 0) await pause(durationMs / 2, options);
    yield { type: "finish", ...response };
  }

  #answer(request: ModelRequest, { meta }: ModelCallOptions): Answer {
    const { agent, part, book, worker } = this.#options;
    const sent = JSON.stringify(request.messages);
    const digest = sha256Hex(sent).slice(0, 12);
    const { text = "", calls = [], isSlow = false } = part(request);
    const runId = meta?.runId ?? "";
    const isAsked = (each: Billed): boolean => each.agent === agent && each.digest === digest;
    const isLate = isSlow && !book.read(runId).some(isAsked);
    book.write({ runId, worker, agent, digest });
    const content: AssistantPart[] = text === "" ? [] : [{ type: "text", text }];
    const turn = turnOf(request);
    for (const [index, { tool, input }] of calls.entries())
      content.push({ type: "tool_call", callId: `call-${turn}-${index}`, toolName: tool, input });
    const response: ModelResponse = {
      message: { role: "assistant", content },
      stopReason: calls.length > 0 ? "tool_calls" : "stop",
      usage: {
        inputTokens: Math.ceil(sent.length / 4),
        outputTokens: Math.ceil(JSON.stringify(content).length / 4),
      },
    };
    return { response, durationMs: isLate ? slowMs : this.#durationMs };
  }
}

async function pause(ms: number, { signal }: ModelCallOptions): Promise<void> {
  await setTimeout(ms, undefined, signal === undefined ? {} : { signal });
}

/** Splits a text into words, each with the white space that follows it. */
function words(text: string): readonly string[] {
  return text.match(/\S+\s*/gu) ?? [];
}

/** Number of answers in the conversation. */
function turnOf({ messages }: Pick<ModelRequest, "messages">): number {
  return messages.filter(({ role }) => role === "assistant").length;
}

/** Returns a script that gives one reply after the other, regardless of the questions. */
export function lines(...replies: readonly ((results: readonly string[]) => Reply)[]): Part {
  return (request) => {
    const reply = replies[turnOf(request)];
    return reply === undefined ? { text: "I have nothing to add." } : reply(resultsIn(request));
  };
}

/** Returns the tool results in a conversation, in order. */
function resultsIn({ messages }: Pick<ModelRequest, "messages">): readonly string[] {
  return messages.flatMap((message) =>
    message.role === "tool"
      ? message.content.map(({ output }) => (output.type === "text" ? output.text : JSON.stringify(output)))
      : [],
  );
}

/** Returns the part of a conversation that begins with the last message of a person. */
export function sinceQuestion({ messages }: ModelRequest): {
  readonly question: string;
  readonly turn: number;
  readonly results: readonly string[];
} {
  const start = messages.findLastIndex(({ role }) => role === "user");
  const asked = messages[start];
  const rest = { messages: messages.slice(start + 1) };
  const parts = asked?.role === "user" ? asked.content : [];
  const question = parts.map((part) => (part.type === "text" ? part.text : "")).join(" ");
  return { question, turn: turnOf(rest), results: resultsIn(rest) };
}
