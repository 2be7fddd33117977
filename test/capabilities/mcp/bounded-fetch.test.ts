import { expect, it } from "vitest";
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import { boundedFetch, boundedRequest, limitMessages } from "../../../src/capabilities/mcp/message-limit.ts";

/** Returns the text that is read from pieces of a body of a type. */
async function read(
  type: string,
  pieces: readonly string[],
  maxBytes: number,
  request?: RequestInit,
): Promise<string> {
  const body = ReadableStream.from(pieces.map((piece) => new TextEncoder().encode(piece)));
  const fetch = boundedFetch(async () => new Response(body, { headers: { "content-type": type } }), maxBytes);
  return (await fetch("http://localhost/", request)).text();
}

it("boundedFetch() ends a body that is longer than the limit with an error, and passes one of exactly the limit", async () => {
  expect(await read("application/json", ["[1,", "2]"], 5)).toBe("[1,2]");
  await expect(read("application/json", ["[1,", "2]"], 4)).rejects.toThrow(
    "the server sent a message of more than 4 bytes",
  );
});

it("boundedFetch() applies the limit to each event of a stream, not to the whole stream", async () => {
  const events = Array.from({ length: 50 }, () => "data: x\n\n");
  expect(await read("text/event-stream; charset=utf-8", events, 9)).toBe(events.join(""));
  const returns = Array.from({ length: 50 }, () => "data: x\r\n\r\n");
  expect(await read("text/event-stream", returns, 11)).toBe(returns.join(""));
});

it("boundedFetch() drops an event that is too long from a stream that answers no request, and passes later events", async () => {
  const long = ["id: 4\ndata: ", "xxxx", "xxxx\ndata: y\n", "\ndata: z\n\n"];
  expect(await read("text/event-stream", long, 15)).toBe("id: 4\ndata: \ndata: refused\n\ndata: z\n\n");
  expect(await read("text/event-stream", ["a\n\n", "data: ", "xxxx"], 9)).toBe(
    "a\n\ndata: \ndata: refused\n\n",
  );
  const events = `data: 1\n\ndata: ${"x".repeat(99)}\r\n\r\ndata: 2\n\n`;
  expect(await read("text/event-stream", [events], 20)).toBe("data: 1\n\n\ndata: refused\n\n\ndata: 2\n\n");
});

it("boundedFetch() compares the content type without case, and ends lines at a carriage return", async () => {
  const events = Array.from({ length: 50 }, () => "data: x\r\r");
  expect(await read("Text/Event-Stream", events, 9)).toBe(events.join(""));
  const halves = ["data: x\r", "\n\r", "\ndata: y\r", "\r", "data: z"];
  expect(await read("text/event-stream", halves, 11)).toBe(halves.join(""));
  // A quote in a comment does not hide what follows.
  expect(await read("text/event-stream", [`: "\rdata: ${list(100_000)}\r\r`], 1e6)).toBe(refusedEvent);
});

it("boundedFetch() answers the request of a stream with an error in place of a message that is too long", async () => {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 7, method: "tools/call" });
  const request = { method: "POST", body };
  const pieces = ["data: x\n\n", 'data: {"id":7,', "x".repeat(99), "data: later\n\n"];
  const [first, partial, answer, end] = (await read("text/event-stream", pieces, 40, request)).split("\n\n");
  expect([first, partial, end]).toEqual(["data: x", 'data: {"id":7,\ndata: refused', ""]);
  expect(JSON.parse((answer ?? "").slice("data: ".length))).toEqual({
    jsonrpc: "2.0",
    id: 7,
    error: { code: -32_600, message: "the server sent a message of more than 40 bytes" },
  });
});

it("boundedFetch() passes a response without a body", async () => {
  const fetch = boundedFetch(async () => new Response(null, { status: 202 }), 1);
  expect((await fetch("http://localhost/")).status).toBe(202);
});

const refusedEvent = "\ndata: refused\n\n";
const tooMany = "has more than 100000 JSON values";
const list = (count: number): string => `[${"0,".repeat(count - 1)}0]`;

it("boundedFetch() ends a message with more than 100,000 values with an error, and counts each stream event separately", async () => {
  expect(await read("application/json", [list(99_999)], 1e6)).toHaveLength(199_999);
  await expect(read("application/json", [list(100_000)], 1e6)).rejects.toThrow(tooMany);
  const half = `data: ${list(60_000)}`;
  for (const end of ["\n\n", "\r\n\r\n"]) {
    const events = [half, end, half, end, `${half}${end}${half}`, end.slice(0, -1), `\n${half}`];
    expect(await read("text/event-stream", events, 1e6)).toHaveLength(events.join("").length);
  }
  const lines = `data: [${list(60_000)},\ndata: ${list(60_000)}]\n\n`;
  expect(await read("text/event-stream", [lines], 1e6)).toBe(refusedEvent);
  // A quote in a comment does not hide what follows.
  expect(await read("text/event-stream", [`: "\ndata: ${list(100_000)}\n\n`], 1e6)).toBe(refusedEvent);
});

it("limitMessages() answers a request with an error if its result has too many values, and passes other messages on", () => {
  const delivered: JSONRPCMessage[] = [];
  const errors: Error[] = [];
  const transport = {
    onmessage: (message: JSONRPCMessage) => void delivered.push(message),
    onerror: (error: Error) => void errors.push(error),
  } as unknown as Transport;
  limitMessages(transport);
  const rows = JSON.parse(list(100_000)) as number[];
  const small = { jsonrpc: "2.0", id: 1, result: { rows: [1] } } as const;
  transport.onmessage?.(small);
  transport.onmessage?.({ jsonrpc: "2.0", id: 2, result: { rows } });
  transport.onmessage?.({ jsonrpc: "2.0", method: "notifications/message", params: { rows } });
  expect(delivered).toEqual([
    small,
    {
      jsonrpc: "2.0",
      id: 2,
      error: { code: -32_600, message: expect.stringContaining(tooMany) as string },
    },
  ]);
  expect(errors.map(({ message }) => message)).toEqual([expect.stringContaining(tooMany)]);
});

it("boundedRequest() refuses a message with too many bytes or values, and accepts a small one", async () => {
  const post = (body: string): Request => new Request("http://localhost/mcp", { method: "POST", body });
  expect(await (await boundedRequest(post("[1]"))).text()).toBe("[1]");
  await expect(boundedRequest(post(list(100_000)))).rejects.toMatchObject({ code: "too_large" });
  await expect(boundedRequest(post("[1,2]"), 4)).rejects.toThrow("the message has more than 4 bytes");
});

it("boundedRequest() refuses a message with more than 1,000 values outside the arguments of a tool call", async () => {
  const post = (message: unknown): Request =>
    new Request("http://localhost/mcp", { method: "POST", body: JSON.stringify(message) });
  const keys = Object.fromEntries(Array.from({ length: 2_000 }, (_each, at) => [`key-${at}`, at]));
  const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "look", arguments: keys } };
  expect(await (await boundedRequest(post(call))).json()).toEqual(call);
  expect((await boundedRequest(post([call, call]))).body).not.toBeNull();
  for (const message of [
    { jsonrpc: "2.0", id: 1, method: "initialize", params: { capabilities: { experimental: keys } } },
    { jsonrpc: "2.0", id: 1, method: "ping", params: { arguments: keys } },
    { ...call, params: { ...call.params, _meta: keys } },
    { jsonrpc: "2.0", id: 1, result: keys },
    [call, { jsonrpc: "2.0", method: "notifications/progress", params: keys }],
    keys,
  ])
    await expect(boundedRequest(post(message))).rejects.toThrow(
      "the message without the arguments of a tool call has more than 1000 JSON values",
    );
});
