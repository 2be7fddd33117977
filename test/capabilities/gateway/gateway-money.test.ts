import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import type { Event, ExecutionBudget } from "../../../src/kernel/index.ts";
import { post, worldOf, type Access, type WorldOptions } from "./gateway-world.ts";
import { answerEvents, answerJson, eventsOf, MockUpstream } from "./mock-upstream.ts";

const usage = { input_tokens: 12, output_tokens: 30 };
const chat = "/v1/chat/completions";
const user = (...content: readonly object[]): object[] => [{ role: "user", content }];

/** A millionth of a dollar per input token, a thousandth per output token. */
const paidInput: WorldOptions = {
  runtime: { prices: { find: () => ({ inputUsd: 1e-6, outputUsd: 1e-3 }) } },
};

const pdf = user({
  type: "document",
  source: { type: "base64", media_type: "application/pdf", data: "JVBERi0=" },
});

test.each([
  [0.05, 402, 0],
  [0.12, 200, 0.105],
])(
  "B1: under a cap of %f USD the gateway answers a PDF of eight letters that counts as 100,000 tokens with %i",
  async (maxCostUsd, status, billed) => {
    const input_tokens = 100_000;
    const world = await worldOf(
      ({ path }, response) =>
        answerJson(
          response,
          path.endsWith("count_tokens") ? { input_tokens } : { usage: { input_tokens, output_tokens: 5 } },
        ),
      {},
      paidInput,
    );
    const statuses: number[] = [];
    const { costUsd } = await world.run(
      async (access) => {
        const body = { model: "claude-x", max_tokens: 5, messages: pdf };
        statuses.push((await post(access, { path: "/v1/messages", body })).status);
      },
      { maxCostUsd },
    );
    expect(statuses).toEqual([status]);
    expect(costUsd).toBeCloseTo(billed, 9);
    // The request for the count is valid JSON, and has no member that the endpoint does not know.
    expect(world.upstream.bodies[0]).toEqual({ model: "claude-x", messages: pdf });
  },
);

const image = { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } };
const file = { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERi0=" } };

test.each([
  ["an image for gpt-4o-mini", "gpt-4o-mini", image, 45_000, 402],
  ["an image for gpt-4o-mini", "gpt-4o-mini", image, 55_000, 200],
  ["an image for another model", "gpt-x", image, 20_000, 200],
  ["a file that is allowed", "gpt-4o-mini", file, 100_000, 402],
  ["a file that is allowed", "gpt-4o-mini", file, 140_000, 200],
] as const)(
  "B1: the gateway reserves %s as what %s may read of it (%o), so that a budget of %i tokens answers with %i",
  async (_what, model, part, maxTokens, status) => {
    const world = await worldOf(
      (_received, response) =>
        answerJson(response, { choices: [], usage: { prompt_tokens: 9, completion_tokens: 9 } }),
      { allow: ["file"] },
      { providers: { openai: "openai" } },
    );
    await world.run(
      async (access) => {
        const body = { model, max_completion_tokens: 50, messages: user(part) };
        expect((await post(access, { path: chat, body })).status).toBe(status);
      },
      { maxTokens },
    );
  },
);

test.each([
  [{ outputLimit: "max_tokens" }, { max_completion_tokens: 90 }, { max_tokens: 40 }],
  [{ outputLimit: "max_tokens" }, { max_completion_tokens: 20 }, { max_tokens: 20 }],
  [{ outputLimit: "max_tokens" }, {}, { max_tokens: 40 }],
  [{ outputLimit: "max_tokens" }, { max_tokens: 90 }, { max_tokens: 40 }],
  [{ outputLimit: "max_completion_tokens" }, {}, { max_completion_tokens: 40 }],
  [{ outputLimit: "max_completion_tokens" }, { max_tokens: 90 }, { max_tokens: 40 }],
  [{ provider: "mistral" }, {}, { max_tokens: 40 }],
  [{ provider: "openai" }, {}, { max_completion_tokens: 40, store: false }],
] as const)(
  "behind the gateway, a provider with %o receives the output limit of a chat with %o as %o",
  async (upstream, stated, expected) => {
    const world = await worldOf(
      (_received, response) =>
        answerJson(response, { choices: [], usage: { prompt_tokens: 9, completion_tokens: 9 } }),
      { maxOutputTokens: 40 },
      { upstream },
    );
    await world.run(async (access) => {
      const reply = await post(access, { path: chat, body: { model: "m", ...stated, messages: [] } });
      expect(reply.status).toBe(200);
    });
    expect(world.upstream.bodies).toEqual([{ model: "m", ...expected, messages: [] }]);
  },
);

test.each([
  [[], {}, { store: false }],
  [[], { store: null }, { store: false }],
  [[], { store: false }, { store: false }],
  [["store"], {}, {}],
  [["store"], { store: true }, { store: true }],
])(
  "with %o allowed, the gateway turns a request for a response with %o into %o, because the provider stores by default",
  async (allow, stated, expected) => {
    const world = await worldOf((_received, response) => answerJson(response, { usage }), { allow });
    await world.run(async (access) => {
      const body = { model: "m", input: "hi", max_output_tokens: 9, ...stated };
      expect((await post(access, { path: "/v1/responses", body })).status).toBe(200);
    });
    expect(world.upstream.bodies).toEqual([{ model: "m", input: "hi", max_output_tokens: 9, ...expected }]);
  },
);

test("a gateway request whose connection never opens costs nothing, and may be tried again", async () => {
  const closed = await MockUpstream.open(() => undefined);
  const { url } = closed;
  await closed.close();
  const world = await worldOf(() => undefined, {}, { upstream: { baseUrl: url } });
  const { status, costUsd, events } = await world.run(async (access) => {
    const reply = await post(access, { path: "/v1/messages", body: { model: "m", max_tokens: 60 } });
    expect([reply.status, reply.headers.get("x-should-retry"), reply.headers.get("retry-after")]).toEqual([
      502,
      "true",
      "1",
    ]);
  });
  expect([status, costUsd]).toEqual(["completed", 0]);
  expect(events.some(({ type }) => type === "budget_lost")).toBe(false);
});

test("B3: the gateway charges a request whose connection breaks after the request was sent", async () => {
  const world = await worldOf((_received, response) => void response.destroy());
  const { costUsd } = await world.run(async (access) => {
    const reply = await post(access, { path: "/v1/messages", body: { model: "m", max_tokens: 60 } });
    expect(reply.status).toBe(502);
  });
  expect(costUsd).toBeCloseTo(0.06, 9);
});

test("an answer that is compressed although the gateway did not ask for that is decompressed, and its usage is charged", async () => {
  const text = JSON.stringify({ content: [], usage });
  const world = await worldOf((_received, response) => {
    response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" });
    response.end(gzipSync(text));
  });
  const { costUsd } = await world.run(async (access) => {
    const reply = await post(access, { path: "/v1/messages", body: { model: "m", max_tokens: 60 } });
    expect([reply.headers.get("content-encoding"), await reply.text()]).toEqual([null, text]);
  });
  expect(costUsd).toBeCloseTo(0.03, 9);
});

const partial = { usageMetadata: { promptTokenCount: 40, candidatesTokenCount: 3 } };

test.each([
  ["ends after its first count", eventsOf(partial), 0.06],
  ["says that it ends", eventsOf(partial, { ...partial, candidates: [{ finishReason: "STOP" }] }), 0.003],
  ["says that it was blocked", eventsOf({ ...partial, promptFeedback: { blockReason: "SAFETY" } }), 0.003],
])(
  "B3: the gateway charges a Gemini stream that %s with what the provider may bill",
  async (_what, text, cost) => {
    const world = await worldOf((_received, response) => answerEvents(response, text));
    const { costUsd } = await world.run(async (access) => {
      const body = { contents: [], generationConfig: { maxOutputTokens: 60 } };
      await (await post(access, { path: "/v1beta/models/m:streamGenerateContent?alt=sse", body })).text();
    });
    expect(costUsd).toBeCloseTo(cost, 9);
  },
);

test("B3: the gateway treats impossible usage as an unreported call and logs it", async () => {
  const world = await worldOf((_received, response) =>
    answerJson(response, { usage: { input_tokens: 5, output_tokens: 1e15 } }),
  );
  const { costUsd, events } = await world.run(async (access) => {
    await post(access, { path: "/v1/messages", body: { model: "m", max_tokens: 60 } });
  });
  expect(costUsd).toBeCloseTo(0.06, 9);
  expect(events.flatMap((event) => (event.type === "metered_call" ? [event.data.status] : []))).toEqual([
    "error",
  ]);
});

test.each<readonly [string, Partial<ExecutionBudget> | undefined, number]>([
  ["a budget in dollars", { maxCostUsd: 1 }, 403],
  ["a budget in tokens", { maxTokens: 100_000 }, 200],
  ["no budget", undefined, 403],
])(
  "B4: the gateway with %s (%o) answers a model without a known price with %i",
  async (_what, budget, status) => {
    const world = await worldOf(
      (_received, response) => answerJson(response, { usage }),
      {},
      { runtime: { prices: { find: () => null } } },
    );
    await world.run(async (access) => {
      const reply = await post(access, { path: "/v1/messages", body: { model: "mystery-1", max_tokens: 9 } });
      expect([reply.status, (await reply.text()).includes("mock/mystery-1 has no known price")]).toEqual([
        status,
        status === 403,
      ]);
    }, budget);
    expect(world.upstream.received.length).toBe(status === 200 ? 1 : 0);
  },
);

function freeRequests(events: readonly Event[]): readonly object[] {
  return events.flatMap(({ type, data }) => (type === "gateway_request" ? [data] : []));
}

test("a gateway request that counts tokens has the checks of a call, one event, and a limit per second", async () => {
  let now = 0;
  const world = await worldOf(
    ({ path }, response) =>
      answerJson(response, path.endsWith("count_tokens") ? { input_tokens: 7 } : { usage }),
    { models: ["m"] },
    { place: { now: () => now } },
  );
  const count = (access: Access, body: object): Promise<Response> =>
    post(access, { path: "/v1/messages/count_tokens", body });
  const { events } = await world.run(async (access) => {
    const counted = await count(access, { model: "m", messages: [] });
    expect([counted.status, await counted.json()]).toEqual([200, { input_tokens: 7 }]);
    expect((await count(access, { model: "other", messages: [] })).status).toBe(403);
    expect((await count(access, { model: "m", mcp_servers: [{ url: "http://evil.example" }] })).status).toBe(
      403,
    );
    const remote = user({ type: "image", source: { type: "url", url: "http://169.254.169.254/" } });
    expect((await count(access, { model: "m", messages: remote })).status).toBe(403);
    const statuses = new Set<number>();
    for (let round = 0; round < 60; round++) statuses.add((await count(access, { model: "m" })).status);
    expect([...statuses]).toEqual([200, 429]);
    now += 1_000;
    expect((await count(access, { model: "m" })).status).toBe(200);
  });
  expect(world.upstream.received.length).toBe(61);
  const [counted, refused] = freeRequests(events);
  expect(counted).toEqual({ endpoint: "/v1/messages/count_tokens", status: 200, model: "m" });
  expect(refused).toMatchObject({
    status: 403,
    model: "other",
    reason: expect.stringContaining("use one of m") as string,
  });
});

test("requests that the gateway refuses have events with their reason, and a flood of them has few events", async () => {
  let now = 0;
  const world = await worldOf(() => undefined, {}, { place: { now: () => now } });
  const { events } = await world.run(async (access) => {
    const refuse = (): Promise<Response> =>
      post(access, { path: "/v1/messages", body: { model: "m", tools: [{ type: "web_search_20250305" }] } });
    for (let round = 0; round < 40; round++) expect((await refuse()).status).toBe(403);
    now += 60_000;
    await refuse();
    await post(access, { path: "/v1/files", body: {} });
  });
  const found = freeRequests(events);
  expect(found.length).toBe(32);
  expect(found[0]).toEqual({
    endpoint: "/v1/messages",
    status: 403,
    model: "m",
    reason: expect.stringContaining("web_search_20250305") as string,
  });
  expect(found.slice(30)).toEqual([
    expect.objectContaining({ status: 403, skipped: 10 }),
    { endpoint: null, status: 404, model: null, reason: "the gateway has no POST /v1/files" },
  ]);
});

test("the gateway log of a call has what was asked for, sent and reserved, and what a cut call cost", async () => {
  const world = await worldOf(
    ({ body }, response) => {
      if (body.includes("cut")) response.destroy();
      else answerJson(response, { usage });
    },
    { maxOutputTokens: 40 },
  );
  const { events } = await world.run(
    async (access) => {
      for (const text of ["whole", "cut", "too much"])
        await post(access, {
          path: "/v1/messages",
          body: { model: "m", ...(text === "cut" ? {} : { max_tokens: 90 }), metadata: { text } },
        });
    },
    { maxCostUsd: 0.07 },
  );
  expect(events.flatMap(({ type, data }) => (type === "metered_call" ? [data] : []))).toMatchObject([
    { status: "ok", limit: { asked: 90, sent: 40 }, reserved: { costUsd: 0.04 }, usage: { costUsd: 0.03 } },
    {
      status: "error",
      limit: { asked: null, sent: 40 },
      reserved: { costUsd: 0.04 },
      charged: { costUsd: 0.04 },
    },
  ]);
  const refused = events.flatMap(({ type, data }) => (type === "budget_exhausted" ? [data] : []));
  expect(refused).toMatchObject([{ model: { provider: "mock", modelId: "m" } }]);
});
