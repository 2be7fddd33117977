import { createHash } from "node:crypto";
import { once } from "node:events";
import { request, type IncomingMessage, type ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { casesOf } from "../../effort.ts";
import type { GatewayOptions } from "../../../src/capabilities/gateway/gateway-options.ts";
import { worldOf, type Access } from "./gateway-world.ts";
import {
  brokenText,
  Random,
  randomEvents,
  randomObject,
  randomPieces,
  randomText,
  writeJson,
} from "./random-exchange.ts";

/**
 * What each provider protocol sends and receives, whole and as a stream. Each output token costs a thousandth of a
 * dollar.
 */
const wires = {
  "Anthropic messages": {
    path: "/v1/messages",
    streamPath: "/v1/messages",
    limit: ["max_tokens"],
    free: "metadata",
    request: (random: Random, stream: boolean) => ({
      model: "m",
      stream,
      messages: [{ role: "user", content: [{ type: "text", text: randomText(random) }] }],
    }),
  },
  "OpenAI responses": {
    path: "/v1/responses",
    streamPath: "/v1/responses",
    limit: ["max_output_tokens"],
    free: "metadata",
    request: (random: Random, stream: boolean) => ({
      model: "m",
      stream,
      store: false,
      input: random.pick([randomText(random), [{ role: "user", content: randomText(random) }]]),
    }),
  },
  "OpenAI chat completions": {
    path: "/v1/chat/completions",
    streamPath: "/v1/chat/completions",
    limit: ["max_completion_tokens"],
    free: "metadata",
    request: (random: Random, stream: boolean) => ({
      model: "m",
      stream,
      ...(stream && { stream_options: { include_usage: true } }),
      messages: [{ role: "user", content: randomText(random) }],
    }),
  },
  Gemini: {
    path: "/v1beta/models/m:generateContent",
    streamPath: "/v1beta/models/m:streamGenerateContent?alt=sse",
    limit: ["generationConfig", "maxOutputTokens"],
    free: "labels",
    request: (random: Random) => ({ contents: [{ role: "user", parts: [{ text: randomText(random) }] }] }),
  },
} as const;

type WireName = keyof typeof wires;

const rounds = casesOf(1_000, 60);

const sha = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");

/** One exchange: the request, and the provider's answer as a list of events. */
interface Exchange {
  readonly number: number;
  readonly path: string;
  readonly value: Readonly<Record<string, unknown>>;
  readonly body: Buffer;
  readonly isStream: boolean;
  readonly answer: readonly Buffer[];
}

const counts = { input_tokens: 12, output_tokens: 30 };
const chatCounts = { prompt_tokens: 12, completion_tokens: 30 };

/** What a provider answers: as one value, and as the events of a stream. */
function answersOf(
  name: WireName,
  text: string,
): { readonly whole: object; readonly events: readonly unknown[] } {
  switch (name) {
    case "Anthropic messages":
      return {
        whole: { content: [{ type: "text", text }], usage: counts },
        events: [
          { type: "message_start", message: { usage: { input_tokens: 12, output_tokens: 1 } } },
          { type: "content_block_delta", delta: { text } },
          { type: "message_delta", usage: { output_tokens: 30 } },
        ],
      };
    case "OpenAI responses":
      return {
        whole: { output: [text], usage: counts },
        events: [
          { type: "response.output_text.delta", delta: text },
          { type: "response.completed", response: { usage: counts } },
        ],
      };
    case "OpenAI chat completions":
      return {
        whole: { choices: [{ message: { content: text } }], usage: chatCounts },
        events: [
          { choices: [{ delta: { content: text } }], usage: null },
          { choices: [], usage: chatCounts },
          "[DONE]",
        ],
      };
    case "Gemini": {
      const usageMetadata = { promptTokenCount: 12, candidatesTokenCount: 20, thoughtsTokenCount: 10 };
      const content = { parts: [{ text }] };
      return {
        whole: { candidates: [{ content, finishReason: "STOP" }], usageMetadata },
        events: [
          { candidates: [{ content }], usageMetadata: { promptTokenCount: 12 } },
          { candidates: [{ content, finishReason: "STOP" }], usageMetadata },
        ],
      };
    }
  }
}

/**
 * Returns the random exchange of a protocol that belongs to a number. `limit` is the output limit that the request
 * states.
 */
function exchangeOf(name: WireName, number: number, limit?: number): Exchange {
  const random = new Random(number * 7_919 + name.length);
  const { path, streamPath, request: requestOf, limit: limitPath, free } = wires[name];
  const isStream = random.next() < 0.6;
  const [top, inner] = limitPath as readonly [string, string?];
  const stated = limit === undefined ? {} : { [top]: inner === undefined ? limit : { [inner]: limit } };
  const value = { ...requestOf(random, isStream), ...stated, [free]: randomObject(random) };
  const { whole, events } = answersOf(name, randomText(random));
  const text = Buffer.from(`,${writeJson(random, whole).trim().slice(1)}`);
  const broken = Buffer.concat([Buffer.from('{"broken":"'), brokenText, Buffer.from('"'), text]);
  const one = random.next() < 0.3 ? broken : Buffer.from(writeJson(random, whole));
  return {
    number,
    path: isStream ? streamPath : path,
    value,
    body: Buffer.from(writeJson(random, value)),
    isStream,
    answer: isStream ? randomEvents(random, events) : [one],
  };
}

/** Sends a request in random pieces and returns the bytes of the answer. */
async function send({ url, token }: Access, { number, path, body }: Exchange): Promise<Buffer> {
  const headers = { "x-api-key": token, "content-type": "application/json", "user-agent": String(number) };
  const outgoing = request(`${url}${path}`, { method: "POST", headers });
  const answered = once(outgoing, "response") as Promise<[IncomingMessage]>;
  for (const piece of randomPieces(new Random(number), body)) outgoing.write(piece);
  outgoing.end();
  const [answer] = await answered;
  const pieces: Buffer[] = [];
  for await (const piece of answer as AsyncIterable<Buffer>) pieces.push(piece);
  const bytes = Buffer.concat(pieces);
  if (answer.statusCode !== 200) throw new Error(`exchange ${number}: ${bytes.toString()}`);
  return bytes;
}

/** Answers in random pieces, some of which leave the process at once. */
async function writeAnswer(
  response: ServerResponse,
  { number, isStream, answer: parts }: Exchange,
): Promise<void> {
  response.writeHead(200, { "content-type": isStream ? "text/event-stream" : "application/json" });
  for (const piece of randomPieces(new Random(-number), Buffer.concat(parts))) {
    response.write(piece);
    if (piece.length % 2 === 0) await new Promise(setImmediate);
  }
  response.end();
}

/** Sends exchanges, several at once. Returns what arrived at the provider and at the program, and what was paid. */
async function exchangeAll(
  exchanges: readonly Exchange[],
  options: Partial<GatewayOptions> = {},
): Promise<{
  readonly costUsd: number | null;
  readonly sent: readonly Buffer[];
  readonly got: readonly Buffer[];
}> {
  const sent: Buffer[] = [];
  const got: Buffer[] = [];
  const world = await worldOf(({ headers, body }, response) => {
    const number = Number(headers["user-agent"]);
    sent[number] = body;
    return writeAnswer(response, exchanges[number] as Exchange);
  }, options);
  const { status, costUsd } = await world.run(async (access) => {
    const rest = exchanges.values();
    const lane = async (): Promise<void> => {
      for (const each of rest) got[each.number] = await send(access, each);
    };
    await Promise.all(Array.from({ length: 6 }, lane));
  });
  expect(status).toBe("completed");
  return { costUsd, sent, got };
}

const names = Object.keys(wires) as WireName[];

test.each(names)(
  "%s: the gateway passes random requests and answers unchanged in random pieces, and charges their usage",
  async (name) => {
    const exchanges = Array.from({ length: rounds }, (_, number) => exchangeOf(name, number, 90));
    const { costUsd, sent, got } = await exchangeAll(exchanges);
    expect(sent.map(sha)).toEqual(exchanges.map(({ body }) => sha(body)));
    expect(got.map(sha)).toEqual(exchanges.map(({ answer: parts }) => sha(Buffer.concat(parts))));
    expect(costUsd).toBeCloseTo(rounds * 0.03, 6);
  },
);

test.each(names)(
  "%s: the gateway changes one member of a request above the limit or without one, and passes its answer unchanged",
  async (name) => {
    const exchanges = Array.from({ length: rounds }, (_, number) =>
      exchangeOf(name, number, number % 2 === 0 ? 90 : undefined),
    );
    const { costUsd, sent, got } = await exchangeAll(exchanges, { maxOutputTokens: 40 });
    const [top, inner] = wires[name].limit as readonly [string, string?];
    const limit = { [top]: inner === undefined ? 40 : { [inner]: 40 } };
    expect(sent.map((body) => JSON.parse(body.toString()) as unknown)).toEqual(
      exchanges.map(({ value }) => ({ ...value, ...limit })),
    );
    expect(got.map(sha)).toEqual(exchanges.map(({ answer: parts }) => sha(Buffer.concat(parts))));
    expect(costUsd).toBeCloseTo(rounds * 0.03, 6);
  },
);

test("the gateway client receives every byte of a random chat stream except those of the event for which it did not ask", async () => {
  const exchanges = Array.from({ length: rounds }, (_, number) => {
    const each = exchangeOf("OpenAI chat completions", number, 90);
    const { stream_options: _asked, ...value } = each.value;
    return { ...each, value, body: Buffer.from(JSON.stringify(value)) };
  }).filter(({ isStream }) => isStream);
  const numbered = exchanges.map((each, number) => ({ ...each, number }));
  const { costUsd, sent, got } = await exchangeAll(numbered);
  expect(sent.map((body) => JSON.parse(body.toString()) as unknown)).toEqual(
    numbered.map(({ value }) => ({ ...value, stream_options: { include_usage: true } })),
  );
  const shown = numbered.map(({ answer: [first, , last] }) => Buffer.concat([first, last] as Buffer[]));
  expect(got.map(sha)).toEqual(shown.map(sha));
  expect(costUsd).toBeCloseTo(numbered.length * 0.03, 6);
});
