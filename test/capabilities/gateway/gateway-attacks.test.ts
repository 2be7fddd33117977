import { request } from "node:http";
import { expect, test } from "vitest";
import type { GatewayOptions } from "../../../src/capabilities/gateway/gateway-options.ts";
import { post, worldOf, type Access, type World } from "./gateway-world.ts";
import { answerEvents, answerJson, eventsOf } from "./mock-upstream.ts";

const usage = { input_tokens: 12, output_tokens: 3 };

function answering(options: Partial<GatewayOptions> = {}): Promise<World> {
  return worldOf((_received, response) => answerJson(response, { usage }), options);
}

/** Sends a path unchanged. `fetch` would normalise it. */
function rawStatus(
  { url, token }: Access,
  path: string,
  headers: Record<string, string> = {},
): Promise<number> {
  return new Promise((resolve, reject) => {
    const { port } = new URL(url);
    const sent = { "x-api-key": token, "content-type": "application/json", ...headers };
    const outgoing = request({ host: "127.0.0.1", port, path, method: "POST", headers: sent }, (answer) => {
      answer.resume().once("end", () => resolve(answer.statusCode ?? 0));
    });
    outgoing.once("error", reject).end("{}");
  });
}

test.each([
  "/v1beta/models/%:generateContent",
  "/v1beta/models/..\\..\\upload\\x:generateContent",
  "/v1beta/models/..%2f..%2fx:generateContent",
  "/v1beta/models/..:generateContent",
  "/v1beta/models/m#x:generateContent",
  "/v1beta/models/m@evil.example:generateContent",
  "http://evil.example/v1/messages",
  "//evil.example/v1/messages",
  "/v1/messages/../files",
  "/v1/messages%2f..%2ffiles",
  "/v1/messages/",
  "/V1/messages",
])("the gateway does not send a request to the path %s to the provider", async (path) => {
  const world = await answering();
  await world.run(async (access) => {
    expect(await rawStatus(access, path)).toBe(404);
    // The gateway serves the next request.
    expect((await post(access, { path: "/v1/messages", body: { model: "m" } })).status).toBe(200);
  });
  expect(world.upstream.received.map(({ path: at }) => at)).toEqual(["/v1/messages"]);
});

test("a gateway request without a token, or from another host, does not reach the provider, whatever its path", async () => {
  const world = await answering();
  await world.run(async (access) => {
    expect(await rawStatus({ ...access, token: "" }, "/v1beta/models/%:generateContent")).toBe(401);
    expect(await rawStatus(access, "/v1/messages", { host: "evil.example" })).toBe(403);
    expect(await rawStatus(access, "/v1/messages", { host: "127.0.0.1" })).toBe(403);
  });
  expect(world.upstream.received).toEqual([]);
});

const chat = "/v1/chat/completions";
const gemini = "/v1beta/models/m:generateContent";
const user = (part: object): object => ({ role: "user", content: [part] });

const refusedBodies: readonly (readonly [path: string, body: object, status: number, about: string])[] = [
  ["/v1/messages", { speed: "fast" }, 403, "speed"],
  [
    "/v1/messages",
    { system: [{ type: "text", text: "a", cache_control: { type: "ephemeral", ttl: "1h" } }] },
    403,
    "cache for 1h",
  ],
  ["/v1/messages", { tools: [{ name: "a", cache_control: { ttl: "1h" } }] }, 403, "cache for 1h"],
  ["/v1/messages", { model: "m".repeat(300) }, 400, "the name of the model"],
  ["/v1/messages", { tools: { type: "web_search_20250305" } }, 400, "tools is not a list"],
  ["/v1/messages", { tools: ["web_search"] }, 400, "tools contains"],
  ["/v1/messages", { service_tier: "Priority" }, 403, "Priority"],
  ["/v1/messages", { fallbacks: ["x"] }, 403, "fallbacks"],
  ["/v1/messages", { api_base: "http://evil.example" }, 403, "api_base"],
  ["/v1/messages", { Max_Tokens: 99_999 }, 400, "Max_Tokens is another spelling of max_tokens"],
  ["/v1/messages", { maxTokens: 99_999 }, 400, "another spelling"],
  ["/v1/messages", { Model: "other" }, 400, "another spelling of model"],
  ["/v1/messages", { max_tokens: "99999" }, 400, "expected an integer from 1"],
  ["/v1/messages", { max_tokens: 0 }, 400, "expected an integer from 1"],
  [
    "/v1/messages",
    { context_management: { edits: [{ type: "compact_20260112" }] } },
    403,
    "context_management compact_20260112",
  ],
  ["/v1/messages", { context_management: [{ type: "compact_20260112" }] }, 400, "not an object"],
  [
    "/v1/messages",
    { messages: [user({ type: "container_upload", file_id: "f" })] },
    403,
    "content container_upload",
  ],
  [
    "/v1/messages",
    { system: [{ type: "image", source: { type: "url", url: "http://a" } }] },
    403,
    "image by url",
  ],
  [
    "/v1/messages",
    {
      messages: [
        user({
          type: "tool_result",
          content: [{ type: "document", source: { type: "url", url: "http://a" } }],
        }),
      ],
    },
    403,
    "document by url",
  ],
  [chat, { n: "3" }, 403, "n,"],
  [chat, { best_of: 3 }, 403, "best_of"],
  [chat, { models: ["a", "b"] }, 403, "models"],
  [chat, { fallbacks: ["b"] }, 403, "fallbacks"],
  [chat, { plugins: [{ id: "web" }] }, 403, "plugins"],
  [chat, { api_base: "http://evil.example" }, 403, "api_base"],
  [chat, { search_parameters: { mode: "on" } }, 403, "search_parameters"],
  [chat, { modalities: ["text", "audio"] }, 403, "modalities"],
  [chat, { modalities: "audio" }, 403, "modalities"],
  [chat, { messages: [user({ type: "input_audio", input_audio: {} })] }, 403, "audio"],
  [chat, { messages: [user({ type: "image_url", image_url: "http://a/x.png" })] }, 403, "image by url"],
  [chat, { messages: [user({ type: "video_url", video_url: { url: "http://a" } })] }, 403, "video_url"],
  [
    chat,
    { messages: [user({ type: "file", file: { file_data: "data:application/pdf;base64,JVBERi0=" } })] },
    403,
    "file",
  ],
  [
    chat,
    { messages: [user({ type: "image_url", image_url: { url: "data:application/pdf;base64,JVBERi0=" } })] },
    403,
    "file",
  ],
  [chat, { messages: [{ role: "user", images: ["http://a/x.png"] }] }, 403, "images"],
  [chat, { max_tokens: -1 }, 400, "max_tokens -1"],
  [chat, { max_tokens: "99999" }, 400, "max_tokens"],
  [chat, { max_tokens: 99_999.5 }, 400, "max_tokens 99999.5"],
  [chat, { max_tokens: "99999", max_completion_tokens: 5 }, 400, "max_tokens"],
  [chat, { max_tokens: 5, max_completion_tokens: 5 }, 400, "use one"],
  [chat, { stream: "true" }, 400, "stream is neither"],
  [chat, { stream: true, stream_options: { include_usage: "false" } }, 400, "include_usage"],
  ["/v1/responses", { tools: { type: "web_search" } }, 400, "tools is not a list"],
  [
    "/v1/responses",
    { tools: [{ type: "shell", environment: { type: "container_auto" } }] },
    403,
    "shell in a container",
  ],
  [
    "/v1/responses",
    { context_management: [{ type: "compaction", compact_threshold: 1000 }] },
    403,
    "context_management",
  ],
  ["/v1/responses", { input: [{ id: "msg_1" }] }, 403, "item_reference"],
  ["/v1/responses", { input: [{ id: "msg_1", type: null }] }, 403, "item_reference"],
  [
    "/v1/responses",
    {
      input: [user({ type: "input_file", file_data: "data:application/pdf;base64,JVBERi0=" })],
    },
    403,
    "file",
  ],
  [
    "/v1/responses",
    {
      input: [
        { type: "function_call_output", output: [{ type: "input_image", image_url: "http://a/x.png" }] },
      ],
    },
    403,
    "image by url",
  ],
  [gemini, { generationConfig: { max_output_tokens: 99_999 } }, 400, "max_output_tokens"],
  [gemini, { generation_config: { maxOutputTokens: 99_999 } }, 400, "generation_config"],
  [gemini, { generationConfig: [] }, 400, "generationConfig is not an object"],
  [gemini, { generationConfig: { candidateCount: "4" } }, 403, "candidateCount"],
  [gemini, { generationConfig: { responseModalities: ["IMAGE"] } }, 403, "responseModalities"],
  [gemini, { tools: { googleSearch: {} } }, 400, "tools is not a list"],
  [gemini, { tools: [{ functionDeclarations: [], googleSearch: {} }] }, 403, "googleSearch"],
  [gemini, { contents: [{ parts: [{ inlineData: { mimeType: "audio/mp3", data: "" } }] }] }, 403, "audio"],
  [
    gemini,
    { contents: [{ parts: [{ inlineData: { mimeType: "application/pdf", data: "JVBERi0=" } }] }] },
    403,
    "file",
  ],
  [gemini, { contents: { parts: [{ fileData: { fileUri: "http://a" } }] } }, 400, "contents is not a list"],
  [gemini, { contents: [{ parts: [{ fileData: { fileUri: "http://a" } }] }] }, 403, "file by uri"],
];

test.each(refusedBodies)(
  "the gateway refuses a request to %s with %o, whose cost has another bound, with %i",
  async (path, body, status, about) => {
    const world = await answering();
    await world.run(async (access) => {
      const own = path === gemini ? {} : { model: "m" };
      const reply = await post(access, { path, body: { ...own, ...body } });
      const text = await reply.text();
      expect([reply.status, text.includes(about) ? about : text]).toEqual([status, about]);
    });
    expect(world.upstream.received).toEqual([]);
  },
);

test("the gateway refuses a request in which any object has the same member twice", async () => {
  const world = await answering();
  const twice = [
    '{"model":"m","messages":[{"content":[{"type":"text","type":"image"}]}]}',
    '{"model":"m","messages":[{"content":"{\\"a\\":1,\\"a\\":2}"}],"metadata":{"a":[{}],"b":{"x":1,"\\u0078":2}}}',
  ];
  await world.run(async (access) => {
    for (const body of twice) expect((await post(access, { path: "/v1/messages", body })).status).toBe(400);
    const once = '{"model":"m","messages":[{"content":"{\\"a\\":1,\\"a\\":2}"},{"content":""}]}';
    expect((await post(access, { path: "/v1/messages", body: once })).status).toBe(200);
  });
  expect(world.upstream.received.length).toBe(1);
});

const anthropic = { "anthropic-version": "2023-06-01" };

test.each([
  ["GET", "/v1beta/models", {}, { error: { code: 404, status: "NOT_FOUND" } }],
  ["POST", "/v1beta/files", {}, { error: { code: 404, status: "NOT_FOUND" } }],
  ["POST", "/v1beta/models/m:countTokens", {}, { error: { code: 404, status: "NOT_FOUND" } }],
  ["POST", "/v1beta/models/m:embedContent", {}, { error: { code: 404 } }],
  ["POST", "/v1alpha/models/m:generateContent", {}, { error: { code: 404 } }],
  ["POST", "/v1/models/m:generateContent", {}, { error: { code: 404 } }],
  ["POST", "/v1/files", anthropic, { type: "error", error: { type: "not_found_error" } }],
  ["GET", "/v1/models/claude-x", anthropic, { type: "error", error: { type: "not_found_error" } }],
  ["POST", "/v1/complete", anthropic, { type: "error", error: { type: "not_found_error" } }],
  ["POST", "/v1/messages/batches", {}, { type: "error", error: { type: "not_found_error" } }],
  ["GET", "/v1/models/gpt-x", {}, { error: { code: "not_found", type: "invalid_request_error" } }],
  ["POST", "/v1/embeddings", {}, { error: { code: "not_found" } }],
] as const)(
  "the gateway answers a request %s %s with %o by 404 in the shape of its provider",
  async (method, path, headers, expected) => {
    const world = await answering();
    await world.run(async ({ url, token }) => {
      const sent = { method, headers: { "x-api-key": token, ...headers } };
      const reply = await fetch(url + path, method === "GET" ? sent : { ...sent, body: "{}" });
      expect([reply.status, await reply.json()]).toMatchObject([404, expected]);
    });
    expect(world.upstream.received).toEqual([]);
  },
);

test("the gateway passes only the query parameters that choose the form of the answer to the provider", async () => {
  const world = await answering();
  await world.run(async (access) => {
    await post(access, { path: "/v1/messages?beta=true&key=k&x=1", body: { model: "m" } });
    await post(access, { path: "/v1/messages?beta=1", body: { model: "m" } });
    await post(access, { path: "/v1beta/models/m:streamGenerateContent?alt=sse&key=k", body: {} });
    await post(access, { path: "/v1/chat/completions?beta=true", body: { model: "m" } });
  });
  expect(world.upstream.received.map(({ path }) => path)).toEqual([
    "/v1/messages?beta=true",
    "/v1/messages",
    "/v1beta/models/m:streamGenerateContent?alt=sse",
    "/v1/chat/completions",
  ]);
});

test("B3: the gateway charges an Anthropic stream that ends before its last usage with its input and the output limit", async () => {
  const start = { type: "message_start", message: { usage: { input_tokens: 40, output_tokens: 1 } } };
  const world = await worldOf((_received, response) => answerEvents(response, eventsOf(start)));
  const { costUsd } = await world.run(async (access) => {
    const reply = await post(access, {
      path: "/v1/messages",
      body: { model: "m", max_tokens: 60, stream: true },
    });
    await reply.text().catch(() => undefined);
  });
  expect(costUsd).toBeCloseTo(0.06, 9);
});

test("the gateway refuses a redirect of the endpoint that counts tokens", async () => {
  const world = await worldOf((_received, response) => {
    response.writeHead(307, { location: "http://127.0.0.1:1/" }).end();
  });
  await world.run(async (access) => {
    const reply = await post(access, { path: "/v1/messages/count_tokens", body: { model: "m" } });
    expect(reply.status).toBe(502);
  });
});

test("a gateway token opens 50 of 200 simultaneous streams, and the other requests may be tried again", async () => {
  const all = Promise.withResolvers<void>();
  const world = await worldOf(async (_received, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(
      eventsOf({ type: "message_start", message: { usage: { input_tokens: 1, output_tokens: 1 } } }),
    );
    await all.promise;
    response.end(eventsOf({ type: "message_delta", usage: { output_tokens: 1 } }));
  });
  const { costUsd } = await world.run(async (access) => {
    const body = { model: "m", max_tokens: 5, stream: true };
    let refused = 0;
    const replies = Array.from({ length: 200 }, async () => {
      const reply = await post(access, { path: "/v1/messages", body });
      if (reply.status === 429 && ++refused === 150) all.resolve();
      await reply.text();
      return [reply.status, reply.headers.get("retry-after")].join(" ");
    });
    const statuses = await Promise.all(replies);
    expect(statuses.filter((status) => status === "429 1").length).toBe(150);
    expect(statuses.filter((status) => status === "200 ").length).toBe(50);
  });
  expect(costUsd).toBeCloseTo(0.05, 9);
});

test("the gateway refuses a body with many small values before reading it as JSON, and passes one of the same size with few", async () => {
  const world = await answering();
  const many = `{"model":"m","messages":[${"{},".repeat(100_000)}{}]}`;
  const few = JSON.stringify({ model: "m", messages: [{ content: "x".repeat(many.length) }] });
  await world.run(async (access) => {
    const reply = await post(access, { path: "/v1/messages", body: many });
    expect([reply.status, await reply.text()]).toEqual([
      413,
      expect.stringContaining("more than 100000 JSON values"),
    ]);
    const deep = `{"model":"m","metadata":${"[".repeat(2_000)}${"]".repeat(2_000)}}`;
    expect((await post(access, { path: "/v1/messages", body: deep })).status).toBe(413);
    expect((await post(access, { path: "/v1/messages", body: few })).status).toBe(200);
  });
  expect(world.upstream.received.length).toBe(1);
});

test("the sender of a body that is too large receives the refusal of the gateway, although it continues to send", async () => {
  const world = await answering({ maxBodyBytes: 1_000 });
  await world.run(async (access) => {
    const body = JSON.stringify({ model: "m", metadata: { text: "x".repeat(8_000_000) } });
    const reply = await post(access, { path: "/v1/messages", body });
    expect([reply.status, await reply.text()]).toEqual([
      413,
      expect.stringContaining("more than 1000 bytes"),
    ]);
  });
});

/**
 * Keeps a request open whose body does not end. A request that is refused, because too many others are open, is opened
 * again.
 */
function unfinished({ url, token }: Access, bytes: number): { destroy(): void } {
  const { port } = new URL(url);
  const headers = { "x-api-key": token, "content-length": bytes + 1 };
  let isOver = false;
  const open = (): ReturnType<typeof request> => {
    const path = "/v1/messages";
    const outgoing = request({ host: "127.0.0.1", port, path, method: "POST", headers });
    outgoing.once("error", () => undefined).write(`"${"x".repeat(bytes - 1)}`);
    return outgoing.once("response", () => {
      outgoing.destroy();
      if (!isOver) latest = open();
    });
  };
  let latest = open();
  return {
    destroy: () => {
      isOver = true;
      latest.destroy();
    },
  };
}

test("all open gateway requests share a limit for bodies, of which one program may use half; a sent body no longer counts", async () => {
  const answer = Promise.withResolvers<void>();
  const world = await worldOf(
    async (_received, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).write(": the answer begins\n\n");
      await answer.promise;
      response.end(eventsOf({ type: "message_start", message: { usage } }, { type: "message_delta", usage }));
    },
    { maxOpenBytes: 10_000 },
  );
  const body = { model: "m", max_tokens: 5, stream: true, metadata: { text: "x".repeat(3_000) } };
  const statusOf = async (access: Access, keepsStream = false): Promise<number> => {
    const reply = await post(access, { path: "/v1/messages", body });
    if (!keepsStream) await reply.body?.cancel();
    return reply.status;
  };
  await world.run(async (first) => {
    const open = [unfinished(first, 4_000)];
    // The bytes of the open request arrive meanwhile.
    while ((await statusOf(first)) !== 429);
    await world.run(async (second) => {
      expect(await statusOf(second)).toBe(200);
      open.push(unfinished(second, 4_000));
      while ((await statusOf(second)) !== 429);
      await world.run(async (third) => {
        // 2,000 bytes of 10,000 are left for all.
        expect(await statusOf(third)).toBe(429);
        for (const each of open) each.destroy();
        while ((await statusOf(third, true)) !== 200);
        // The streams are open, and their providers have the bodies.
        expect([await statusOf(third, true), await statusOf(third, true)]).toEqual([200, 200]);
        answer.resolve();
      });
    });
  });
});
