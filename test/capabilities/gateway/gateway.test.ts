import OpenAI from "openai";
import { expect, onTestFinished, test } from "vitest";
import { RunFold } from "../../../src/surfaces/view/run-fold.ts";
import { post, worldOf, type Access, type Sent } from "./gateway-world.ts";
import { answerEvents, answerJson, eventsOf, type Received } from "./mock-upstream.ts";

const anthropicUsage = { input_tokens: 12, output_tokens: 30 };

test("a program in an endless loop is billed at most its cap by the gateway, and each branch is refused once with 402", async () => {
  let billed = 0;
  const bill = ({ body }: Received): number => {
    const { max_tokens } = JSON.parse(body.toString()) as { max_tokens: number };
    billed += max_tokens;
    return max_tokens;
  };
  const world = await worldOf((received, response) => {
    if (received.path === "/v1/messages/count_tokens") answerJson(response, { input_tokens: 5 });
    else answerJson(response, { usage: { input_tokens: 5, output_tokens: bill(received) } });
  });
  const refusals: Response[] = [];
  const { status, costUsd, events } = await world.run(
    async (access) => {
      const body = { model: "m", max_tokens: 200, messages: [] };
      const loop = async (): Promise<void> => {
        for (;;) {
          const reply = await post(access, { path: "/v1/messages", body });
          if (reply.status === 200) continue;
          refusals.push(reply);
          return;
        }
      };
      await Promise.all([loop(), loop(), loop()]);
    },
    { maxCostUsd: 0.5 },
  );
  expect(status).toBe("budget_exhausted");
  const fold = new RunFold();
  for (const event of events) fold.add(event);
  expect([...fold.view().money]).toMatchObject([
    { agentId: "employee", model: "mock/m", usage: { outputTokens: 500, costUsd: 0.5 } },
  ]);
  expect(billed).toBe(500);
  expect(costUsd).toBeCloseTo(0.5, 9);
  expect(refusals.map(({ status: code }) => code)).toEqual([402, 402, 402]);
  expect(refusals[0]?.headers.get("x-should-retry")).toBe("false");
  const refusal: unknown = await refusals[0]?.json();
  expect(refusal).toMatchObject({ type: "error", error: { type: "billing_error" } });
  expect(JSON.stringify(refusal)).toMatch(/reeve top-up run_\S+ --usd 1/);
});

test("gateway requests that share a connection leave no listeners on it", async () => {
  const warnings: Error[] = [];
  const note = (warning: Error): void => void warnings.push(warning);
  process.on("warning", note);
  onTestFinished(() => void process.off("warning", note));
  const world = await worldOf((_received, response) =>
    answerJson(response, { usage: { input_tokens: 5, output_tokens: 1 } }),
  );
  await world.run(async (access) => {
    const body = { model: "m", max_tokens: 2, messages: [] };
    for (let request = 0; request < 12; request++)
      expect((await post(access, { path: "/v1/messages", body })).status).toBe(200);
  });
  expect(warnings).toEqual([]);
});

test("the gateway closes an idle connection before the provider does", async () => {
  const { promise: closedBy, resolve } = Promise.withResolvers<string>();
  const world = await worldOf((_received, response) => {
    response.socket?.once("end", () => resolve("gateway")).once("close", () => resolve("provider"));
    answerJson(response, { usage: { input_tokens: 5, output_tokens: 1 } }, { "keep-alive": "timeout=2" });
  });
  await world.run(async (access) => {
    const body = { model: "m", max_tokens: 2, messages: [] };
    expect((await post(access, { path: "/v1/messages", body })).status).toBe(200);
    expect(await closedBy).toBe("gateway");
  });
});

test("the gateway asks a chat stream for its usage, and hides the usage event if the client did not ask for it", async () => {
  const text = eventsOf({ choices: [{ delta: { content: "usage" } }] });
  const counted = { choices: [], usage: { prompt_tokens: 3, completion_tokens: 7 } };
  const world = await worldOf((_received, response) =>
    answerEvents(response, text + eventsOf(counted, "[DONE]")),
  );
  const { costUsd } = await world.run(async (access) => {
    const body = { model: "m", stream: true, max_tokens: 50, messages: [] };
    const reply = await post(access, { path: "/v1/chat/completions", body });
    expect(await reply.text()).toBe(text + eventsOf("[DONE]"));
  });
  expect(costUsd).toBeCloseTo(0.007, 9);
  expect(world.upstream.bodies[0]).toMatchObject({ max_tokens: 50, stream_options: { include_usage: true } });
});

test("the package openai streams and gets answers through the gateway, twenty calls at once", async () => {
  const said = { index: 0, delta: { content: "hello" }, finish_reason: null };
  const usage = { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 };
  const world = await worldOf(({ body }, response) => {
    if (body.includes('"stream":true'))
      answerEvents(response, eventsOf({ choices: [said] }, { choices: [], usage }, "[DONE]"));
    else answerJson(response, { choices: [{ index: 0, message: { content: "hello" } }], usage });
  });
  const texts: string[] = [];
  const { costUsd } = await world.run(async ({ url, token }) => {
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: token, maxRetries: 0 });
    const request = { model: "m", messages: [{ role: "user", content: "say hello" }] } as const;
    const whole = async (): Promise<void> => {
      const { choices } = await client.chat.completions.create({
        ...request,
        messages: [...request.messages],
      });
      texts.push(choices[0]?.message.content ?? "");
    };
    const streamed = async (): Promise<void> => {
      const stream = await client.chat.completions.create({
        ...request,
        messages: [...request.messages],
        stream: true,
      });
      for await (const { choices } of stream) texts.push(choices[0]?.delta.content ?? "");
    };
    await Promise.all(Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? whole() : streamed())));
  });
  expect(texts).toEqual(Array.from({ length: 20 }, () => "hello"));
  expect(costUsd).toBeCloseTo(0.1, 9);
});

test("the gateway reserves for an image the bound of an image, not its bytes", async () => {
  const world = await worldOf(({ path }, response) =>
    answerJson(response, path.endsWith("count_tokens") ? {} : { usage: anthropicUsage }),
  );
  const source = { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" };
  const messages = [{ role: "user", content: [{ type: "image", source }] }];
  const statuses: number[] = [];
  const { status } = await world.run(
    async (access) => {
      for (const body of [{ messages: [] }, { messages }]) {
        const asked = { model: "m", max_tokens: 50, ...body };
        statuses.push((await post(access, { path: "/v1/messages", body: asked })).status);
      }
    },
    { maxTokens: 5_000 },
  );
  expect([status, ...statuses]).toEqual(["budget_exhausted", 200, 402]);
});

test("the gateway passes an error of the provider with its headers, and it costs nothing", async () => {
  const world = await worldOf((_received, response) => {
    response.writeHead(429, { "retry-after": "7", "set-cookie": "a=b" }).end('{"error":"slow"}');
  });
  const { costUsd, status } = await world.run(async (access) => {
    const reply = await post(access, { path: "/v1/messages", body: { model: "m", max_tokens: 9 } });
    expect([reply.status, reply.headers.get("retry-after"), await reply.text()]).toEqual([
      429,
      "7",
      '{"error":"slow"}',
    ]);
    expect(reply.headers.get("set-cookie")).toBeNull();
  });
  expect([status, costUsd]).toEqual(["completed", 0]);
});

test("the gateway ends a request when its program disconnects from the stream, and charges the usage that was reported", async () => {
  const closed = Promise.withResolvers<void>();
  const world = await worldOf((_received, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(
      eventsOf({ type: "message_start", message: { usage: { input_tokens: 40, output_tokens: 1 } } }),
    );
    response.once("close", closed.resolve);
  });
  const { costUsd, events } = await world.run(async ({ url, token }) => {
    const leaving = new AbortController();
    const reply = await fetch(`${url}/v1/messages`, {
      method: "POST",
      headers: { "x-api-key": token },
      body: JSON.stringify({ model: "m", max_tokens: 60, stream: true }),
      signal: leaving.signal,
    });
    await reply.body?.getReader().read();
    leaving.abort();
    await closed.promise;
  });
  expect(costUsd).toBeCloseTo(0.06, 9);
  const lost = events.flatMap((event) => (event.type === "budget_lost" ? [event.data.tokens] : []));
  expect(lost).toEqual([100]);
});

const refused: readonly (Sent & { readonly status: number; readonly about: string })[] = [
  { path: "/v1/files", body: {}, status: 404, about: "no POST /v1/files" },
  { path: "/v1/messages/batches", body: {}, status: 404, about: "no POST" },
  { path: "/v1/messages/../messages", body: { model: "m" }, status: 200, about: "" },
  { path: "/v1/messages", body: "{", status: 400, about: "not a JSON object" },
  { path: "/v1/messages", body: "[]", status: 400, about: "not a JSON object" },
  { path: "/v1/messages", body: { max_tokens: 3 }, status: 400, about: "names no model" },
  {
    path: "/v1/messages",
    body: '{"model":"m","max_tokens":3,"max_tokens":9}',
    status: 400,
    about: "max_tokens twice",
  },
  {
    path: "/v1/messages",
    body: '{"model":"m","max_tokens":3,"max_t\\u006fkens":9}',
    status: 400,
    about: "twice",
  },
  {
    path: "/v1/messages",
    body: { model: "x" },
    status: 403,
    about: "the model x is not allowed; use one of m",
  },
  {
    path: "/v1/messages",
    body: { model: "m", tools: [{ type: "web_search_20250305", name: "web_search" }] },
    status: 403,
    about: "web_search_20250305",
  },
  { path: "/v1/messages", body: { model: "m", service_tier: "priority" }, status: 403, about: "priority" },
  {
    path: "/v1/messages",
    body: {
      model: "m",
      messages: [{ content: [{ type: "image", source: { type: "url", url: "http://a" } }] }],
    },
    status: 403,
    about: "image by url",
  },
  {
    path: "/v1/responses",
    body: { model: "m", previous_response_id: "r" },
    status: 403,
    about: "previous_response_id",
  },
  { path: "/v1/responses", body: { model: "m", store: true }, status: 403, about: "store" },
  { path: "/v1/responses", body: { model: "m", background: true }, status: 403, about: "background" },
  { path: "/v1/chat/completions", body: { model: "m", n: 3 }, status: 403, about: "uses n, which" },
  {
    path: "/v1/chat/completions",
    body: { model: "m", max_tokens: 1, max_completion_tokens: 2 },
    status: 400,
    about: "use one",
  },
  {
    path: "/v1beta/models/m:generateContent",
    body: { tools: [{ googleSearch: {} }] },
    status: 403,
    about: "googleSearch",
  },
];

test.each(refused)(
  "the gateway answers a request to $path with $body by $status",
  async ({ status, about, ...sent }) => {
    const world = await worldOf((_received, response) => answerJson(response, { usage: anthropicUsage }), {
      models: ["m"],
    });
    await world.run(async (access) => {
      const reply = await post(access, sent);
      expect(reply.status).toBe(status);
      expect(JSON.stringify(await reply.json())).toContain(about);
    });
    expect(world.upstream.received.length).toBe(status === 200 ? 1 : 0);
  },
);

test("a request option that the gateway configuration allows by name reaches the provider", async () => {
  const world = await worldOf((_received, response) => answerJson(response, { usage: anthropicUsage }), {
    allow: ["store"],
  });
  await world.run(async (access) => {
    const reply = await post(access, { path: "/v1/responses", body: { model: "m", store: true } });
    expect(reply.status).toBe(200);
  });
});

test("the gateway refuses a token after its task has ended, and another host and an unknown token at once", async () => {
  const world = await worldOf((_received, response) => answerJson(response, { usage: anthropicUsage }));
  let before: Access | undefined;
  await world.run(async (access) => {
    before = access;
    const wrong = await post({ ...access, token: "wrong" }, { path: "/v1/messages", body: { model: "m" } });
    expect(wrong.status).toBe(401);
    const plain = await fetch(`${access.url}/v1/models`);
    expect(plain.status).toBe(401);
  });
  if (before === undefined) throw new Error("the program did not run");
  const after = await post(before, { path: "/v1/messages", body: { model: "m" } });
  expect([after.status, world.upstream.received.length]).toEqual([401, 0]);
});

test("behind the gateway, the provider receives its own key and listed headers only, and redirects are refused", async () => {
  const world = await worldOf((_received, response) => {
    response.writeHead(302, { location: "http://127.0.0.1:1/" }).end();
  });
  await world.run(async (access) => {
    const headers = { "anthropic-version": "2023-06-01", cookie: "a=b", "x-forwarded-for": "1.2.3.4" };
    const reply = await post(access, { path: "/v1/messages", body: { model: "m" }, headers });
    expect(reply.status).toBe(502);
  });
  const [received] = world.upstream.received;
  expect(received?.headers).toMatchObject({ "x-api-key": "secret-key", "anthropic-version": "2023-06-01" });
  expect(Object.keys(received?.headers ?? {})).not.toContain("cookie");
  expect(Object.keys(received?.headers ?? {})).not.toContain("x-forwarded-for");
  expect(Object.keys(received?.headers ?? {})).not.toContain("x-reeve-token");
});

test("the gateway refuses a body above the limit before it has read the whole body", async () => {
  const world = await worldOf((_received, response) => answerJson(response, {}), { maxBodyBytes: 100 });
  await world.run(async (access) => {
    const reply = await post(access, { path: "/v1/messages", body: { model: "m", text: "x".repeat(200) } });
    expect(reply.status).toBe(413);
  });
  expect(world.upstream.received).toEqual([]);
});

test("the gateway lowers the thinking budget together with the output limit, and stops if the money pays for no thinking", async () => {
  const { upstream, run } = await worldOf((_, response) =>
    answerJson(response, { usage: { input_tokens: 1, output_tokens: 2_000 } }),
  );
  const body = {
    model: "m",
    max_tokens: 32_000,
    thinking: { type: "enabled", budget_tokens: 31_999 },
    messages: [],
  };
  const statuses: number[] = [];
  const { status } = await run(
    async (access) => {
      for (let sent = 0; sent < 2; sent++)
        statuses.push((await post(access, { path: "/v1/messages", body })).status);
    },
    { maxCostUsd: 3 },
  );
  expect([status, statuses]).toEqual(["budget_exhausted", [200, 402]]);
  // The other requests count tokens.
  expect(upstream.bodies.filter(({ max_tokens }) => max_tokens !== undefined)).toEqual([
    { ...body, max_tokens: 3_000, thinking: { ...body.thinking, budget_tokens: 2_999 } },
  ]);
});

test("the gateway allows a namespace of functions, and refuses a tool of the provider in it", async () => {
  const { run } = await worldOf((_, response) =>
    answerJson(response, { usage: { input_tokens: 1, output_tokens: 1 } }),
  );
  const sent = { model: "m", max_output_tokens: 10, input: "hi" };
  const namespace = (type: string): object => ({
    type: "namespace",
    name: "mcp",
    tools: [{ type, name: "look" }],
  });
  await run(async (access) => {
    const ask = async (tools: readonly object[]): Promise<number> =>
      (await post(access, { path: "/v1/responses", body: { ...sent, tools } })).status;
    expect([await ask([namespace("function")]), await ask([namespace("web_search")])]).toEqual([200, 403]);
  });
});
