import { createHash } from "node:crypto";
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
} from "../../../kernel/index.ts";

/** What the demo's model says at one point of its part: words, or calls of tools. */
export type Line = (request: ModelRequest) => { readonly text?: string; readonly calls?: readonly Called[] };

interface Called {
  readonly tool: string;
  readonly input: JsonValue;
}

/** One request as the demo's provider wrote it down when it came in. */
export interface Billed {
  readonly role: string;
  /** Of all that was sent: two requests of one digest are one question asked twice. */
  readonly digest: string;
}

/** The provider's own book: a file beside the store, which no kill takes back. */
export class ProviderBook {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  write(line: Billed): void {
    appendFileSync(this.#path, `${JSON.stringify(line)}\n`);
  }

  read(): readonly Billed[] {
    if (!existsSync(this.#path)) return [];
    const lines = readFileSync(this.#path, "utf8").split("\n");
    return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as Billed);
  }
}

const demoProvider = "demo";

/**
 * A model without a provider: it says its lines, one for each answer that stands in the conversation, so that it goes on wherever a
 * process that died has left off. It takes its time, as models do.
 */
export class DemoModel implements Model {
  readonly provider = demoProvider;
  readonly modelId = "actor";
  readonly maxOutputTokens = 400;
  readonly #role: string;
  readonly #lines: readonly Line[];
  readonly #book: ProviderBook;
  readonly #paceMs: number;

  constructor(role: string, lines: readonly Line[], book: ProviderBook, paceMs: number) {
    this.#role = role;
    this.#lines = lines;
    this.#book = book;
    this.#paceMs = paceMs;
  }

  async generate(request: ModelRequest, { signal }: ModelCallOptions = {}): Promise<ModelResponse> {
    const sent = JSON.stringify(request.messages);
    this.#book.write({
      role: this.#role,
      digest: createHash("sha256").update(sent).digest("hex").slice(0, 12),
    });
    await setTimeout(this.#paceMs, undefined, signal === undefined ? {} : { signal });
    const said = request.messages.filter(({ role }) => role === "assistant").length;
    const { text = "", calls = [] } = this.#lines[said]?.(request) ?? {};
    const content: AssistantPart[] = text === "" ? [] : [{ type: "text", text }];
    for (const [index, { tool, input }] of calls.entries())
      content.push({ type: "tool_call", callId: `call-${said}-${index}`, toolName: tool, input });
    return {
      message: { role: "assistant", content },
      stopReason: calls.length > 0 ? "tool_calls" : "stop",
      usage: {
        inputTokens: Math.ceil(sent.length / 4),
        outputTokens: Math.ceil(JSON.stringify(content).length / 4),
        cacheReadTokens: 0,
        cacheWriteTokens: 0,
        reasoningTokens: 0,
      },
    };
  }

  async *stream(request: ModelRequest, options?: ModelCallOptions): AsyncIterable<ModelStreamPart> {
    yield { type: "finish", ...(await this.generate(request, options)) };
  }
}
