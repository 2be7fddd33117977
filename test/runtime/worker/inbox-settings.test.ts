import { expect, test } from "vitest";
import { inboxSettings, redeliveryDelayMs, type Message } from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { memoryStore, openStore, sha256 } from "../../../src/runtime/index.ts";
import { FakeClock } from "../../../src/testing/index.ts";
import { agent, settle } from "../runtime-setup.ts";

test("the inbox option of a runtime sets how often and after which delays a message is delivered again", async () => {
  const clock = new FakeClock();
  const inbox = { maxDeliveries: 4, baseDelayMs: 10, maxDelayMs: 100 };
  const runtime = await createRuntime({ clock, inbox, runRetry: { maxRetries: 0 } });
  const start = clock.now();
  const deliveredAt: number[] = [];
  const broken = agent("broken", async () => {
    deliveredAt.push(clock.now() - start);
    throw new Error("broken");
  });
  runtime.register(broken);
  const sender = agent("sender", (ctx) => ctx.send(broken.id, "hello"));
  await (await runtime.submit(sender, null)).result();
  for (let round = 0; round < 30; round++) {
    await settle();
    await clock.advance(10);
  }
  expect(deliveredAt).toEqual([0, 10, 50, 150]);
  expect(await runtime.deadLetters()).toMatchObject([{ deliveries: 4 }]);
  await runtime.close();
});

test("redeliveryDelayMs() grows by a factor of 4 up to maxDelayMs of the option inbox", () => {
  const delays = (deliveries: readonly number[], options = {}): number[] =>
    deliveries.map((each) => redeliveryDelayMs(each, inboxSettings(options)));
  expect(delays([1, 2, 3, 4, 5, 6])).toEqual([1_000, 4_000, 16_000, 64_000, 256_000, 300_000]);
  expect(delays([1, 10_000], { maxDeliveries: Infinity })).toEqual([1_000, 300_000]);
  expect(delays([1, 10_000], { baseDelayMs: 0 })).toEqual([0, 0]);
});

test("with maxDeliveries: Infinity in the option inbox, a message never becomes a dead letter", async () => {
  const { inbox } = await openStore("memory:", { inbox: { maxDeliveries: Infinity } });
  const to = agent("broken", async () => undefined).id;
  const message: Message = { id: "m", from: null, to, body: null, sentAt: 0 };
  await inbox.deliver(message);
  for (let count = 0; count < 100; count++) await inbox.nack(to, ["m"]);
  expect([await inbox.deadLetters(), await inbox.peek(to)]).toEqual([[], [{ message, deliveries: 100 }]]);
});

test("createRuntime refuses the inbox option for a store that the caller opened", async () => {
  const store = memoryStore({ hash: sha256 });
  await expect(createRuntime({ store, inbox: { maxDeliveries: 2 } })).rejects.toMatchObject({
    code: "invalid_argument",
    message: expect.stringContaining("inbox applies only to a store given by its address"),
  });
});
