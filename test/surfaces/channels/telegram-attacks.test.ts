import { describe, expect, onTestFinished, test } from "vitest";
import type { HostedAgent, JsonObject, JsonValue } from "../../../src/kernel/index.ts";
import { formatAgentId } from "../../../src/kernel/index.ts";
import { formatted, telegramPieces } from "../../../src/surfaces/channels/telegram/telegram-format.ts";
import {
  createChannels,
  telegramChannel,
  type ChannelPort,
  type IncomingMessage,
  type TelegramOptions,
} from "../../../src/surfaces/server/index.ts";
import { FakeClock } from "../../../src/testing/index.ts";
import { botToken, FakeTelegram, messageOf } from "./fake-telegram.ts";
import { newPath, startHost, type TestHost, type TestHostOptions } from "./test-host.ts";

async function start(
  options: Partial<TelegramOptions> = {},
  host: TestHostOptions = {},
): Promise<TestHost & { readonly telegram: FakeTelegram }> {
  const telegram = await FakeTelegram.start();
  onTestFinished(() => telegram.close());
  const channel = telegramChannel({ token: botToken, apiUrl: telegram.url, ...options });
  return { ...(await startHost(await newPath(), channel, host)), telegram };
}

/** An agent that always gives the same answer. */
function speaker(answer: string): HostedAgent {
  return { id: formatAgentId({ name: "speaker" }), run: async () => answer };
}

describe("the Telegram channel", () => {
  test("the Telegram channel refuses updates without the secret token and stores no refused update", async () => {
    const secretToken = "a-secret-token-of-the-webhook";
    const { url, store } = await start({
      mode: "webhook",
      secretToken,
      webhookUrl: "https://bot.example/channels/telegram",
    });
    const send = (headers: Record<string, string>, body: string): Promise<Response> =>
      fetch(`${url}/channels/telegram`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body,
      });
    const update = JSON.stringify({ update_id: 1, message: messageOf("1", "1", "1", "hello") });
    const header = "x-telegram-bot-api-secret-token";
    for (const token of ["", "wrong", secretToken.slice(1), `${secretToken}x`, secretToken.toUpperCase()])
      expect((await send({ [header]: token }, update)).status).toBe(401);
    expect((await send({}, update)).status).toBe(401);
    expect((await send({ [header]: secretToken }, "x".repeat(300_000))).status).toBe(413);
    const { records } = await store.records.list({ namespace: "channel-messages" });
    expect(records).toEqual([]);
    expect((await send({ [header]: secretToken }, update)).status).toBe(200);
  });

  test("the Telegram channel registers its address with the secret token and one connection", async () => {
    const secretToken = "a-secret-token-of-the-webhook";
    const webhookUrl = "https://bot.example/channels/telegram";
    const { telegram } = await start({ mode: "webhook", secretToken, webhookUrl });
    await telegram.until(() => telegram.calls.some(({ method }) => method === "setWebhook"));
    expect(telegram.calls.find(({ method }) => method === "setWebhook")?.body).toEqual({
      url: webhookUrl,
      secret_token: secretToken,
      allowed_updates: ["message", "callback_query"],
      max_connections: 1,
    });
  });

  test("the Telegram channel ignores edits, bots, anonymous senders, stickers and foreign commands, and sends a group no code", async () => {
    const { telegram, lines } = await start();
    const group = { chat: { id: -5, type: "group" } };
    telegram.push({ edited_message: messageOf("1", "1", "1", "edited") });
    telegram.push({ message: messageOf("1", "1", "2", "bot", { from: { id: 1, is_bot: true } }) });
    telegram.push({ message: { message_id: 3, chat: { id: 1, type: "private" }, text: "nobody" } });
    telegram.push({ message: { ...messageOf("1", "1", "4", ""), sticker: { file_id: "s" } } });
    telegram.push({ message: messageOf("1", "-5", "5", "/stop@other_bot", group) });
    telegram.push({ message: messageOf("9", "-5", "6", "hello", group) });
    telegram.push({ callback_query: { id: "q", from: { id: 1 }, data: "a:x" } });
    telegram.push({ nonsense: true });
    telegram.say("1", "-5", "7", "/start@reeve_bot", group);
    await telegram.until(() => telegram.sent.length > 0);
    expect(telegram.sent).toMatchObject([
      {
        chat_id: -5,
        text: expect.stringContaining("You are connected to echo.") as string,
        reply_parameters: { message_id: 7 },
      },
    ]);
    expect(lines.filter((line) => line.includes("dropped"))).toHaveLength(1);
  });

  test.for([
    [12, 12],
    [120, 99],
  ] as const)(
    "the Telegram channel shows %i choices as %i buttons, and accepts the last choice",
    async ([count, shown]) => {
      const choices = Array.from({ length: count }, (_, index) => `Colour ${index + 1}`);
      const painter: HostedAgent = {
        id: formatAgentId({ name: "painter" }),
        run: async (ctx) => {
          const input = { message: "Which colour?", choices };
          const call = { kind: "select", toolName: "ask", callId: "c1", input, reason: "it paints" } as const;
          const decision = await ctx.approval(call);
          return decision.decision === "approved"
            ? `Painted: ${JSON.stringify(decision.input)}`
            : "Not painted";
        },
      };
      const { telegram } = await start({}, { agents: [painter] });
      telegram.say("1", "1", "1", "Paint it");
      await telegram.until(() => telegram.sent.length === 1);
      const [{ text, reply_markup: markup } = { text: "", reply_markup: null }] = telegram.sent;
      const buttons = (
        markup as { inline_keyboard: { text: string; callback_data: string }[][] }
      ).inline_keyboard.flat();
      expect(buttons.map((each) => each.text)).toEqual([...choices.slice(0, shown), "Decline"]);
      expect(text.includes("21 more choices are on the page of the server.")).toBe(count > shown);
      telegram.press("1", "1", buttons.at(-2)?.callback_data ?? "", "q1");
      await telegram.until(() => telegram.sent.some((each) => each.text === `Painted: "Colour ${shown}"`));
    },
  );

  test("the Telegram channel sends an answer as text with entities and without previews, so that a model's markup stays text", async () => {
    const answer =
      "**bold** <b>html</b> [ok](https://ok.example/a) [run](javascript:alert(1)) [bank.example](https://evil.example) `a*b*`\n# Title\n_it_ snake_case_name ```";
    const { telegram } = await start({}, { agents: [speaker(answer)] });
    telegram.say("1", "1", "1", "hello");
    await telegram.until(() => telegram.sent.length === 1);
    const text =
      "bold <b>html</b> ok [run](javascript:alert(1)) bank.example (https://evil.example) a*b*\nTitle\nit snake_case_name ```";
    const at = (word: string): { offset: number; length: number } => ({
      offset: text.indexOf(word),
      length: word.length,
    });
    expect(telegram.sent[0]).toEqual({
      chat_id: 1,
      text,
      link_preview_options: { is_disabled: true },
      entities: [
        { type: "bold", ...at("bold") },
        { type: "text_link", ...at("ok"), url: "https://ok.example/a" },
        { type: "code", ...at("a*b*") },
        { type: "bold", ...at("Title") },
        { type: "italic", offset: text.indexOf("it snake"), length: 2 },
      ],
    });
  });

  test("the Telegram channel sends a text again without entities if Telegram refuses them, and logs a message that a person does not accept", async () => {
    const { telegram, said } = await start({}, { agents: [speaker("**bold**")] });
    telegram.disturb = ({ method, body }) =>
      method === "sendMessage" && Array.isArray(body["entities"]) && body["entities"].length > 0
        ? { status: 400, body: { description: "Bad Request: can't parse entities" } }
        : method === "sendMessage" && body["chat_id"] === 2
          ? { status: 403, body: { description: "Forbidden: bot was blocked by the user" } }
          : undefined;
    telegram.say("2", "2", "1", "hello");
    telegram.say("1", "1", "1", "hello");
    await telegram.until(() => telegram.sent.length === 1);
    expect(telegram.sent[0]).toMatchObject({ chat_id: 1, text: "bold", entities: [] });
    await said("bot was blocked");
  });

  test("the Telegram channel gives photos and documents to the agent", async () => {
    const { telegram } = await start();
    telegram.files.set("photo-2", Buffer.from("pixels"));
    telegram.files.set("doc", Buffer.from("paper"));
    const photo: JsonObject = { photo: [{ file_id: "photo-1" }, { file_id: "photo-2" }], caption: "look" };
    const { text: _text, ...bare } = messageOf("1", "1", "1", "");
    telegram.push({
      message: {
        ...bare,
        ...photo,
        document: { file_id: "doc", mime_type: "application/pdf", file_name: "a.pdf" },
      },
    });
    await telegram.until(() => telegram.sent.length === 1);
    const echoed = (telegram.sent[0]?.text ?? "").slice("echo: ".length);
    expect(JSON.parse(echoed)).toEqual([
      { type: "text", text: "look" },
      {
        type: "image",
        mediaType: "image/jpeg",
        source: { kind: "base64", data: Buffer.from("pixels").toString("base64") },
      },
      {
        type: "file",
        mediaType: "application/pdf",
        filename: "a.pdf",
        source: { kind: "base64", data: Buffer.from("paper").toString("base64") },
      },
    ]);
  });

  test("the Telegram channel continues after its stored updates, and asks without an offset after six days of silence", async () => {
    const telegram = await FakeTelegram.start();
    onTestFinished(() => telegram.close());
    const clock = new FakeClock();
    let cursor: JsonValue | undefined;
    const received: string[] = [];
    const port = {
      clock,
      log: () => undefined,
      receive: async ({ text }: IncomingMessage) => (received.push(text), { kind: "accepted" }),
      readCursor: async () => cursor,
      writeCursor: async (value: JsonValue) => void (cursor = value),
    } as unknown as ChannelPort;
    const offsets = (): unknown[] =>
      telegram.calls.filter(({ method }) => method === "getUpdates").map(({ body }) => body["offset"]);
    const polled = async (count: number): Promise<void> => {
      const stop = new AbortController();
      const polling = telegramChannel({ token: botToken, apiUrl: telegram.url }).poll?.(port, stop.signal);
      await telegram.until(() => offsets().length >= count);
      stop.abort();
      await polling;
    };
    telegram.say("1", "1", "1", "one");
    await polled(2);
    expect([offsets(), received]).toEqual([[undefined, 1_001], ["one"]]);
    await polled(3);
    expect(offsets()[2]).toBe(1_001);
    await clock.advance(6 * 86_400_000);
    // Telegram continues with a lower number.
    telegram.push({ message: messageOf("1", "1", "2", "two") }, 7);
    await polled(5);
    expect([offsets().slice(3), received]).toEqual([
      [undefined, 8],
      ["one", "two"],
    ]);
  });

  test("the Telegram channel never writes the token of the bot to the log", async () => {
    const { telegram, lines, said } = await start();
    telegram.disturb = () => "hang up";
    telegram.say("1", "1", "1", "hello");
    await said("Telegram did not answer");
    expect(lines.join("\n")).not.toContain(botToken);
  });

  test.for(["@ann", "ann", "*", "1*", "", "-5", "1 "])(
    "the Telegram channel refuses %j in its allow list",
    async (sender) => {
      const { runtime, store } = await start();
      const channel = telegramChannel({ token: botToken, name: "other" });
      const agents = [speaker("hi")];
      expect(() =>
        createChannels(runtime, { store, agents, channels: [{ channel, allow: [sender] }] }),
      ).toThrow(/invalid sender/u);
    },
  );
});

describe("telegramPieces()", () => {
  test("telegramPieces() cuts at paragraphs, lines, sentences and words, keeps all words, and tears no character", () => {
    const words = Array.from({ length: 3_000 }, (_, index) =>
      index % 50 === 0 ? `w${index}.\n\n` : `w${index} `,
    ).join("");
    const pieces = telegramPieces(words);
    expect(pieces.every((piece) => piece.length <= 4_096)).toBe(true);
    expect(pieces.join(" ").split(/\s+/u)).toEqual(words.trim().split(/\s+/u));
    const emoji = telegramPieces("👩‍👩‍👧‍👦".repeat(1_000));
    expect(
      emoji.every((piece) => piece.length <= 4_096 && piece.isWellFormed() && piece.length % 11 === 0),
    ).toBe(true);
    expect(emoji.join("")).toBe("👩‍👩‍👧‍👦".repeat(1_000));
    const marks = telegramPieces(`e${"\u0301".repeat(9_000)}`);
    expect(marks.every((piece) => piece.length <= 4_096)).toBe(true);
  });

  test("telegramPieces() closes a code block that is cut, and opens it again with its language", () => {
    const code = Array.from({ length: 800 }, (_, index) => `line ${index};`).join("\n");
    const pieces = telegramPieces(`Before\n\`\`\`ts\n${code}\n\`\`\`\nAfter`);
    expect(pieces.length).toBeGreaterThan(1);
    const blocks = pieces.map((piece) => formatted(piece));
    for (const { text, entities } of blocks) {
      expect(text).not.toContain("```");
      expect(entities).toMatchObject([{ type: "pre", language: "ts" }]);
      expect(text.length).toBeLessThanOrEqual(4_096);
    }
  });
});
