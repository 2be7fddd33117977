import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import type { JsonObject } from "../../../src/kernel/index.ts";
import { repository } from "../../gates/run-node.ts";
import { casesOf } from "../../effort.ts";
import { connect, newPath } from "../../runtime/stores/sqlite/store-files.ts";
import type { EchoHostOptions } from "./echo-host.ts";
import { botToken, FakeTelegram, messageOf } from "./fake-telegram.ts";
import { post, secret, SignedProgram } from "./signed-program.ts";

const script = join(repository, "test/surfaces/channels/echo-host.ts");
/** Number of messages that a channel sends at once. The next process may repeat each of them after a kill. */
const inFlight = 8;
const chats = Array.from({ length: 10 }, (_, index) => String(index + 1));

interface Host {
  readonly url: string;
  kill(): Promise<void>;
}

async function startHost(options: EchoHostOptions): Promise<Host> {
  const child: ChildProcess = spawn(process.execPath, [script, JSON.stringify(options)], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  if (child.stdout === null) throw new Error("the process has no stdout");
  const [url] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  const exit = once(child, "exit");
  return {
    url,
    kill: async () => {
      child.kill("SIGKILL");
      await exit;
    },
  };
}

/** The texts of each conversation, each with the number of times it was sent, in the order of their first delivery. */
function byConversation(
  sent: readonly { readonly chat: string; readonly text: string }[],
): Map<string, string[]> {
  const texts = new Map<string, string[]>();
  for (const { chat, text } of sent) {
    const known = texts.get(chat) ?? [];
    if (!known.includes(text)) known.push(text);
    texts.set(chat, known);
  }
  return texts;
}

function expected(chat: string, count: number): string[] {
  const texts = Array.from({ length: count }, (_, index) => `echo: ${chat}-${index + 1}`);
  texts.splice(count / 2, 1, `ask ${chat}`, `approved: ask ${chat}`);
  return texts;
}

/** The text of a message: one message of each conversation asks for an approval. */
function textOf(chat: string, number: number, count: number): string {
  return number === count / 2 + 1 ? `ask ${chat}` : `${chat}-${number}`;
}

/** Messages of each conversation. */
const perChat = casesOf(50, 6);

test(
  `${2 * chats.length * perChat} channel messages in any order are each answered by one run, although the process is killed twice`,
  { timeout: 240_000 },
  async () => {
    const [path, telegram, program] = [
      await newPath(),
      await FakeTelegram.start(),
      await SignedProgram.start(),
    ];
    onTestFinished(() => {
      telegram.close();
      program.close();
    });
    const options = { path, token: botToken, apiUrl: telegram.url, secret, callbackUrl: program.url };
    let random = 7;
    const next = (): number => (random = (random * 48_271) % 2_147_483_647);
    telegram.shuffle = (updates) => updates.toSorted(() => (next() % 2 === 0 ? 1 : -1));
    telegram.maxUpdates = 40;
    telegram.disturb = ({ method }) => {
      if (method !== "sendMessage" || next() % 97 !== 0) return undefined;
      return { status: 429, body: { description: "Too Many Requests", parameters: { retry_after: 0 } } };
    };
    // Telegram: each message arrives, every third one twice.
    for (let number = 1; number <= perChat; number++)
      for (const chat of chats) {
        const update = { message: messageOf(chat, chat, String(number), textOf(chat, number, perChat)) };
        telegram.push(update);
        if (number % 3 === 0) telegram.push(update);
      }
    let host = await startHost(options);

    /** Sends a request until the process that runs then has accepted it. */
    const deliver = async (body: JsonObject): Promise<void> => {
      for (;;) {
        const { url } = host;
        const isKilled = await post(`${url}/channels/shop`, body).then(
          ({ status }) => {
            // The signature counts seconds, so a repetition within the same second is the same request.
            expect([200, 202, 409]).toContain(status);
            return false;
          },
          () => true,
        );
        if (!isKilled) return;
        await restarted;
      }
    };
    let restarted: Promise<void> = Promise.resolve();
    const restart = async (): Promise<void> => {
      const { promise, resolve } = Promise.withResolvers<void>();
      restarted = promise;
      await host.kill();
      host = await startHost(options);
      resolve();
    };
    const webhook = chats.map(async (chat) => {
      for (let number = 1; number <= perChat; number++) {
        const text = textOf(chat, number, perChat);
        const body = { type: "message", senderId: chat, messageId: String(number), order: number, text };
        await Promise.all([deliver(body), ...(number % 3 === 0 ? [deliver(body)] : [])]);
      }
    });

    const pressed = new Set<string>();
    let queries = 0;
    /** Presses the buttons of new questions: a stranger first, then the person, then the person again. */
    const press = (): void => {
      for (const { chat_id: chat, reply_markup: markup } of telegram.sent) {
        const data = (markup as { inline_keyboard: { callback_data: string }[][] } | undefined)
          ?.inline_keyboard[0]?.[0]?.callback_data;
        if (data === undefined || pressed.has(`${chat}`)) continue;
        pressed.add(`${chat}`);
        for (const sender of [String((chat % 10) + 1), String(chat), String(chat)])
          telegram.press(sender, String(chat), data, `q${queries++}`);
      }
      for (const { conversationId, choices } of program.received) {
        const data = (choices as { data: string }[] | undefined)?.[0]?.data;
        if (data === undefined || pressed.has(`shop ${conversationId}`)) continue;
        pressed.add(`shop ${conversationId}`);
        void deliver({ type: "decision", senderId: conversationId, data });
      }
    };
    const total = chats.length * (perChat + 1);
    const isDone = (): boolean => {
      press();
      const shown = telegram.sent.map(({ chat_id: chat, text }) => `${chat} ${text}`);
      return new Set(shown).size >= total && program.received.length >= total;
    };
    await telegram.until(() => (press(), telegram.sent.length >= total / 4));
    await restart();
    await program.until(() => (press(), program.received.length >= (total * 2) / 3));
    await restart();
    while (!isDone()) await Promise.race([telegram.until(isDone), program.until(isDone)]);
    await Promise.all(webhook);
    await host.kill();

    const said = byConversation(
      telegram.sent.map(({ chat_id: chat, text }) => ({ chat: String(chat), text })),
    );
    const called = byConversation(program.received.map(({ conversationId: chat, text }) => ({ chat, text })));
    for (const chat of chats) {
      expect(said.get(chat)).toEqual(expected(chat, perChat));
      expect(called.get(chat)).toEqual(expected(chat, perChat));
    }
    expect(program.received).toHaveLength(total);
    expect(telegram.sent.length - total).toBeLessThanOrEqual(2 * inFlight);
    expect(program.repeated).toBeLessThanOrEqual(2 * inFlight);
    const { runs } = connect(path).prepare("SELECT count(*) AS runs FROM runs").get() as { runs: number };
    expect(runs).toBe(2 * chats.length * perChat);
  },
);
