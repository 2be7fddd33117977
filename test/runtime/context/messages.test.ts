import { expect, it } from "vitest";
import {
  formatTopicId,
  type Fault,
  type JsonValue,
  type Message,
  type RunId,
  type TopicId,
} from "../../../src/kernel/index.ts";
import { agent, agentId, setUp, settle, until } from "../runtime-setup.ts";

it("ctx.ask of an agent in another run resolves to replied, failed, cancelled, or timed_out while the target runs", async () => {
  const { runtime, clock, store } = await setUp({ runRetry: { maxRetries: 0 } });
  const targets: RunId[] = [];
  const target = agent("target", async (ctx, inbox) => {
    const [message] = inbox.messages as [Message];
    if (message.body === "answer") await ctx.reply(message, "here");
    if (message.body === "fail") throw new Error("broken");
    if (message.body === "stop") {
      targets.push(ctx.facts.runId);
      await ctx.waitForSignal("never");
    }
    if (message.body === "sleep") await ctx.waitForSignal("never");
  });
  const asker = agent(
    "asker",
    async (ctx) => (await ctx.ask(target.id, ctx.input, { timeoutMs: 1_000 })) as unknown as JsonValue,
  );
  runtime.register(target);
  const ask = async (what: string) => (await runtime.submit(asker, what)).result();
  expect((await ask("answer")).output).toEqual({ kind: "replied", body: "here" });
  expect((await ask("fail")).output).toMatchObject({ kind: "target_failed", failure: { message: "broken" } });
  expect((await ask("silent")).output).toMatchObject({
    kind: "target_failed",
    failure: { code: "child_failed" },
  });
  const stopped = await runtime.submit(asker, "stop");
  await until(() => targets.length > 0);
  await (await runtime.find(targets[0] ?? stopped.runId))?.cancel("not today");
  expect((await stopped.result()).output).toMatchObject({
    kind: "target_cancelled",
    failure: { code: "cancelled", message: expect.stringContaining("not today") },
  });
  const slow = await runtime.submit(asker, "sleep");
  await settle();
  await clock.advance(1_001);
  expect((await slow.result()).output).toEqual({ kind: "timed_out", partial: null });
  expect(await store.inbox.deadLetters(target.id)).toEqual([]);
});

it("I1, I2: an agent that is activated receives waiting messages in order of sending, each once", async () => {
  const { runtime, store } = await setUp();
  const seen: unknown[] = [];
  const reader = agent(
    "reader",
    async (_ctx, inbox) => void seen.push(...inbox.messages.map(({ body }) => body)),
  );
  const writer = agent("writer", async (ctx) => {
    for (const body of [1, 2, 3]) await ctx.send(reader.id, body);
  });
  await (await runtime.submit(writer, null)).result();
  runtime.register(reader);
  await until(() => seen.length >= 3);
  await settle();
  expect(seen).toEqual([1, 2, 3]);
  expect(await store.inbox.peek(reader.id)).toEqual([]);
});

it("I4: a message is handed back when the activation of its agent fails, and becomes a dead letter in the end", async () => {
  const { runtime, store, clock } = await setUp({ runRetry: { maxRetries: 0 } });
  let activations = 0;
  const broken = agent("broken", async () => {
    activations++;
    throw new Error("broken");
  });
  runtime.register(broken);
  await store.inbox.deliver({ id: "m", from: null, to: broken.id, body: null, sentAt: 0 });
  for (const waitMs of [1_000, 4_000]) {
    await settle();
    await clock.advance(waitMs);
  }
  await until(async () => (await store.inbox.deadLetters(broken.id)).length > 0);
  await settle();
  expect(activations).toBe(3);
});

it("ctx.emit reaches every follower of a topic and no agent that has unfollowed", async () => {
  const { runtime } = await setUp();
  const topic = formatTopicId({ type: "news", source: "desk" });
  const got: string[] = [];
  const follower = (name: string) =>
    agent(name, async (ctx, inbox) => {
      if (ctx.input === "follow") await ctx.follow(topic);
      if (ctx.input === "leave") await ctx.unfollow(topic);
      got.push(...inbox.messages.map(({ body }) => `${name} ${JSON.stringify(body)}`));
    });
  const [one, two] = [follower("one"), follower("two")];
  for (const each of [one, two]) await (await runtime.submit(each, "follow")).result();
  const desk = agent("desk", async (ctx) => ctx.emit(topic, ctx.input));
  await (await runtime.submit(desk, "first")).result();
  await until(() => got.length === 2);
  await (await runtime.submit(two, "leave")).result();
  await (await runtime.submit(desk, "second")).result();
  await until(() => got.length === 3);
  await settle();
  expect(got.toSorted()).toEqual(['one "first"', 'one "second"', 'two "first"']);
});

it("J4: the messages that a task has read are journaled, so that a replay reads the same messages", async () => {
  const { runtime, store, clock } = await setUp({ suspendAfterMs: 10 });
  const drains: unknown[][] = [];
  const reader = agent("reader", async (ctx, inbox) => {
    await ctx.waitForSignal("first");
    const one = await inbox.drain();
    await ctx.waitForSignal("second");
    const two = await inbox.drain();
    drains.push([inbox.messages, one, two].map((messages) => messages.map(({ body }) => body)));
  });
  runtime.register(reader);
  const deliver = (body: string) =>
    store.inbox.deliver({ id: body, from: null, to: reader.id, body, sentAt: 0 });
  await deliver("boot");
  await settle();
  await deliver("a");
  const [runId] = await activeRuns(store, reader.id);
  const run = await runtime.find(runId as never);
  await run?.signal("first");
  await settle();
  await deliver("b");
  await clock.advance(20);
  await run?.signal("second");
  await until(() => drains.length > 0);
  expect(drains).toEqual([[["boot"], ["a"], ["b"]]]);
  await settle();
  expect(await store.inbox.peek(agentId("reader"))).toEqual([]);
});

async function activeRuns(store: Awaited<ReturnType<typeof setUp>>["store"], id: string): Promise<string[]> {
  const { sha256 } = await import("../../../src/runtime/index.ts");
  return [
    `run_${sha256(`${id} boot 0`)
      .replaceAll(/[^A-Za-z0-9]/g, "-")
      .slice(0, 40)}`,
  ];
}

it("W1, W2: a signal that arrives before its wait is kept, and each signal goes to one wait, in order", async () => {
  const { runtime } = await setUp();
  const worker = agent("worker", async (ctx) => {
    await ctx.step("slow", async () => (await settle(), null));
    const pair = await ctx.parallel({
      one: (branch) => branch.waitForSignal("go"),
      two: (branch) => branch.waitForSignal("go"),
    });
    return [pair.one ?? null, pair.two ?? null, (await ctx.waitForSignal("go")) ?? null];
  });
  const run = await runtime.submit(worker, null);
  for (const value of ["a", "b"]) await run.signal("go", value);
  await settle();
  await settle();
  await run.signal("go", "c");
  expect((await run.result()).output).toEqual(["a", "b", "c"]);
});

it("ctx.emit and ctx.follow refuse an invalid topic", async () => {
  const { runtime } = await setUp();
  const teller = agent("teller", async (ctx) => {
    const topic = "no topic" as TopicId;
    const refused: unknown[] = [];
    for (const call of [() => ctx.emit(topic, 1), () => ctx.follow(topic), () => ctx.unfollow(topic)])
      await call().catch((error: Fault) => refused.push(error.code));
    return refused as string[];
  });
  expect((await (await runtime.submit(teller, null)).result()).output).toEqual(
    Array.from({ length: 3 }, () => "invalid_argument"),
  );
});

it("ctx.waitForSignal() refuses a time that is NaN", async () => {
  const { runtime } = await setUp();
  const sleeper = agent("sleeper", async (ctx) => {
    const refused: unknown[] = [];
    for (const call of [
      () => ctx.sleepUntil(Number.NaN),
      () => ctx.waitForSignal("go", { timeoutMs: Number.NaN }),
    ])
      await call().catch((error: Fault) => refused.push(error.code));
    return refused as string[];
  });
  expect((await (await runtime.submit(sleeper, null)).result()).output).toEqual([
    "invalid_argument",
    "invalid_argument",
  ]);
});

it.each([-5, null])(
  "a wait for a signal with the timeout %s is over at once, also on replay",
  async (timeoutMs) => {
    const { runtime, clock } = await setUp({ suspendAfterMs: 100 });
    const wait = { timeoutMs } as { readonly timeoutMs: number };
    const silent = agent("silent", async (ctx) => void (await ctx.waitForSignal("never")));
    let starts = 0;
    const asker = agent("asker", async (ctx) => {
      starts++;
      const signal = (await ctx.waitForSignal("go", wait)) ?? "late";
      const { kind } = await ctx.ask(silent.id, "hello", wait);
      await ctx.waitForSignal("replay");
      return [signal, kind];
    });
    runtime.register(silent);
    const run = await runtime.submit(asker, null);
    await settle();
    await clock.advance(500);
    await settle();
    await run.signal("replay");
    expect((await run.result()).output).toEqual(["late", "timed_out"]);
    expect(starts).toBeGreaterThan(1);
  },
);

it("a wait for a signal refuses a timeout that is no number", async () => {
  const { runtime } = await setUp();
  const waiter = agent("waiter", async (ctx) =>
    ctx
      .waitForSignal("go", { timeoutMs: "5" } as object)
      .catch((error: Fault) => [error.code, error.message]),
  );
  expect((await (await runtime.submit(waiter, null)).result()).output).toEqual([
    "invalid_argument",
    'invalid timeoutMs "5" of ctx.ask(), ctx.waitForSignal() or ctx.waitForUpdate(): expected a number, or null for a timeout at once',
  ]);
});

it.each([Number.NaN, 1.5, -1, Number.POSITIVE_INFINITY])(
  "events() refuses to read from %d on",
  async (fromSeq) => {
    const { runtime } = await setUp();
    const run = await runtime.submit(
      agent("clerk", async () => "done"),
      null,
    );
    expect(() => run.events({ fromSeq })).toThrow(
      /^invalid fromSeq .* of events\(\): expected an integer from 0/,
    );
  },
);

const timeouts = [
  [1_000, 5_000],
  [1_000, undefined],
  [undefined, 5_000],
] as const;

it.each(timeouts)(
  "J4: a run that waits for a signal continues if its timeout changes from %s ms to %s ms",
  async (before, after) => {
    const { runtime, clock, open, events } = await setUp();
    const waiter = (timeoutMs: number | undefined) =>
      agent("waiter", async (ctx) => {
        const first = await ctx.waitForSignal("first", timeoutMs === undefined ? {} : { timeoutMs });
        const second = await ctx.waitForSignal("second", timeoutMs === undefined ? {} : { timeoutMs });
        return [first ?? null, second ?? null, await ctx.step("end", async () => "done")];
      });
    const { runId } = await runtime.submit(waiter(before), null);
    await settle();
    await (await runtime.find(runId))?.signal("first", 1);
    await settle();
    await runtime.close();
    const next = await open();
    next.register(waiter(after));
    // A suspended run without a time to wake up is loaded when mail arrives.
    await (await next.find(runId))?.signal("other", 0);
    await settle();
    if (after === undefined) await (await next.find(runId))?.signal("second", 2);
    // The time of the wait counts from its start.
    else await clock.advance(after + 1);
    const output = (await (await next.find(runId))?.result())?.output;
    expect(output).toEqual([1, after === undefined ? 2 : null, "done"]);
    expect((await events(runId)).map(({ type }) => type)).not.toContain("agent_error");
    await next.close();
  },
);

it.each(timeouts)(
  "J4: a run that asks an agent sends its message once and gets the reply if its timeout changes from %s ms to %s ms",
  async (before, after) => {
    const { runtime, open } = await setUp();
    const received: JsonValue[] = [];
    const target = agent("target", async (ctx, inbox) => {
      const [message] = inbox.messages as [Message];
      received.push(message.body);
      await ctx.reply(message, "here");
    });
    const asker = (timeoutMs: number | undefined) =>
      agent(
        "asker",
        async (ctx) =>
          (await ctx.ask(
            target.id,
            "hello",
            timeoutMs === undefined ? {} : { timeoutMs },
          )) as unknown as JsonValue,
      );
    const { runId } = await runtime.submit(asker(before), null);
    await settle();
    await runtime.close();
    const next = await open();
    next.register(asker(after));
    await settle();
    next.register(target);
    expect((await (await next.find(runId))?.result())?.output).toEqual({ kind: "replied", body: "here" });
    expect(received).toEqual(["hello"]);
    await next.close();
  },
);
