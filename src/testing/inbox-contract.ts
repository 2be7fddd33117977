import { formatAgentId, type Delivery, type Message } from "../kernel/index.ts";
import type { ContractHarness } from "./contract-harness.ts";

/** What every `Inbox` must do. */
export function inboxContract({ test, expect, open }: ContractHarness): void {
  const to = formatAgentId({ name: "reader" });
  const ann = formatAgentId({ name: "ann" });
  const bob = formatAgentId({ name: "bob" });
  const message = (id: string, from = ann): Message => ({ id, from, to, body: { n: id }, sentAt: 1 });
  const ids = (deliveries: readonly Delivery[]): string[] => deliveries.map(({ message: { id } }) => id);

  test("I1: the same message twice is one message, also after it was acknowledged", async () => {
    const { inbox } = await open();
    expect(await inbox.deliver(message("a"))).toBe(true);
    expect(await inbox.deliver(message("a"))).toBe(false);
    await inbox.ack(to, ["a"]);
    expect(await inbox.deliver(message("a"))).toBe(false);
    expect(await inbox.peek(to)).toEqual([]);
  });

  test("I2: messages of one sender keep their order, also when one is handed back", async () => {
    const { inbox } = await open();
    const sent = [message("a1"), message("b1", bob), message("a2"), message("b2", bob)];
    for (const each of sent) await inbox.deliver(each);
    await inbox.nack(to, ["a1"]);
    const drained = await inbox.peek(to);
    expect(ids(drained.filter((each) => each.message.from === ann))).toEqual(["a1", "a2"]);
    expect(ids(drained.filter((each) => each.message.from === bob))).toEqual(["b1", "b2"]);
    expect(drained.map(({ deliveries }) => deliveries)).toEqual([1, 0, 0, 0]);
  });

  test("I3: peeking takes nothing away and is bounded", async () => {
    const { inbox } = await open();
    for (let count = 0; count < 150; count++) await inbox.deliver(message(`m${count}`));
    expect((await inbox.peek(to)).length).toBe(100);
    expect((await inbox.peek(to)).length).toBe(100);
    expect(ids(await inbox.peek(to, 2))).toEqual(["m0", "m1"]);
    expect((await inbox.peek(to, 500)).length).toBe(150);
  });

  test("I3: only what was acknowledged is gone", async () => {
    const { inbox } = await open();
    for (const id of ["a", "b", "c"]) await inbox.deliver(message(id));
    await inbox.ack(to, ["b", "unknown"]);
    expect(ids(await inbox.peek(to))).toEqual(["a", "c"]);
  });

  test("I4: a message handed back too often is a dead letter, kept and drained no more", async () => {
    const { inbox } = await open();
    await inbox.deliver(message("bad"));
    await inbox.deliver(message("good"));
    for (let round = 0; round < 100 && (await inbox.deadLetters(to)).length === 0; round++)
      await inbox.nack(to, ["bad"]);
    const [dead] = await inbox.deadLetters(to);
    expect(dead?.message).toEqual(message("bad"));
    expect(ids(await inbox.peek(to))).toEqual(["good"]);
    expect(await inbox.deliver(message("bad"))).toBe(false);
  });

  test("I4: dead letters are in the order in which they became it", async () => {
    const { inbox } = await open();
    for (const id of ["a", "b", "c", "d"]) await inbox.deliver(message(id));
    for (const dying of [["c"], ["d", "b"], ["a"]])
      for (let round = 0; round < inbox.maxDeliveries; round++) await inbox.nack(to, dying);
    expect(ids(await inbox.deadLetters(to))).toEqual(["c", "b", "d", "a"]);
  });

  test("I4: a message named twice in one hand-back is handed back once", async () => {
    const { inbox } = await open();
    await inbox.deliver(message("a"));
    await inbox.nack(to, ["a", "a", "a"]);
    expect((await inbox.peek(to)).map(({ deliveries }) => deliveries)).toEqual([1]);
  });

  test("those are named for whom a message waits", async () => {
    const { inbox } = await open();
    await inbox.deliver(message("a"));
    expect(await inbox.waiting([bob, to])).toEqual([to]);
    await inbox.ack(to, ["a"]);
    expect(await inbox.waiting([bob, to])).toEqual([]);
  });

  test("agents do not see each other's messages", async () => {
    const { inbox } = await open();
    await inbox.deliver(message("a"));
    expect(await inbox.peek(bob)).toEqual([]);
    expect(await inbox.deliver({ ...message("a"), to: bob })).toBe(true);
  });
}
