import { expect, it } from "vitest";
import { boundedFetch } from "../../../src/capabilities/mcp/transport.ts";

/** Returns the text that is read from pieces of a body of a type. */
async function read(type: string, pieces: readonly string[], maxBytes: number): Promise<string> {
  const body = ReadableStream.from(pieces.map((piece) => new TextEncoder().encode(piece)));
  const fetch = boundedFetch(async () => new Response(body, { headers: { "content-type": type } }), maxBytes);
  return (await fetch("http://localhost/")).text();
}

it("boundedFetch() ends a body that is longer than the limit with an error, and passes one of exactly the limit", async () => {
  expect(await read("application/json", ["[1,", "2]"], 5)).toBe("[1,2]");
  await expect(read("application/json", ["[1,", "2]"], 4)).rejects.toThrow(
    "the server sent a message of more than 4 bytes",
  );
});

it("boundedFetch() applies the limit to each event of a stream, and not to the whole stream", async () => {
  const events = Array.from({ length: 50 }, () => "data: x\n\n");
  expect(await read("text/event-stream; charset=utf-8", events, 9)).toBe(events.join(""));
  const returns = Array.from({ length: 50 }, () => "data: x\r\n\r\n");
  expect(await read("text/event-stream", returns, 11)).toBe(returns.join(""));
  await expect(read("text/event-stream", ["data: ", "xxxx", "xxxx"], 9)).rejects.toThrow(
    /more than 9 bytes/u,
  );
  await expect(read("text/event-stream", ["a\n\n", "data: ", "xxxx"], 9)).rejects.toThrow(/more than 9/u);
});

it("boundedFetch() passes a response without a body", async () => {
  const fetch = boundedFetch(async () => new Response(null, { status: 202 }), 1);
  expect((await fetch("http://localhost/")).status).toBe(202);
});
