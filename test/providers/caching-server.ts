import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A request of the Messages API, as far as the server reads it. */
export interface MessagesBody {
  readonly tools?: readonly Block[];
  readonly system?: readonly Block[];
  readonly messages: readonly { readonly role: string; readonly content: readonly Block[] }[];
}

type Block = Readonly<Record<string, unknown>>;

/** The content of an answer: a text, or the name of a tool to call. */
export type CachedAnswer = { readonly text: string } | { readonly tool: string };

/** Tokens of all requests so far. */
export interface CacheTotals {
  readonly input: number;
  readonly cached: number;
}

/**
 * A model server with Anthropic's Messages API and a prompt cache. A request stores the text up to each of its cache
 * marks, and reads the longest stored text that ends at one of its marks. A token is four bytes.
 */
export class CachingServer {
  /** The requests, oldest first. */
  readonly requests: MessagesBody[] = [];
  readonly #stored = new Set<string>();
  readonly #answer: (body: MessagesBody) => CachedAnswer;
  readonly #server = createServer((request, response) => {
    void this.#serve(request, response);
  });
  #input = 0;
  #cached = 0;

  constructor(answer: (body: MessagesBody) => CachedAnswer) {
    this.#answer = answer;
  }

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  get totals(): CacheTotals {
    return { input: this.#input, cached: this.#cached };
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = JSON.parse(await readBody(request)) as MessagesBody;
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(this.#respond(body)));
  }

  #respond(body: MessagesBody): object {
    this.requests.push(body);
    const number = this.requests.length;
    const answer = this.#answer(body);
    const content =
      "text" in answer
        ? { type: "text", text: answer.text }
        : { type: "tool_use", id: `call_${number}`, name: answer.tool, input: {} };
    return {
      id: `msg_${number}`,
      type: "message",
      role: "assistant",
      model: "claude-sonnet-5",
      content: [content],
      stop_reason: "text" in answer ? "end_turn" : "tool_use",
      stop_sequence: null,
      usage: { ...this.#usage(body), output_tokens: 8 },
    };
  }

  #usage(body: MessagesBody): object {
    const hash = createHash("sha256");
    let tokens = 0;
    let read = 0;
    let lastMark = 0;
    for (const block of blocksOf(body)) {
      const text = JSON.stringify(withoutMark(block));
      hash.update(text);
      tokens += Math.ceil(text.length / 4);
      if (block["cache_control"] === undefined) continue;
      const prefix = hash.copy().digest("hex");
      lastMark = tokens;
      if (this.#stored.has(prefix)) read = tokens;
      else this.#stored.add(prefix);
    }
    this.#input += tokens;
    this.#cached += read;
    return {
      input_tokens: tokens - lastMark,
      cache_read_input_tokens: read,
      cache_creation_input_tokens: lastMark - read,
    };
  }
}

/** The blocks of a request in the order in which the cache sees them. */
export function blocksOf({ tools = [], system = [], messages }: MessagesBody): readonly Block[] {
  return [
    ...tools,
    ...system,
    ...messages.flatMap(({ role, content }) => content.map((block) => ({ role, ...block }))),
  ];
}

/** Returns a block without its cache mark. */
export function withoutMark({ cache_control: _mark, ...block }: Block): Block {
  return block;
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
