import type { FetchLike, Transport } from "@modelcontextprotocol/client";
import {
  Fault,
  JsonCounter,
  maxJsonValues,
  tooManyValues,
  valuesLeft,
  type JsonObject,
  type JsonValue,
} from "../../kernel/index.ts";

/** Default of the maximum size of one message. */
export const defaultMessageBytes = 16 * 1024 * 1024;

const lineEnd = 0x0a;
const carriageReturn = 0x0d;

/**
 * Returns a `fetch` that ends a response with an error if a message in it is longer than `maxBytes` or has more
 * than `maxJsonValues` values. Each event of an event stream is a message; any other body is one message. Without
 * the limits a server could fill the memory and block the process.
 */
export function boundedFetch(fetch: FetchLike, maxBytes: number): FetchLike {
  return async (url, init) => {
    const response = await fetch(url, init);
    if (response.body === null) return response;
    const type = response.headers.get("content-type")?.toLowerCase();
    const limiter =
      type?.startsWith("text/event-stream") === true
        ? eventLimiter(maxBytes, requestId(init?.body))
        : bodyLimiter(maxBytes);
    return new Response(response.body.pipeThrough(limiter), response);
  };
}

function bodyLimiter(maxBytes: number): TransformStream<Uint8Array, Uint8Array> {
  const message = new MessageCounter(maxBytes);
  return new TransformStream({
    transform: (chunk, controller) => {
      message.add(chunk);
      controller.enqueue(chunk);
    },
  });
}

/**
 * Limits each event of a stream. The MCP package does not settle a request whose stream fails, so that the rest of
 * the stream is replaced by an event with an error that answers the request `id`. In a stream that answers no
 * request, only the event is left out: if the stream failed, the MCP package would open it again each second and
 * receive the event again.
 */
function eventLimiter(
  maxBytes: number,
  id: string | number | undefined,
): TransformStream<Uint8Array, Uint8Array> {
  let message = new MessageCounter(maxBytes);
  /** Whether the rest of the event is left out. */
  let isRefused = false;
  /** Whether the line that the next byte belongs to is empty so far. An empty line ends an event. */
  let isEmpty = false;
  /** Whether the last byte was a carriage return. A line feed after it does not end another line. */
  let isReturned = false;
  type Controller = TransformStreamDefaultController<Uint8Array>;

  /** Passes the next bytes of an event on. Returns `false` if the stream has ended. */
  function pass(bytes: Uint8Array, isEnd: boolean, controller: Controller): boolean {
    try {
      if (!isRefused) {
        message.add(bytes);
        if (bytes.length > 0) controller.enqueue(bytes);
      }
    } catch (error) {
      controller.enqueue(encoder.encode(id === undefined ? invalidEnd : refusal(id, error)));
      if (id !== undefined) {
        controller.terminate();
        return false;
      }
      isRefused = true;
    }
    if (isEnd) {
      message = new MessageCounter(maxBytes);
      isRefused = false;
    }
    return true;
  }

  return new TransformStream({
    transform: (chunk, controller) => {
      let from = 0;
      for (let at = 0; at < chunk.length; at++) {
        const byte = chunk[at];
        const isReturn = byte === carriageReturn;
        if (isReturn || (byte === lineEnd && !isReturned)) {
          if (isEmpty) {
            if (!pass(chunk.subarray(from, at + 1), true, controller)) return;
            from = at + 1;
          }
          isEmpty = true;
        } else if (byte !== lineEnd) isEmpty = false;
        isReturned = isReturn;
      }
      pass(chunk.subarray(from), false, controller);
    },
  });
}

const encoder = new TextEncoder();

/** Text that ends an event and makes its received part invalid. */
const invalidEnd = "\ndata: refused\n\n";

/**
 * Returns the events that end a stream: the end of the refused event, which makes it invalid, and an answer to the
 * request.
 */
function refusal(id: string | number, error: unknown): string {
  const { message } = Fault.from(error);
  const answer = { jsonrpc: "2.0", id, error: { code: invalidMessage, message } };
  return `${invalidEnd}data: ${JSON.stringify(answer)}\n\n`;
}

/** The id of the JSON-RPC request in a body. `undefined` if it has none. */
function requestId(body: unknown): string | number | undefined {
  if (typeof body !== "string") return undefined;
  const { id } = JSON.parse(body) as { readonly id?: string | number };
  return id;
}

/** Counts the bytes and values of one message of a server while it arrives. */
class MessageCounter {
  readonly #maxBytes: number;
  readonly #values = new JsonCounter("the message of the MCP server");
  #size = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  add(bytes: Uint8Array): void {
    this.#size += bytes.length;
    if (this.#size > this.#maxBytes)
      throw new Error(`the server sent a message of more than ${this.#maxBytes} bytes`);
    this.#values.add(bytes);
  }
}

/**
 * Replaces each message with too many values by an error that answers the same request. For a transport to a
 * program whose output the MCP package reads and parses itself. Call it when the client is connected.
 */
export function limitMessages(transport: Transport): void {
  const deliver = transport.onmessage;
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a transport of MCP has one handler
  transport.onmessage = (message, extra) => {
    if (valuesLeft(message as unknown as JsonValue, maxJsonValues) >= 0) return deliver?.(message, extra);
    const fault = tooManyValues("the message of the MCP server");
    const { id } = message as { readonly id?: string | number };
    if (id === undefined || "method" in message) transport.onerror?.(fault);
    else deliver?.({ jsonrpc: "2.0", id, error: { code: invalidMessage, message: fault.message } }, extra);
  };
}

/** JSON-RPC: "Invalid Request". */
const invalidMessage = -32_600;

/**
 * Maximum number of JSON values of a message, without the arguments of a tool call. The MCP package checks each of
 * them against several schemas, so that 90,000 values would block the process for a second.
 */
const maxPlainValues = 1_000;

/**
 * Returns the request with a body that was read within the limits. Throws `too_large` otherwise, before the MCP package parses
 * the body.
 */
export async function boundedRequest(request: Request, maxBytes = defaultMessageBytes): Promise<Request> {
  const { body, url, method, headers, signal } = request;
  if (body === null) return request;
  if (Number(headers.get("content-length") ?? 0) > maxBytes) throw tooLong(maxBytes);
  const counter = new JsonCounter("the message");
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > maxBytes) throw tooLong(maxBytes);
    counter.add(chunk);
    chunks.push(chunk);
  }
  const whole = Buffer.concat(chunks);
  if (counter.values > maxPlainValues) limitPlainValues(whole);
  return new Request(url, { method, headers, signal, body: whole });
}

/**
 * Throws `too_large` for a message, or a list of messages, with too many values outside the arguments of its tool
 * calls.
 */
function limitPlainValues(body: Buffer): void {
  let parsed: JsonValue;
  try {
    parsed = JSON.parse(body.toString()) as JsonValue;
  } catch {
    // The MCP package answers a text that is not JSON.
    return;
  }
  const messages = Array.isArray(parsed) ? (parsed as readonly JsonValue[]) : [parsed];
  const left = messages.reduce<number>(
    (rest, message) => (rest < 0 ? rest : valuesLeft(withoutArguments(message), rest)),
    maxPlainValues,
  );
  if (left < 0) throw tooManyValues("the message without the arguments of a tool call", maxPlainValues);
}

function withoutArguments(message: JsonValue): JsonValue {
  const { method, params } = (message ?? {}) as JsonObject;
  if (method !== "tools/call" || typeof params !== "object" || params === null) return message;
  return { ...(message as JsonObject), params: { ...(params as JsonObject), arguments: null } };
}

function tooLong(maxBytes: number): Fault {
  return new Fault("too_large", `the message has more than ${maxBytes} bytes; send a shorter one`);
}
