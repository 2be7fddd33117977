import { hostname } from "node:os";
import { describe, expect, test } from "vitest";
import { memoryStore, sha256 } from "../../../src/runtime/index.ts";
import { ChannelLease } from "../../../src/surfaces/channels/work/channel-lease.ts";
import { SendQueue } from "../../../src/surfaces/channels/work/send-queue.ts";
import type { ChannelParts } from "../../../src/surfaces/channels/work/parts.ts";
import { storedPairings, type SendOutcome } from "../../../src/surfaces/server/index.ts";
import { FakeClock } from "../../../src/testing/index.ts";

const hourMs = 3_600_000;

function open() {
  const { records } = memoryStore({ hash: sha256 });
  const clock = new FakeClock();
  return { records, clock, pairings: storedPairings(records, () => clock.now()) };
}

describe("pairings of a channel", () => {
  test("a pairing code admits its sender once, in any case and with or without the dash", async () => {
    const { pairings } = open();
    const { code } = await pairings.request({ channel: "telegram", senderId: "7", senderName: "Eve" });
    const typed = ` ${code.toLowerCase().replace("-", " ")}`;
    const owner = { userId: "eva", tenantId: "acme" };
    expect(await pairings.approve(typed, owner)).toMatchObject({
      channel: "telegram",
      senderId: "7",
      ...owner,
    });
    await expect(pairings.approve(code)).rejects.toMatchObject({ code: "not_found" });
    expect(await pairings.find("telegram", "7")).toMatchObject(owner);
    expect(await pairings.find("other", "7")).toBeUndefined();
    expect(await pairings.revoke("telegram", "7")).toBe(true);
    expect(await pairings.revoke("telegram", "7")).toBe(false);
    expect(await pairings.find("telegram", "7")).toBeUndefined();
  });

  test("a pairing code expires after an hour, and a newer code replaces it", async () => {
    const { pairings, clock } = open();
    const { code: first } = await pairings.request({ channel: "telegram", senderId: "7" });
    const { code: second } = await pairings.request({ channel: "telegram", senderId: "7" });
    await expect(pairings.approve(first)).rejects.toMatchObject({ code: "not_found" });
    await clock.advance(hourMs);
    expect(await pairings.pending()).toEqual([]);
    await expect(pairings.approve(second)).rejects.toMatchObject({ code: "not_found" });
  });

  test("after 10 wrong pairing codes no code is accepted for an hour, not even the right one", async () => {
    const { pairings, clock } = open();
    const { code } = await pairings.request({ channel: "telegram", senderId: "7" });
    for (let attempt = 0; attempt < 10; attempt++)
      await expect(pairings.approve(`AAAA-AAA${attempt}`)).rejects.toMatchObject({ code: "not_found" });
    await expect(pairings.approve(code)).rejects.toMatchObject({ code: "rate_limited" });
    await clock.advance(hourMs);
    const { code: next } = await pairings.request({ channel: "telegram", senderId: "7" });
    expect(await pairings.approve(next)).toMatchObject({ senderId: "7", userId: "telegram:7" });
  });

  test("a sender on a channel receives at most 3 pairing codes an hour", async () => {
    const { pairings } = open();
    const ask = (): Promise<unknown> => pairings.request({ channel: "telegram", senderId: "1" });
    for (let time = 0; time < 3; time++) await ask();
    await expect(ask()).rejects.toMatchObject({ code: "rate_limited" });
  });

  test("strangers that take all 200 pairing codes of a channel keep no sender out, because the oldest code becomes invalid", async () => {
    const { pairings, clock } = open();
    const ask = async (senderId: string, channel = "telegram"): Promise<string> => {
      await clock.advance(1);
      return (await pairings.request({ channel, senderId })).code;
    };
    const other = await ask("1", "other");
    const oldest = await ask("1");
    const second = await ask("2");
    for (let sender = 3; sender <= 200; sender++) await ask(String(sender));
    const code = await ask("201");
    expect(await pairings.pending()).toHaveLength(201);
    expect(await pairings.approve(code)).toMatchObject({ senderId: "201" });
    expect(await pairings.approve(second)).toMatchObject({ senderId: "2" });
    expect(await pairings.approve(other)).toMatchObject({ channel: "other" });
    await expect(pairings.approve(oldest)).rejects.toMatchObject({ code: "not_found" });
    expect(await pairings.approve(await ask("1"))).toMatchObject({ senderId: "1" });
  });

  test("pairing codes are random and are not stored in plain text", async () => {
    const { pairings, records } = open();
    const { code } = await pairings.request({ channel: "telegram", senderId: "7" });
    const { code: other } = await pairings.request({ channel: "telegram", senderId: "8" });
    expect([code === other, /^[A-Z2-9]{4}-[A-Z2-9]{4}$/u.test(code)]).toEqual([false, true]);
    const found = JSON.stringify(await records.list({ namespace: "channel-codes" }));
    expect([found.includes(code), found.includes(code.replace("-", ""))]).toEqual([false, false]);
    expect(JSON.stringify(await pairings.pending())).not.toContain("hash");
  });
});

describe("N6: the lease of a channel", () => {
  test("N6: one host has the lease of a channel, which passes to another host when it is released or its process is dead", async () => {
    const { records, clock } = open();
    const [one, other] = [new ChannelLease(records, clock, "c"), new ChannelLease(records, clock, "c")];
    expect([await one.hold(), await other.hold(), await one.hold()]).toEqual([true, false, true]);
    await one.release();
    expect(await other.hold()).toBe(true);
    await other.release();
    const holder = { id: "dead", machine: hostname(), pid: 2 ** 22 + 1, until: clock.now() + 30_000 };
    const key = { namespace: "channel-leases", key: "c" };
    await records.put({ ...key, value: holder }, "absent");
    const third = new ChannelLease(records, clock, "c");
    expect(await third.hold()).toBe(true);
    const { version = 0 } = (await records.get(key)) ?? {};
    await records.put({ ...key, value: { ...holder, machine: "elsewhere" } }, version);
    expect(await third.hold()).toBe(false);
    await clock.advance(30_000);
    expect(await third.hold()).toBe(true);
  });
});

describe("N5: messages that a platform does not accept", () => {
  const message = {
    deliveryId: "d",
    kind: "notice",
    conversationId: "1",
    text: "hi",
    piece: 1,
    pieces: 1,
  } as const;

  function queueOf(outcomes: (SendOutcome | Error)[]) {
    const clock = new FakeClock();
    const times: number[] = [];
    const start = clock.now();
    const send = async (): Promise<SendOutcome> => {
      times.push(clock.now() - start);
      const next = outcomes.shift() ?? { kind: "sent" };
      if (next instanceof Error) throw next;
      return next;
    };
    const parts = { clock, log: () => undefined, channel: { name: "c", platform: "c", send } };
    const queue = new SendQueue(parts as unknown as ChannelParts, new AbortController().signal);
    return { queue, clock, times };
  }

  test("N5: a channel sends refused messages again after the time that the platform names, and nothing else meanwhile", async () => {
    const { queue, clock, times } = queueOf([{ kind: "retry", reason: "429", afterMs: 30_000 }]);
    const sent = Promise.all([
      queue.send(message, clock.now()),
      clock.advance(1).then(() => queue.send(message, clock.now())),
    ]);
    await clock.advance(29_000);
    expect(times).toEqual([0]);
    await clock.advance(2_000);
    expect((await sent).map((each) => each?.kind)).toEqual(["sent", "sent"]);
    expect(times).toEqual([0, 30_000, 30_000]);
  });

  test("N5: a channel sends messages again with growing delays after network errors, and gives up after a day", async () => {
    const { queue, clock, times } = queueOf(Array.from({ length: 1_000 }, () => new Error("down")));
    const sent = queue.send(message, clock.now());
    await clock.advance(86_400_000 + 600_000);
    expect(await sent).toMatchObject({ kind: "failed" });
    const delays = times.slice(1).map((time, index) => time - (times[index] ?? 0));
    expect(delays[0]).toBeLessThanOrEqual(1_000);
    expect(Math.max(...delays)).toBeLessThanOrEqual(300_000);
    expect(times.length).toBeLessThan(700);
  });
});
