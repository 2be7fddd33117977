import {
  canonicalJson,
  type ChatContext,
  type ChatMessage,
  type Clock,
  type FunctionContext,
  type Hash,
  type ModelResponse,
  type Tool,
  type ToolResult,
} from "../../kernel/index.ts";
import type { Layer } from "./layer.ts";
import { atLeast } from "./option-range.ts";
import { selects, type ToolSelection } from "./tool-selection.ts";

export interface CacheOptions {
  readonly clock: Clock;
  /** Makes keys short. Without one they are as long as what was asked. */
  readonly hash?: Hash;
  /** How long an answer holds. 5 minutes unless told. */
  readonly ttlMs?: number;
  /** The least recently used go first. 1,000 unless told. */
  readonly maxEntries?: number;
  /** Which tools. Unless told: those that change nothing and do not wait. */
  readonly tools?: ToolSelection;
  /** Model calls as well. Off unless told: the same question may deserve another answer. */
  readonly chat?: boolean;
}

/**
 * Answers a call that was made before, in the same words, with what it answered then. Exact; in this process; never across
 * tenants, users, or two tools of one name. What failed or was cut short is not kept.
 */
export function cache(options: CacheOptions): Layer {
  const { maxEntries = 1_000, chat = false, tools = isHarmless } = options;
  atLeast("cache: maxEntries", maxEntries, 0);
  if (maxEntries === 0) return { name: "cache" };
  const selected = selects(tools);
  const results = new Shelf<ToolResult>(options, maxEntries);
  const answers = new Shelf<ModelResponse>(options, maxEntries);
  const marks = new ToolMarks();
  const words = new MessageKeys(options.hash);
  return {
    name: "cache",
    function: async (context, next) => {
      if (!selected(context.tool)) return next();
      const key = results.keyOf(toolKey(context, marks.of(context.tool)));
      const known = results.get(key);
      context.metadata["cache"] = known === undefined ? "miss" : "hit";
      if (known !== undefined) {
        context.result = known;
        return;
      }
      await next();
      const { result } = context;
      if (result !== undefined && !result.isError) results.put(key, result);
    },
    ...(chat && {
      chat: async (context: ChatContext, next: () => Promise<void>) => {
        const key = answers.keyOf(chatKey(context, words));
        const known = answers.get(key);
        context.metadata["cache"] = known === undefined ? "miss" : "hit";
        if (known !== undefined) {
          context.result = known;
          return;
        }
        await next();
        const { result } = context;
        if (result !== undefined && isWhole(result)) answers.put(key, atNoCost(result));
      },
    }),
  };
}

function isHarmless({ destructive, suspends }: Tool): boolean {
  return !destructive && !suspends;
}

function isWhole({ stopReason }: ModelResponse): boolean {
  return stopReason === "stop" || stopReason === "tool_calls";
}

/** An answer given again is not paid again. */
function atNoCost(response: ModelResponse): ModelResponse {
  const usage = {
    inputTokens: 0,
    outputTokens: 0,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    reasoningTokens: 0,
    costUsd: 0,
  };
  return { ...response, usage };
}

/** `null` and "null" are two tenants: the key is JSON. */
function toolKey({ tenantId, facts, arguments: input }: FunctionContext, mark: number): string {
  return canonicalJson([tenantId, facts.userId, mark, input]);
}

function chatKey({ tenantId, facts, model, request }: ChatContext, words: MessageKeys): string {
  const { messages, ...rest } = request;
  const asked = messages.map((message) => words.of(message));
  return canonicalJson([tenantId, facts.userId, model.provider, model.modelId, rest, asked]);
}

/** A message's part of the key, worked out once: a transcript is sent again with every turn (F2). */
class MessageKeys {
  readonly #hash: Hash | undefined;
  readonly #keys = new WeakMap<ChatMessage, string>();

  constructor(hash: Hash | undefined) {
    this.#hash = hash;
  }

  of(message: ChatMessage): string {
    let key = this.#keys.get(message);
    if (key === undefined) {
      const text = canonicalJson(message);
      key = this.#hash === undefined ? text : this.#hash(text);
      this.#keys.set(message, key);
    }
    return key;
  }
}

/** Tells tools of one name apart. */
class ToolMarks {
  readonly #marks = new WeakMap<Tool, number>();
  #last = 0;

  of(tool: Tool): number {
    const known = this.#marks.get(tool);
    if (known !== undefined) return known;
    this.#marks.set(tool, ++this.#last);
    return this.#last;
  }
}

/** Bounded, with a time to live: a `Map` remembers the order of its keys, oldest use first. */
class Shelf<Value> {
  readonly #clock: Clock;
  readonly #hash: Hash | undefined;
  readonly #ttlMs: number;
  readonly #maxEntries: number;
  readonly #entries = new Map<string, { readonly value: Value; readonly until: number }>();

  constructor({ clock, hash, ttlMs = 300_000 }: CacheOptions, maxEntries: number) {
    this.#clock = clock;
    this.#hash = hash;
    this.#ttlMs = atLeast("cache: ttlMs", ttlMs, 0);
    this.#maxEntries = maxEntries;
  }

  keyOf(text: string): string {
    return this.#hash === undefined ? text : this.#hash(text);
  }

  get(key: string): Value | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    if (entry.until <= this.#clock.now()) return undefined;
    this.#entries.set(key, entry);
    return entry.value;
  }

  put(key: string, value: Value): void {
    this.#entries.delete(key);
    this.#entries.set(key, { value, until: this.#clock.now() + this.#ttlMs });
    if (this.#entries.size <= this.#maxEntries) return;
    const [oldest] = this.#entries.keys();
    if (oldest !== undefined) this.#entries.delete(oldest);
  }
}
