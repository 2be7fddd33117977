import {
  noUsage,
  canonicalJson,
  type ChatContext,
  type ChatMessage,
  type Clock,
  type FunctionContext,
  type Hash,
  type ModelResponse,
  type Tool,
  type ToolResult,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";
import type { Layer } from "./layer.ts";
import { selects, toolSelection, type ToolSelection } from "./tool-selection.ts";

export interface CacheOptions {
  readonly clock: Clock;
  /** Hashes the keys. Without it, a key is as long as the request. */
  readonly hash?: Hash;
  /** How long an answer is valid, in milliseconds. Default: 300_000. */
  readonly ttlMs?: number;
  /** Maximum number of entries. The least recently used one is dropped first. Default: 1_000. */
  readonly maxEntries?: number;
  /** The tools to cache. Default: tools that change nothing and do not suspend. */
  readonly tools?: ToolSelection;
  /** Whether model calls are cached too. Default: `false`, because a new answer to the same question may be wanted. */
  readonly chat?: boolean;
}

const knownOptions = optionTable({
  clock: is.any,
  hash: is.any,
  ttlMs: is.number({ from: 0, default: 300_000 }),
  maxEntries: is.number({ from: 0, default: 1_000 }),
  tools: toolSelection,
  chat: is.boolean({ default: false }),
} satisfies OptionKinds<CacheOptions>);

/**
 * Creates middleware that answers a repeated call with the earlier result. The requests must be equal. The cache
 * belongs to this process and is separated by tenant, user and tool. Failed and truncated results are not cached.
 */
export function cache(options: CacheOptions): Layer {
  const { maxEntries, chat, tools = isHarmless } = knownOptions.read("cache()", options);
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

/** Returns the response with zero cost, because a cached answer is not paid again. */
function atNoCost(response: ModelResponse): ModelResponse {
  return { ...response, usage: { ...noUsage, costUsd: 0 } };
}

/** Returns the cache key of a tool call. It is JSON, so that the tenant `null` and a tenant named "null" differ. */
function toolKey({ tenantId, facts, arguments: input }: FunctionContext, mark: number): string {
  return canonicalJson([tenantId, facts.userId, mark, input]);
}

function chatKey({ tenantId, facts, model, request }: ChatContext, words: MessageKeys): string {
  const { messages, ...rest } = request;
  const asked = messages.map((message) => words.of(message));
  return canonicalJson([tenantId, facts.userId, model.provider, model.modelId, rest, asked]);
}

/** Computes each message's part of the key once, because a transcript is sent again with every turn (F2). */
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

/** Distinguishes tools with the same name. */
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

/**
 * A cache of limited size whose entries expire. A `Map` keeps its keys in insertion order, so that the first key is
 * the least recently used one.
 */
class Shelf<Value> {
  readonly #clock: Clock;
  readonly #hash: Hash | undefined;
  readonly #ttlMs: number;
  readonly #maxEntries: number;
  readonly #entries = new Map<string, { readonly value: Value; readonly until: number }>();

  constructor({ clock, hash, ttlMs = 300_000 }: CacheOptions, maxEntries: number) {
    this.#clock = clock;
    this.#hash = hash;
    this.#ttlMs = ttlMs;
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
