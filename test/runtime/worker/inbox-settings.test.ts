import { expect, test } from "vitest";
import { inboxSettings, redeliveryDelayMs, type Message } from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/create-runtime.ts";
import { memoryStore, openStore, sha256 } from "../../../src/runtime/index.ts";
import { FakeClock } from "../../../src/testing/index.ts";
import { agent, settle } from "../runtime-setup.ts";

test("a message is tried as often, and left alone for as long, as the runtime is told", async () => {
  const clock = new FakeClock();
  const mail = { maxDeliveries: 4, baseDelayMs: 10, maxDelayMs: 100 };
  const runtime = await createRuntime({ clock, inbox: mail, runRetry: { maxRetries: 0 } });
  const from = clock.now();
  const tried: number[] = [];
  const broken = agent("broken", async () => {
    tried.push(clock.now() - from);
    throw new Error("broken");
  });
  runtime.register(broken);
  const sender = agent("sender", (ctx) => ctx.send(broken.id, "hello"));
  await (await runtime.submit(sender, null)).result();
  for (let round = 0; round < 30; round++) {
    await settle();
    await clock.advance(10);
  }
  expect(tried).toEqual([0, 10, 50, 150]);
  expect(await runtime.deadLetters()).toMatchObject([{ deliveries: 4 }]);
  await runtime.close();
});

test("each wait is four times the one before, up to the longest", () => {
  const waits = (deliveries: readonly number[], given = {}): number[] =>
    deliveries.map((each) => redeliveryDelayMs(each, inboxSettings(given)));
  expect(waits([1, 2, 3, 4, 5, 6])).toEqual([1_000, 4_000, 16_000, 64_000, 256_000, 300_000]);
  expect(waits([1, 10_000], { maxDeliveries: Infinity })).toEqual([1_000, 300_000]);
  expect(waits([1, 10_000], { baseDelayMs: 0 })).toEqual([0, 0]);
});

test("a message that may be tried for ever is no dead letter", async () => {
  const { inbox } = await openStore("memory:", { inbox: { maxDeliveries: Infinity } });
  const to = agent("broken", async () => undefined).id;
  const message: Message = { id: "m", from: null, to, body: null, sentAt: 0 };
  await inbox.deliver(message);
  for (let count = 0; count < 100; count++) await inbox.nack(to, ["m"]);
  expect([await inbox.deadLetters(), await inbox.peek(to)]).toEqual([[], [{ message, deliveries: 100 }]]);
});

test("a store that was handed in is given its own", async () => {
  const store = memoryStore({ hash: sha256 });
  await expect(createRuntime({ store, inbox: { maxDeliveries: 2 } })).rejects.toMatchObject({
    code: "invalid_argument",
    message: expect.stringContaining("inbox applies only to a store given by its address"),
  });
});
