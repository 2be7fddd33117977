import { request } from "node:http";
import { expect, test } from "vitest";
import type { GatewayOptions } from "../../../src/capabilities/gateway/gateway.ts";
import { post, worldOf, type Access, type World } from "./gateway-world.ts";
import { answerEvents, answerJson, eventsOf } from "./mock-upstream.ts";

const usage = { input_tokens: 12, output_tokens: 3 };

function answering(options: Partial<GatewayOptions> = {}): Promise<World> {
  return worldOf((_received, response) => answerJson(response, { usage }), options);
}

/** Sends a path as it is. `fetch` would normalise it. */
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
])("a request to the path %s is not sent to the provider", async (path) => {
  const world = await answering();
  await world.run(async (access) => {
    expect(await rawStatus(access, path)).toBe(404);
    // The gateway serves the next request.
    expect((await post(access, { path: "/v1/messages", body: { model: "m" } })).status).toBe(200);
  });
  expect(world.upstream.received.map(({ path: at }) => at)).toEqual(["/v1/messages"]);
});

test("a request without a token, or from another host, does not reach the provider, whatever its path", async () => {
  const world = await answering();
  await world.run(async (access) => {
    expect(await rawStatus({ ...access, token: "" }, "/v1beta/models/%:generateContent")).toBe(401);
    expect(await rawStatus(access, "/v1/messages", { host: "evil.example" })).toBe(403);
    expect(await rawStatus(access, "/v1/messages", { host: "127.0.0.1" })).toBe(403);
  });
  expect(world.upstream.received).toEqual([]);
});

const unbounded: readonly (readonly [path: string, body: object, about: string])[] = [
  ["/v1/messages", { speed: "fast" }, "speed"],
  [
    "/v1/messages",
    { system: [{ type: "text", text: "a", cache_control: { type: "ephemeral", ttl: "1h" } }] },
    "cache for 1h",
  ],
  ["/v1/messages", { tools: [{ name: "a", cache_control: { ttl: "1h" } }] }, "cache for 1h"],
  ["/v1/messages", { model: "m".repeat(300) }, "the name of the model"],
  ["/v1/chat/completions", { n: "3" }, "n,"],
  ["/v1/chat/completions", { best_of: 3 }, "best_of"],
  ["/v1/chat/completions", { models: ["a", "b"] }, "models"],
  ["/v1/chat/completions", { fallbacks: ["b"] }, "fallbacks"],
  ["/v1/chat/completions", { plugins: [{ id: "web" }] }, "plugins"],
  ["/v1/chat/completions", { api_base: "http://evil.example" }, "api_base"],
  ["/v1/chat/completions", { modalities: ["text", "audio"] }, "modalities"],
  ["/v1/chat/completions", { messages: [{ content: [{ type: "input_audio", input_audio: {} }] }] }, "audio"],
  [
    "/v1beta/models/m:generateContent",
    { generationConfig: { max_output_tokens: 99_999 } },
    "max_output_tokens",
  ],
  ["/v1beta/models/m:generateContent", { generationConfig: { candidateCount: "4" } }, "candidateCount"],
  [
    "/v1beta/models/m:generateContent",
    { generationConfig: { responseModalities: ["IMAGE"] } },
    "responseModalities",
  ],
  [
    "/v1beta/models/m:generateContent",
    { contents: [{ parts: [{ inlineData: { mimeType: "audio/mp3", data: "" } }] }] },
    "audio",
  ],
];

test.each(unbounded)(
  "a request to %s with %o, whose cost has another bound, is refused",
  async (path, body, about) => {
    const world = await answering();
    await world.run(async (access) => {
      const reply = await post(access, { path, body: { model: "m", ...body } });
      expect([400, 403]).toContain(reply.status);
      expect(JSON.stringify(await reply.json())).toContain(about);
    });
    expect(world.upstream.received).toEqual([]);
  },
);

test("B3: a stream of Anthropic that ends before its last usage is charged with its input and the output limit", async () => {
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

test("a redirect of the endpoint that counts tokens is refused", async () => {
  const world = await worldOf((_received, response) => {
    response.writeHead(307, { location: "http://127.0.0.1:1/" }).end();
  });
  await world.run(async (access) => {
    const reply = await post(access, { path: "/v1/messages/count_tokens", body: { model: "m" } });
    expect(reply.status).toBe(502);
  });
});

test("of 200 streams at once a token opens 50, and the others may try again", async () => {
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

test("the bodies of the open requests of a token have a limit together", async () => {
  const world = await answering({ maxBodyBytes: 1_000 });
  await world.run(async ({ url, token }) => {
    const { port } = new URL(url);
    const open = Array.from({ length: 4 }, () => {
      const headers = { "x-api-key": token, "content-length": 1_000 };
      const outgoing = request({ host: "127.0.0.1", port, path: "/v1/messages", method: "POST", headers });
      outgoing.once("error", () => undefined).write("x".repeat(999));
      return outgoing;
    });
    // The bytes of the others arrive meanwhile.
    let status = 200;
    while (status !== 429) {
      const body = JSON.stringify({ model: "m", text: "x".repeat(900) });
      const reply = await fetch(`${url}/v1/messages`, {
        method: "POST",
        headers: { "x-api-key": token },
        body,
      });
      status = reply.status;
      await reply.text();
    }
    for (const outgoing of open) outgoing.destroy();
    expect(status).toBe(429);
  });
});
