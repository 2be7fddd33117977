import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";

/**
 * Answers a request of `node:http` with a handler of web requests. If the caller disconnects, the response stream is
 * cancelled.
 */
export async function answerNode(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  answer: (request: Request) => Promise<Response>,
): Promise<void> {
  const gone = new AbortController();
  outgoing.once("close", () => gone.abort());
  const request = webRequest(incoming, gone.signal);
  const response =
    request === undefined ? new Response("Bad Request", { status: 400 }) : await answer(request);
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  // Sends the headers now, because a stream may stay open without data.
  outgoing.flushHeaders();
  const reader = response.body?.getReader();
  const stop = (): void => void reader?.cancel();
  gone.signal.addEventListener("abort", stop);
  for (let part = await reader?.read(); part?.done === false; part = await reader?.read()) {
    if (!outgoing.write(part.value)) await Promise.race([once(outgoing, "drain"), once(outgoing, "close")]);
  }
  outgoing.end();
}

function webRequest(incoming: IncomingMessage, signal: AbortSignal): Request | undefined {
  const { method = "GET", headers, url = "/" } = incoming;
  const address = URL.parse(url, `http://${headers.host ?? "localhost"}`);
  if (address === null) return undefined;
  const given = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, Array.isArray(value) ? value.join(", ") : value] as [string, string]],
  );
  const hasBody = method !== "GET" && method !== "HEAD";
  return new Request(address, {
    method,
    headers: given,
    signal,
    ...(hasBody && { body: Readable.toWeb(incoming) as ReadableStream, duplex: "half" as const }),
  });
}
