import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { Agent } from "../../../src/assembly/agent.ts";
import { tool } from "../../../src/capabilities/index.ts";
import type { JsonObject, Records } from "../../../src/kernel/index.ts";
import { sign } from "../../../src/surfaces/channels/webhook/webhook-channel.ts";
import { webhookChannel, type WebhookOptions } from "../../../src/surfaces/server/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { post, secret, SignedProgram } from "./signed-program.ts";
import { newPath, startHost, type TestHost, type TestHostOptions } from "./test-host.ts";

async function start(
  options: Partial<WebhookOptions> = {},
  host: TestHostOptions = {},
  path?: string,
): Promise<TestHost & { readonly at: string }> {
  const started = await startHost(
    path ?? (await newPath()),
    webhookChannel({ name: "shop", secret, ...options }),
    host,
  );
  return { ...started, at: `${started.url}/channels/shop` };
}

async function stored(records: Records): Promise<number> {
  const { records: found } = await records.list({ namespace: "channel-messages" });
  return found.length;
}

/** An agent whose model answers when the test releases the answer. */
function heldAgent(): {
  readonly agent: Agent;
  readonly started: Promise<void>;
  readonly release: () => void;
} {
  const started = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const hold = tool({
    name: "hold",
    description: "Waits.",
    inputSchema: { type: "object" },
    execute: async () => {
      started.resolve();
      await released.promise;
      return "held";
    },
  });
  const model = scriptedModel([{ toolCalls: [{ name: "hold", input: {} }] }, "Done."]);
  const agent = new Agent({ name: "slow", model, tools: [hold] });
  return { agent, started: started.promise, release: () => released.resolve() };
}

const hello = { type: "message", senderId: "1", messageId: "1", text: "hello" };

describe("the webhook channel", () => {
  test("the webhook channel answers in the response, asks questions there, and gives a repeated message the same answer", async () => {
    const { at, runtime } = await start();
    const answered = { state: "answered", status: "completed", text: "echo: hello" };
    expect(await post(at, hello)).toMatchObject({ status: 200, json: answered });
    expect(await post(at, hello, { at: Date.now() + 2_000 })).toMatchObject({ status: 200, json: answered });
    const asked = await post(at, { ...hello, messageId: "2", text: "ask" });
    expect(asked).toMatchObject({ status: 202, json: { state: "running", questions: [{ text: "ask" }] } });
    const [question] = asked.json["questions"] as { choices: { label: string; data: string }[] }[];
    expect(question?.choices.map(({ label }) => label)).toEqual(["Yes", "No"]);
    const data = question?.choices[0]?.data ?? "";
    expect(await post(at, { type: "decision", senderId: "2", conversationId: "1", data })).toMatchObject({
      status: 403,
    });
    expect(await post(at, { type: "decision", senderId: "1", data })).toMatchObject({ status: 200 });
    expect(
      await post(at, { type: "decision", senderId: "1", data }, { at: Date.now() + 2_000 }),
    ).toMatchObject({
      status: 409,
      json: { state: "late", text: "This was already answered: approved by ann." },
    });
    const again = await post(at, { ...hello, messageId: "2", text: "ask" }, { at: Date.now() + 2_000 });
    expect(again).toMatchObject({ status: 200, json: { text: "approved: ask" } });
    expect((await runtime.list()).runs).toHaveLength(2);
  });

  test("the webhook channel does not show the answer of a message to another sender that repeats its id", async () => {
    const { at } = await start();
    await post(at, { ...hello, conversationId: "room" });
    const other = await post(at, { ...hello, conversationId: "room", senderId: "2" });
    expect(other).toEqual({ status: 202, json: { state: "queued" } });
  });

  test("the webhook channel tells the sender of a message that /stop has discarded the message", async () => {
    const { agent, started, release } = heldAgent();
    const { at, store } = await start({}, { agents: [agent] });
    onTestFinished(release);
    const first = post(at, { ...hello, order: 1 });
    await started;
    const second = post(at, { ...hello, messageId: "2", order: 2 });
    while ((await stored(store.records)) < 2) await new Promise((resolve) => void setImmediate(resolve));
    await post(at, { ...hello, messageId: "3", order: 3, text: "/stop" });
    expect(await second).toMatchObject({
      status: 200,
      json: { state: "answered", text: "This message was discarded by /stop." },
    });
    release();
    expect(await first).toMatchObject({ json: { status: "cancelled" } });
  });

  describe("forged and repeated requests", () => {
    let host: Awaited<ReturnType<typeof start>>;
    let folder: string;
    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), "reeve-channels-"));
      host = await start({}, { pairing: false, isShared: true }, join(folder, "store.db"));
    });
    afterAll(async () => {
      await host.close();
      await rm(folder, { recursive: true, force: true, maxRetries: 10 });
    });

    test.for<[string, (body: string) => Record<string, string>]>([
      ["no signature", () => ({ "x-reeve-signature": "" })],
      ["another form", () => ({ "x-reeve-signature": "sha256=00" })],
      ["another secret", (body) => ({ "x-reeve-signature": sign("x".repeat(32), body, Date.now()) })],
      ["the signature of another body", () => ({ "x-reeve-signature": sign(secret, "{}", Date.now()) })],
      ["an old time", (body) => ({ "x-reeve-signature": sign(secret, body, Date.now() - 301_000) })],
      ["a future time", (body) => ({ "x-reeve-signature": sign(secret, body, Date.now() + 302_000) })],
      [
        "a time that was changed",
        (body) => ({
          "x-reeve-signature": sign(secret, body, Date.now() - 400_000).replace(
            /^t=\d+/u,
            `t=${Math.floor(Date.now() / 1_000)}`,
          ),
        }),
      ],
    ])("the webhook channel refuses a request with %s with 401 and stores nothing", async ([, headers]) => {
      const answer = await post(host.at, hello, { headers: headers(JSON.stringify(hello)) });
      expect(answer).toMatchObject({ status: 401, json: { code: "unauthenticated" } });
      expect(await stored(host.store.records)).toBe(0);
    });

    test.for(["senderId", "senderName", "conversationId", "messageId"])(
      "the webhook channel refuses a request whose %s has more than 255 characters with 400 and stores nothing",
      async (field) => {
        const answer = await post(host.at, { ...hello, [field]: "x".repeat(256) });
        expect(answer).toMatchObject({ status: 400, json: { code: "invalid_argument" } });
        expect(await stored(host.store.records)).toBe(0);
      },
    );

    test("the webhook channel refuses a request that was received before with 409, and starts one run", async () => {
      const at = Date.now();
      expect((await post(host.at, { ...hello, messageId: "r" }, { at })).status).toBe(200);
      expect((await post(host.at, { ...hello, messageId: "r" }, { at })).status).toBe(409);
      expect((await host.runtime.list()).runs).toHaveLength(1);
    });

    test.for<[string, number, string | JsonObject, Record<string, string>?]>([
      ["too many bytes", 413, { ...hello, text: "x".repeat(300_000) }],
      ["a text that is too long", 413, { ...hello, text: "x".repeat(40_001) }],
      ["a text that is too long when it is stored", 413, { ...hello, text: "\u0001".repeat(39_000) }],
      ["deep JSON", 400, `{"type":"message","text":${"[".repeat(100)}${"]".repeat(100)}}`],
      ["no JSON", 400, "{"],
      ["another type of body", 400, hello, { "content-type": "text/plain" }],
      ["unknown fields", 400, { ...hello, userId: "root" }],
      ["no text", 400, { type: "message", senderId: "1", messageId: "1" }],
      ["an empty text", 400, { ...hello, text: " " }],
      ["a long id", 400, { ...hello, messageId: "x".repeat(256) }],
      ["an unpaired surrogate", 400, { ...hello, messageId: "\ud800" }],
    ])("the webhook channel refuses a body with %s", async ([, status, body, headers = {}]) => {
      expect((await post(host.at, body, { headers })).status).toBe(status);
      expect(await stored(host.store.records)).toBe(0);
    });

    test("the webhook channel refuses senders outside the allow list with 403 and one log line, whatever they claim", async () => {
      for (const senderId of ["3", "1 ", "01", "*", "1\u0000"])
        for (const messageId of ["1", "2"])
          expect((await post(host.at, { ...hello, senderId, messageId })).status).toBe(403);
      const dropped = host.lines.filter((line) => line.includes("dropped"));
      expect(dropped).toHaveLength(5);
      expect(dropped[0]).toBe(
        'channel shop: dropped a message of sender "3": the sender is not in the allow list',
      );
    });
  });

  test.for<[string, (url: string) => Partial<WebhookOptions>]>([
    ["a private address", (url) => ({ callbackUrl: url })],
    ["a private address in another form", (url) => ({ callbackUrl: url.replace("127.0.0.1", "0x7f000001") })],
    [
      "an IPv6 form of a private address",
      (url) => ({ callbackUrl: url.replace("127.0.0.1", "[::ffff:127.0.0.1]") }),
    ],
    [
      "a name that resolves to a private address",
      (url) => ({
        callbackUrl: url.replace("127.0.0.1", "hook.example"),
        resolve: async () => [{ address: "127.0.0.1", family: 4 }],
      }),
    ],
  ])("the webhook channel sends no answer to %s", async ([, options]) => {
    const program = await SignedProgram.start();
    onTestFinished(() => program.close());
    const { at, said, close } = await start(options(program.url));
    expect((await post(at, hello)).status).toBe(202);
    await said("is not a public address");
    await close();
    expect(program.received).toEqual([]);
  });

  test("the webhook channel does not follow a redirect of the callback address to another address", async () => {
    const program = await SignedProgram.start();
    const redirecting = createServer((_request, response) => {
      response.writeHead(307, { location: program.url }).end();
    }).listen(0, "127.0.0.1");
    await once(redirecting, "listening");
    onTestFinished(() => {
      redirecting.close();
      program.close();
    });
    const callbackUrl = `http://127.0.0.1:${(redirecting.address() as AddressInfo).port}/`;
    const { at, said } = await start({ callbackUrl, allowPrivate: ["127.0.0.1"] });
    await post(at, hello);
    await said("answered 307");
    expect(program.received).toEqual([]);
  });

  test("the webhook channel refuses a short secret and an invalid callback address", () => {
    expect(() => webhookChannel({ name: "shop", secret: "short" })).toThrow(/at least 32/u);
    expect(() => webhookChannel({ name: "shop", secret, callbackUrl: "ftp://x" })).toThrow(/http or https/u);
  });

  test("the webhook channel is not affected by a flood of forged requests, which are limited", async () => {
    const { at } = await start({}, { limits: { requestsPerSecond: 1, requestBurst: 5 } });
    const forged = { "x-reeve-signature": sign("x".repeat(32), "{}", Date.now()) };
    const statuses: number[] = [];
    for (let request = 0; request < 8; request++)
      statuses.push((await post(at, hello, { headers: forged })).status);
    expect(statuses.slice(0, 5)).toEqual([401, 401, 401, 401, 401]);
    expect(statuses.at(-1)).toBe(429);
    for (let request = 0; request < 8; request++)
      expect((await post(at, { ...hello, messageId: String(request) })).status).toBe(200);
  });

  test("N6: two processes with one webhook channel and one store both receive messages, and one of the processes answers", async () => {
    const path = await newPath();
    const program = await SignedProgram.start();
    onTestFinished(() => program.close());
    const channel = (): ReturnType<typeof webhookChannel> =>
      webhookChannel({ name: "shop", secret, callbackUrl: program.url, allowPrivate: true });
    const hosts = [await startHost(path, channel()), await startHost(path, channel())];
    for (let number = 0; number < 10; number++)
      await post(`${hosts[number % 2]?.url}/channels/shop`, {
        ...hello,
        messageId: String(number),
        order: number,
        text: `${number}`,
      });
    await program.until(() => program.received.length >= 10);
    expect(program.received.map(({ text }) => text).toSorted()).toEqual(
      Array.from({ length: 10 }, (_, number) => `echo: ${number}`),
    );
    expect(program.repeated).toBe(0);
  });
});
