import { describe, expect, onTestFinished, test } from "vitest";
import { telegramChannel, webhookChannel, type ChannelAdapter } from "../../../src/surfaces/server/index.ts";
import {
  channelContract,
  type ChannelWorld,
  type HeardMessage,
} from "../../../src/testing/contracts/index.ts";
import type { JsonObject } from "../../../src/kernel/index.ts";
import { botToken, FakeTelegram, messageOf } from "./fake-telegram.ts";
import { post, secret, SignedProgram } from "./signed-program.ts";
import { newPath, startHost, type TestHost } from "./test-host.ts";

/** What differs between the platforms. */
type Platform = Pick<ChannelWorld, "say" | "choose" | "heard">;

async function openWorld(
  name: string,
  channel: () => ChannelAdapter,
  platform: (host: () => TestHost) => Platform,
): Promise<ChannelWorld> {
  const path = await newPath();
  let host = await startHost(path, channel());
  return {
    ...platform(() => host),
    pair: async (text, userId) => {
      const code = /approve (\S+)/u.exec(text)?.[1] ?? "";
      await host.pairings.approve(code, { userId });
    },
    revoke: async (senderId) => void (await host.pairings.revoke(name, senderId)),
    restart: async () => {
      await host.close();
      host = await startHost(path, channel());
    },
  };
}

function heardOf(sent: FakeTelegram["sent"]): readonly HeardMessage[] {
  return sent.map(({ chat_id: chat, text, reply_markup: markup }) => {
    const keyboard = (markup as { inline_keyboard?: { text: string; callback_data: string }[][] } | undefined)
      ?.inline_keyboard;
    const choices = (keyboard ?? []).flat().map(({ text: label, callback_data: data }) => ({ label, data }));
    return { conversationId: String(chat), text, choices };
  });
}

/** Telegram with both ways in which updates arrive. */
async function telegram(mode: "poll" | "webhook"): Promise<ChannelWorld> {
  const fake = await FakeTelegram.start();
  onTestFinished(() => fake.close());
  const secretToken = "a-secret-token-of-the-webhook";
  const channel = (): ChannelAdapter =>
    telegramChannel({ token: botToken, apiUrl: fake.url, mode, pollSeconds: 1, secretToken });
  let queries = 0;
  return openWorld("telegram", channel, (host) => {
    let updates = 1;
    const deliver = async (update: JsonObject): Promise<void> => {
      if (mode === "poll") {
        const id = fake.push(update);
        // The next request for updates confirms that this one is stored.
        await fake.until(() =>
          fake.calls.some(({ method, body }) => method === "getUpdates" && Number(body["offset"]) > id),
        );
        return;
      }
      const response = await fetch(`${host().url}/channels/telegram`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-telegram-bot-api-secret-token": secretToken },
        body: JSON.stringify({ update_id: updates++, ...update }),
      });
      expect(response.status).toBe(200);
    };
    return {
      say: ({ senderId, conversationId, messageId, text }) =>
        deliver({ message: messageOf(senderId, conversationId, messageId, text) }),
      choose: async ({ senderId, conversationId, data }) => {
        const id = `q${queries++}`;
        const message = { message_id: 1, chat: { id: Number(conversationId), type: "private" } };
        await deliver({
          callback_query: { id, from: { id: Number(senderId), is_bot: false }, message, data },
        });
        const isAnswer = ({ method, body }: FakeTelegram["calls"][number]): boolean =>
          method === "answerCallbackQuery" && body["callback_query_id"] === id;
        await fake.until(() => fake.calls.some(isAnswer));
        return fake.calls.find(isAnswer)?.body["text"] as string;
      },
      heard: async (count) => {
        await fake.until(() => fake.sent.length >= count);
        return heardOf(fake.sent);
      },
    };
  });
}

async function webhook(): Promise<ChannelWorld> {
  const program = await SignedProgram.start();
  onTestFinished(() => program.close());
  const channel = (): ChannelAdapter =>
    webhookChannel({ name: "shop", secret, callbackUrl: program.url, allowPrivate: true });
  return openWorld("shop", channel, (host) => {
    // Every request has another time, because the same request is accepted once.
    let at = Date.now();
    const send = (body: JsonObject): ReturnType<typeof post> =>
      post(`${host().url}/channels/shop`, body, { at: (at += 1_000) });
    return {
      say: async ({ messageId, ...rest }) => {
        const { status } = await send({ type: "message", messageId, order: Number(messageId), ...rest });
        expect([202, 403]).toContain(status);
      },
      choose: async (choice) => {
        const { json } = await send({ type: "decision", ...choice });
        return (json["text"] ?? json["detail"]) as string;
      },
      heard: async (count) => {
        await program.until(() => program.received.length >= count);
        return program.received.map(({ conversationId, text, choices }) => ({
          conversationId,
          text,
          choices: (choices ?? []) as unknown as HeardMessage["choices"],
        }));
      },
    };
  });
}

const worlds = {
  "telegram, poll": () => telegram("poll"),
  "telegram, webhook": () => telegram("webhook"),
  webhook,
};

for (const [name, open] of Object.entries(worlds)) {
  describe(`channel ${name}`, () => {
    channelContract({ test, expect, open });
  });
}
