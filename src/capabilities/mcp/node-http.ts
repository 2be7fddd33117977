import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { notAllowed, type RequestSource } from "./http-endpoint.ts";

/** Answers a web request from the given source. */
type Answer = (request: Request, source: RequestSource) => Promise<Response>;

/**
 * Answers a request of `node:http` with a handler of web requests. If the caller disconnects, the response stream is
 * cancelled. Every request is answered: a request that cannot be converted with 400 or 405, and an error of the handler
 * with 500 before it is thrown.
 */
export async function answerNode(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  answer: Answer,
): Promise<void> {
  const gone = new AbortController();
  outgoing.once("close", () => gone.abort());
  try {
    const request = webRequest(incoming, gone.signal);
    const { remoteAddress } = incoming.socket;
    await send(request instanceof Response ? request : await answer(request, { remoteAddress }), outgoing);
  } catch (error) {
    // The caller has disconnected, which is not an error of this side.
    if (gone.signal.aborted) return;
    if (outgoing.headersSent) outgoing.destroy();
    else outgoing.writeHead(500).end("Internal Server Error");
    throw error;
  }
}

async function send({ status, headers, body }: Response, outgoing: ServerResponse): Promise<void> {
  outgoing.writeHead(status, Object.fromEntries(headers));
  // Sends the headers now, because a stream may stay open without data.
  outgoing.flushHeaders();
  if (body === null) outgoing.end();
  else await pipeline(Readable.fromWeb(body), outgoing);
}

/** Methods that a web `Request` refuses. */
const unsupported = new Set(["TRACE", "TRACK", "CONNECT"]);

/** Converts a request, or returns the response that refuses it. */
function webRequest(incoming: IncomingMessage, signal: AbortSignal): Request | Response {
  const { method = "GET", headers, url = "/" } = incoming;
  if (unsupported.has(method)) return notAllowed();
  const given = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, Array.isArray(value) ? value.join(", ") : value] as [string, string]],
  );
  const hasBody = method !== "GET" && method !== "HEAD";
  try {
    // A path that starts with `//` would be read as a host name if it were resolved against a base.
    const address = new URL(url.startsWith("/") ? `http://${headers.host ?? "localhost"}${url}` : url);
    return new Request(address, {
      method,
      headers: given,
      signal,
      ...(hasBody && { body: Readable.toWeb(incoming) as ReadableStream, duplex: "half" as const }),
    });
  } catch {
    // The constructors throw only for a Host header, a path or a method that is malformed.
    return new Response("Bad Request", { status: 400 });
  }
}
