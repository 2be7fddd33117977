import type { JsonValue } from "../../../src/kernel/index.ts";

/** One message of a stream, as a browser's EventSource would deliver it. */
interface SseMessage {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: { readonly [key: string]: JsonValue };
}

export interface SseReader extends AsyncIterable<SseMessage> {
  readonly status: number;
  /** Comment lines that have arrived so far. */
  readonly comments: readonly string[];
  /** Number of chunks in which the messages arrived. */
  readonly chunks: () => number;
  next(): Promise<SseMessage | undefined>;
  leave(): void;
}

export interface SseOptions {
  readonly token?: string;
  readonly lastEventId?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Opens a stream with Node's own HTTP client. */
export async function openSse(
  url: string,
  { token, lastEventId, headers }: SseOptions = {},
): Promise<SseReader> {
  const left = new AbortController();
  const response = await fetch(url, {
    signal: left.signal,
    headers: {
      accept: "text/event-stream",
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(lastEventId !== undefined && { "last-event-id": lastEventId }),
      ...headers,
    },
  });
  const comments: string[] = [];
  let chunks = 0;
  const messages = parse(
    response.body ?? new ReadableStream(),
    (comment) => comments.push(comment),
    () => chunks++,
  );
  return {
    status: response.status,
    comments,
    chunks: () => chunks,
    next: async () => {
      const { value, done } = await messages.next();
      return done === true ? undefined : value;
    },
    leave: () => left.abort(),
    [Symbol.asyncIterator]: () => messages,
  };
}

async function* parse(
  body: ReadableStream<Uint8Array>,
  onComment: (comment: string) => void,
  onChunk: () => void,
): AsyncGenerator<SseMessage, undefined> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of body) {
    onChunk();
    const blocks = (rest + decoder.decode(chunk, { stream: true })).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const lines = block.split("\n");
      const field = (name: string): string | undefined =>
        lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      for (const line of lines) if (line.startsWith(":")) onComment(line.slice(1).trim());
      const data = field("data");
      if (data === undefined) continue;
      yield {
        id: field("id"),
        event: field("event") ?? "message",
        data: JSON.parse(data) as SseMessage["data"],
      };
    }
  }
  return undefined;
}
