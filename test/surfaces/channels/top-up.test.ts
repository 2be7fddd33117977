import { expect, onTestFinished, test } from "vitest";
import { Agent } from "../../../src/assembly/agent.ts";
import { tool } from "../../../src/capabilities/index.ts";
import type { JsonObject, TopUp } from "../../../src/kernel/index.ts";
import { telegramChannel, webhookChannel } from "../../../src/surfaces/server/index.ts";
import { addOffered, offeredTopUp } from "../../../src/surfaces/channels/work/continued-run.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { botToken, FakeTelegram } from "./fake-telegram.ts";
import { post, secret } from "./signed-program.ts";
import { newPath, startHost } from "./test-host.ts";

/** An agent that needs two turns and may take one. */
function clerk(topUp?: Partial<TopUp>): Agent {
  const look = tool({
    name: "look",
    description: "Looks.",
    inputSchema: { type: "object" },
    execute: () => "seen",
  });
  const model = scriptedModel([{ toolCalls: [{ name: "look", input: {} }] }, "It left this morning."]);
  return new Agent({
    name: "clerk",
    model,
    tools: [look],
    budget: { maxTurns: 1 },
    ...(topUp !== undefined && { topUp }),
  });
}

interface Button {
  readonly text: string;
  readonly callback_data: string;
}

/** A Telegram bot with the agent, and what it has sent. */
async function bot(agent: Agent) {
  const fake = await FakeTelegram.start();
  onTestFinished(() => fake.close());
  const channel = telegramChannel({ token: botToken, apiUrl: fake.url, pollSeconds: 1 });
  const host = await startHost(await newPath(), channel, {
    agents: [agent],
    runtimeOptions: { unknownPrice: "ignore" },
  });
  const sent = async (count: number) => {
    await fake.until(() => fake.sent.length >= count);
    return fake.sent.map(({ text, reply_markup: markup }) => {
      const { inline_keyboard: rows = [] } = (markup ?? {}) as { inline_keyboard?: Button[][] };
      return { text, buttons: rows.flat() };
    });
  };
  const press = async (from: string, data: string, id: string): Promise<unknown> => {
    fake.press(from, "1", data, id);
    const isAnswer = ({ method, body }: FakeTelegram["calls"][number]): boolean =>
      method === "answerCallbackQuery" && body["callback_query_id"] === id;
    await fake.until(() => fake.calls.some(isAnswer));
    return fake.calls.find(isAnswer)?.body["text"];
  };
  return { fake, host, sent, press };
}

test("B8, N4: a run that stopped at a limit continues once when its user presses the button of a channel, and is answered", async () => {
  const { fake, host, sent, press } = await bot(clerk({ maxTurns: 2 }));
  fake.say("1", "1", "7", "Where is order 17?");
  const [stopped, offer] = await sent(2);
  expect(stopped?.text).toContain("stopped at its limit of 1 turn; you can add up to 2 turns here");
  const { runs } = await host.runtime.list();
  expect(offer?.text).toBe(`Add 1 turn to the limit of ${runs[0]?.runId ?? ""}, so that it continues?`);
  expect(offer?.buttons.map(({ text }) => text)).toEqual(["Add 1 turn"]);
  const data = offer?.buttons[0]?.callback_data ?? "";
  expect(await press("2", data, "q1")).toBe("You may not answer this question.");
  expect(await press("1", data, "q2")).toBe("The run continues.");
  expect(await press("1", data, "q3")).toBe("This was already answered: 1 turn added by ann.");
  expect((await sent(3))[2]).toEqual({ text: "It left this morning.", buttons: [] });
  const run = await host.runtime.find(runs[0]?.runId ?? "");
  expect(await run?.topUpLeft()).toMatchObject({ maxTurns: 1 });
  await fake.until(() => fake.calls.some(({ method }) => method === "editMessageText"));
});

test("B8: a channel shows no button for a run that stopped at a limit if its user may add nothing", async () => {
  const { fake, sent } = await bot(clerk());
  fake.say("1", "1", "7", "Where is order 17?");
  await sent(1);
  fake.say("1", "1", "8", "/start");
  const [stopped, next] = await sent(2);
  expect(stopped?.text).toContain("only an admin of the server can raise it");
  expect(next?.text).toContain("You are connected to clerk");
});

test("B8: a webhook without a callback receives the offer of a top-up with the answer, and waits for the continued run", async () => {
  const channel = webhookChannel({ name: "shop", secret });
  const host = await startHost(await newPath(), channel, {
    agents: [clerk({ maxTurns: 2 })],
    runtimeOptions: { unknownPrice: "ignore" },
  });
  let at = Date.now();
  const send = (body: JsonObject): ReturnType<typeof post> =>
    post(`${host.url}/channels/shop`, { senderId: "1", ...body }, { at: (at += 1_000) });
  const message = { type: "message", messageId: "7", text: "Where is order 17?" };
  const { json } = await send(message);
  expect(json).toMatchObject({ state: "answered", status: "budget_exhausted" });
  const [offer] = json["questions"] as unknown as { readonly choices: { label: string; data: string }[] }[];
  expect(offer?.choices).toMatchObject([{ label: "Add 1 turn" }]);
  const decided = await send({ type: "decision", data: offer?.choices[0]?.data ?? "" });
  expect(decided).toMatchObject({ status: 200, json: { state: "accepted" } });
  expect((await send(message)).json).toMatchObject({
    state: "answered",
    status: "completed",
    text: "It left this morning.",
  });
});

test("B8: a top-up through a channel that is repeated after a crash is added once", async () => {
  const { fake, host, sent } = await bot(clerk({ maxTurns: 2 }));
  fake.say("1", "1", "7", "Where is order 17?");
  await sent(2);
  const { runs } = await host.runtime.list();
  const run = await host.runtime.find(runs[0]?.runId ?? "");
  const offer = run && (await offeredTopUp(run));
  if (run === undefined || offer === undefined) throw new Error("nothing is offered");
  await addOffered(run, offer, host.store);
  await addOffered(run, offer, host.store);
  await run.result();
  await addOffered(run, offer, host.store);
  expect(await run.topUpLeft()).toMatchObject({ maxTurns: 1 });
});
