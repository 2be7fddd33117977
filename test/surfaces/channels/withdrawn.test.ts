import { expect, onTestFinished, test } from "vitest";
import { formatAgentId, type HostedAgent } from "../../../src/kernel/index.ts";
import { telegramChannel } from "../../../src/surfaces/server/index.ts";
import { botToken, FakeTelegram } from "./fake-telegram.ts";
import { newPath, startHost } from "./test-host.ts";

const question = { toolName: "write", callId: "call-1", input: { path: "a.txt" }, reason: "writes a file" };

test("the question of a program that has ended loses its buttons in Telegram, and a late answer is refused", async () => {
  const fake = await FakeTelegram.start();
  onTestFinished(() => fake.close());
  const isShown = Promise.withResolvers<void>();
  const agent: HostedAgent = {
    id: formatAgentId({ name: "employee" }),
    run: (ctx) =>
      ctx.attempt("program", async (attempt) => {
        attempt.approval(question).catch(() => undefined);
        await isShown.promise;
        return "I went home.";
      }),
  };
  const channel = telegramChannel({ token: botToken, apiUrl: fake.url, pollSeconds: 1 });
  await startHost(await newPath(), channel, { agents: [agent] });
  fake.say("1", "1", "7", "Work!");
  await fake.until(() => fake.sent.length >= 1);
  const markup = fake.sent[0]?.["reply_markup"] as { inline_keyboard?: { callback_data: string }[][] };
  const [button] = (markup.inline_keyboard ?? []).flat();
  isShown.resolve();
  await fake.until(() => fake.calls.some(({ method }) => method === "editMessageText"));
  const edit = fake.calls.find(({ method }) => method === "editMessageText")?.body;
  expect(edit?.["text"]).toContain("withdrawn, because nothing waits for its answer any more");
  fake.press("1", "1", button?.callback_data ?? "", "q1");
  await fake.until(() => fake.calls.some(({ method }) => method === "answerCallbackQuery"));
  const late = fake.calls.find(({ method }) => method === "answerCallbackQuery")?.body["text"];
  expect(late).toBe("This question was withdrawn, because nothing waits for its answer any more.");
});
