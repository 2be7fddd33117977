// A channel of your own, in the manner of Slack: an agent answers mentions, and a button in the conversation approves a tool call.
// The channel checks Slack's signature and speaks its Events API. A local server plays Slack, so the program needs no token.
import assert from "node:assert/strict";
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { Agent, openRuntime, openStore, tool } from "reeve";
import { Fault } from "reeve/kernel";
import {
  createChannels,
  createServer,
  listen,
  splitText,
  storedTokens,
  type ChannelAdapter,
} from "reeve/server";
import { scriptedModel } from "reeve/testing";
import { z } from "zod";

interface SlackOptions {
  /** Secret with which Slack signs its requests. */
  readonly signingSecret: string;
  /** Token of the bot, which starts with `xoxb-`. */
  readonly botToken: string;
  /** Default: `https://slack.com/api`. */
  readonly apiUrl?: string;
}

const mention = z.object({
  type: z.enum(["app_mention", "message"]),
  user: z.string(),
  text: z.string(),
  channel: z.string(),
  channel_type: z.string().optional(),
  ts: z.string(),
  bot_id: z.undefined().optional(), // the bot reads its own messages, too
});
const eventBody = z.discriminatedUnion("type", [
  z.object({ type: z.literal("url_verification"), challenge: z.string() }),
  z.object({ type: z.literal("event_callback"), team_id: z.string(), event: z.unknown() }),
]);
const pressed = z.object({
  type: z.literal("block_actions"),
  team: z.object({ id: z.string() }),
  user: z.object({ id: z.string() }),
  channel: z.object({ id: z.string() }),
  actions: z.array(z.object({ value: z.string() })).min(1),
});

function slackChannel({
  signingSecret,
  botToken,
  apiUrl = "https://slack.com/api",
}: SlackOptions): ChannelAdapter {
  /** Calls a method of Slack's API. Its response says with `ok` whether it was accepted. */
  const call = async (
    method: string,
    body: object,
    signal: AbortSignal,
  ): Promise<{ ok: boolean; ts?: string; error?: string }> => {
    const headers = { authorization: `Bearer ${botToken}`, "content-type": "application/json" };
    const response = await fetch(`${apiUrl}/${method}`, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
      signal,
    });
    return (await response.json()) as { ok: boolean; ts?: string; error?: string };
  };
  return {
    name: "slack",
    platform: "slack",
    pieces: (text) => splitText(text, 3_000),
    send: async ({ conversationId, text, choices = [] }, signal) => {
      const buttons = choices.map(({ label, data }) => ({
        type: "button",
        action_id: data,
        text: { type: "plain_text", text: label },
        value: data,
      }));
      const section = { type: "section", text: { type: "mrkdwn", text } };
      const blocks = buttons.length === 0 ? undefined : [section, { type: "actions", elements: buttons }];
      const {
        ok,
        ts,
        error = "no reason",
      } = await call("chat.postMessage", { channel: conversationId, text, blocks }, signal);
      return ok ? { kind: "sent", ...(ts !== undefined && { ref: ts }) } : { kind: "retry", reason: error };
    },
    closeQuestion: async ({ conversationId, ref, text, decision }, signal) => {
      await call(
        "chat.update",
        { channel: conversationId, ts: ref, text: `${text}\n${decision}`, blocks: [] },
        signal,
      );
    },
    fetch: async (request, port) => {
      const body = await request.text();
      verify(request.headers, body, signingSecret, port.clock.now());
      const payload = new URLSearchParams(body).get("payload"); // a pressed button comes as a form
      if (payload !== null) {
        const { team, user, channel, actions } = pressed.parse(JSON.parse(payload));
        const senderId = `${team.id}:${user.id}`;
        for (const { value } of actions)
          await port.decide({ conversationId: channel.id, senderId, data: value });
        return new Response();
      }
      const received = eventBody.parse(JSON.parse(body));
      if (received.type === "url_verification") return Response.json({ challenge: received.challenge });
      const { success, data } = mention.safeParse(received.event);
      if (!success) return new Response(); // an event that needs no answer
      // Slack repeats an event that is not answered within three seconds. A stored message is enough: the answer follows.
      await port.receive({
        messageId: data.ts,
        conversationId: data.channel,
        senderId: `${received.team_id}:${data.user}`,
        isPrivate: data.channel_type === "im",
        text: data.text,
        order: Number(data.ts.replace(".", "")),
      });
      return new Response();
    },
  };
}

/** Throws if a request was not signed by Slack within five minutes: `v0=` and the HMAC-SHA-256 of `v0:SECONDS:BODY`. */
function verify(headers: Headers, body: string, secret: string, now: number): void {
  const seconds = headers.get("x-slack-request-timestamp") ?? "";
  const given = Buffer.from(headers.get("x-slack-signature") ?? "");
  const expected = Buffer.from(signature(secret, seconds, body));
  const isFresh = Math.abs(Number(seconds) * 1_000 - now) <= 300_000;
  if (!isFresh || given.length !== expected.length || !timingSafeEqual(given, expected))
    throw new Fault("unauthenticated", "the request is not signed by Slack; check the signing secret");
}

function signature(secret: string, seconds: string, body: string): string {
  return `v0=${createHmac("sha256", secret).update(`v0:${seconds}:${body}`).digest("hex")}`;
}

// The agent. With Slack, the options come from the environment, and the request URL of the app is https://HOST/channels/slack.
const refunds: number[] = [];
const refund = tool({
  name: "refund",
  description: "Refunds an order.",
  inputSchema: z.object({ order: z.number() }),
  needsApproval: true,
  execute: ({ order }) => {
    refunds.push(order);
    return "refunded";
  },
});
const model = scriptedModel([
  { toolCalls: [{ name: "refund", input: { order: 17 } }] },
  "Order 17 is refunded.",
]);
const clerk = new Agent({ name: "clerk", model, tools: [refund] });

interface Post {
  readonly method: string;
  readonly text: string;
  readonly blocks?: readonly {
    readonly elements?: readonly { readonly text: { readonly text: string }; readonly value: string }[];
  }[];
}

const posts: Post[] = [];
let onPost = Promise.withResolvers<void>();

/** Plays Slack's API: accepts every message. */
async function accept(request: IncomingMessage, response: ServerResponse): Promise<void> {
  posts.push({ ...((await json(request)) as Post), method: request.url?.slice(1) ?? "" });
  const accepted = { ok: true, ts: `${posts.length}.0` };
  response.setHeader("content-type", "application/json").end(JSON.stringify(accepted));
  onPost.resolve();
  onPost = Promise.withResolvers();
}
const slack = createHttpServer((request, response) => void accept(request, response));
await new Promise<void>((resolve) => void slack.listen(0, "127.0.0.1", resolve));

const signingSecret = "8f742231b10e8888abcd99yyyzzz85a5";
const channel = slackChannel({
  signingSecret,
  botToken: "xoxb-test",
  apiUrl: `http://127.0.0.1:${(slack.address() as AddressInfo).port}`,
});
const store = await openStore("memory:");
const runtime = await openRuntime({ store });
const allow = [{ sender: "T1:U_ANN", user: "ann" }]; // others receive a pairing code, or nothing
const channels = createChannels(runtime, {
  store,
  agents: [clerk],
  channels: [{ channel, allow }],
  log: () => undefined,
});
// The channel authenticates its requests itself. All other routes need a token.
const tokens = storedTokens(store.records);
const server = createServer(runtime, { agents: [clerk], tokens, routes: channels.routes });
const listening = await listen(server, { port: 0 });
channels.start();

/** Sends a request as Slack does. */
async function post(body: string, type: string, secret = signingSecret): Promise<Response> {
  const seconds = String(Math.floor(Date.now() / 1_000));
  return fetch(`${listening.url}/channels/slack`, {
    method: "POST",
    headers: {
      "content-type": type,
      "x-slack-request-timestamp": seconds,
      "x-slack-signature": signature(secret, seconds, body),
    },
    body,
  });
}

/** Waits for a message to the conversation. */
async function posted(find: (post: Post) => boolean): Promise<Post> {
  for (;;) {
    const found = posts.find(find);
    if (found !== undefined) return found;
    await onPost.promise;
  }
}

const challenge = JSON.stringify({ type: "url_verification", challenge: "c1" });
assert.deepEqual(await (await post(challenge, "application/json")).json(), { challenge: "c1" });
assert.equal((await post(challenge, "application/json", "another secret")).status, 401);

const event = {
  type: "app_mention",
  user: "U_ANN",
  text: "Refund order 17.",
  channel: "C1",
  ts: "1700000000.000100",
};
const mentioned = JSON.stringify({ type: "event_callback", team_id: "T1", event });
assert.equal((await post(mentioned, "application/json")).status, 200);
assert.equal((await post(mentioned, "application/json")).status, 200); // Slack repeats itself: no second run

const question = await posted(({ blocks }) => (blocks?.length ?? 0) > 1);
const buttons = question.blocks?.[1]?.elements ?? [];
console.log(buttons.map(({ text }) => text.text).join(", "));
assert.deepEqual(refunds, []);

const press = (user: string): Promise<Response> => {
  const actions = [{ value: buttons[0]?.value }];
  const payload = {
    type: "block_actions",
    team: { id: "T1" },
    user: { id: user },
    channel: { id: "C1" },
    actions,
  };
  return post(
    new URLSearchParams({ payload: JSON.stringify(payload) }).toString(),
    "application/x-www-form-urlencoded",
  );
};
await press("U_BOB"); // only the user of the run may answer
assert.deepEqual(refunds, []);
await press("U_ANN");
const answer = await posted(({ text }) => text.includes("is refunded"));
console.log(answer.text);
assert.deepEqual(refunds, [17]);
assert.equal((await runtime.list()).runs.length, 1);

await channels.close();
await listening.close();
await runtime.close();
slack.close();
