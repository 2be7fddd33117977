import type { FetchLike } from "@modelcontextprotocol/client";

/**
 * Returns a `fetch` that ends a response with an error if a message in it is longer than `maxBytes`. Each event of an
 * event stream is a message; any other body is one message. Without the limit a server could fill the memory.
 */
export function boundedFetch(fetch: FetchLike, maxBytes: number): FetchLike {
  return async (url, init) => {
    const response = await fetch(url, init);
    if (response.body === null) return response;
    const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
    return new Response(response.body.pipeThrough(limiter(maxBytes, isStream)), response);
  };
}

function limiter(maxBytes: number, isStream: boolean): TransformStream<Uint8Array, Uint8Array> {
  let size = 0;
  return new TransformStream({
    transform: (chunk, controller) => {
      // An empty line ends an event. A chunk without one continues the event before it.
      const end = isStream ? endOfLastEvent(chunk) : 0;
      size = end > 0 ? chunk.length - end : size + chunk.length;
      if (size > maxBytes)
        controller.error(new Error(`the server sent a message of more than ${maxBytes} bytes`));
      else controller.enqueue(chunk);
    },
  });
}

/** Returns the index after the last empty line in a chunk, or 0. */
function endOfLastEvent(chunk: Uint8Array): number {
  const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  const ends = ["\n\n", "\n\r\n"].map((end) => {
    const at = bytes.lastIndexOf(end);
    return at === -1 ? 0 : at + end.length;
  });
  return Math.max(...ends);
}
